"""Course: one start of a planned federation, from its profile to the end of training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from flwr.app import MetricRecord
from flwr.serverapp.strategy import Result

from fedplan.convergence.descent import Descent
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.prediction import Prediction
from fedplan.core.records import Observation, RoundRecord, RunRecord, Stop
from fedplan.errors import FedplanError, InputError
from fedplan.flower.drift import drifted
from fedplan.flower.engine import FlowerEngine
from fedplan.flower.journal import StoreJournal
from fedplan.flower.log import LOG
from fedplan.flower.profile import profile_clients
from fedplan.flower.rounds import Made, to_record
from fedplan.flower.runner import FlowerRunner, State
from fedplan.participation import uniform
from fedplan.planning.descent_plan import forecast, plan_descent
from fedplan.profiling import DeviceCosts, fleet_of
from fedplan.simulation import Job
from fedplan.store import Store, StudyEntry
from fedplan.studies.archive import Archive
from fedplan.studies.devices import save_names
from fedplan.studies.keys import PlanningTable
from fedplan.studies.pilots import DesignedPilots, PilotProblem
from fedplan.studies.workflow import run_pilots
from fedplan.tables import write_fleet

REPLAN_EVERY = 10  # rounds
DRIFT = 0.1  # a plan that has become dearer than the best by more than this share is changed
OVERDUE = 1.5  # times the most rounds that were predicted
_PILOTS = PlanningTable()  # as of a study that does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What training is for."""

    target_loss: float
    patience: int
    rate: LearningRate
    objective: Objective
    constraints: Constraints
    plan: tuple[int, int] | None
    min_clients: int
    seed: int

    def __post_init__(self) -> None:
        problems = []
        if not 0 < self.target_loss < math.inf:
            problems.append(f"`target_loss > 0 and finite` must hold, but got {self.target_loss}.")
        if self.patience < 1:
            problems.append(f"`patience >= 1` must hold, but got {self.patience}.")
        if self.min_clients < 1:
            problems.append(f"`min_clients >= 1` must hold, but got {self.min_clients}.")
        if self.plan is not None and not is_setting(self.plan):
            problems.append(f"plan must be (K, E), both whole and >= 1, but is {self.plan!r}.")
        if problems:
            raise InputError(problems)


def is_setting(value: object) -> bool:
    """Whether this can be a (K, E)."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(part, int) and part >= 1 for part in value)
    )


class Course:
    """One start, from the profile to the end of training; every decision is in the store."""

    def __init__(
        self,
        goal: Goal,
        num_rounds: int,
        runner: FlowerRunner,
        store: Store,
        entry: StudyEntry,
        folder: Path,
    ) -> None:
        self._goal, self._num_rounds, self._runner = goal, num_rounds, runner
        self._store, self._entry, self._folder = store, entry, folder
        self._costs: dict[int, DeviceCosts] = {}
        self._names: tuple[str, ...] = ()  # of the clients that were profiled
        self._descent: Descent | None = None
        self._limits = goal.constraints  # and what training has shown since
        self._next = (0, 0)  # the setting to go on with, where training is to change
        self._overdue = math.inf  # the round by which the target should have been reached
        self._observed: list[Observation] = []
        self._result = Result()
        self._evaluations = (
            self._result.evaluate_metrics_serverapp
            if runner.evaluates_centrally
            else self._result.evaluate_metrics_clientapp
        )

    def choose(self) -> tuple[int, int]:
        """The (K, E) to begin with, from the plan given or from pilots."""
        self._meet_clients()
        if self._goal.plan is not None:
            return self._goal.plan
        profile = profile_clients(self._runner, self._store, self._entry)
        self._costs, self._names = profile.costs.devices, profile.names
        fleet = self._write_fleet(self._costs)
        pilots = DesignedPilots(
            PilotProblem(
                fleet=fleet,
                objective=self._goal.objective,
                constraints=self._goal.constraints,
                rate=self._goal.rate,
                target_loss=self._goal.target_loss,
                max_rounds=self._num_rounds,
                seed=self._goal.seed + _PILOTS.pilot_seed,
            ),
            _PILOTS.pilot_budget,
        )
        self._runner.journal = self._journal("pilots")
        settings = self._entry.experiment.settings
        archive = Archive(FlowerEngine(self._runner), self._store, lambda _stop: settings)
        run_pilots(pilots, archive, report=_say_pilot)
        choice = pilots.choice
        LOG.info("%s", choice.message)
        if choice.setting is None:
            raise FedplanError(f"There is no plan ({choice.status}). {choice.message}")
        self._descent = pilots.descent
        return choice.setting

    def train(self, setting: tuple[int, int]) -> tuple[RunRecord, Result]:
        """Train to the end, with other settings where devices' costs have changed."""
        journal = self._journal("training")
        self._runner.journal, self._runner.report = journal, self._after_round
        stop = Stop(
            max_rounds=self._num_rounds,
            target_loss=self._goal.target_loss,
            patience=self._goal.patience,
        )
        setting = self._begin(journal, setting, stop)
        while True:
            self._note_overdue(setting)
            run = self._runner.run(uniform(*setting), stop, seed=self._goal.seed)
            if run.status != "unfinished":
                break
            setting = self._next
            self._switch(journal, State(rounds=run.rounds, weights=self._runner.weights), setting)
        run = replace(run, message=" ".join(filter(None, [run.message, *self._remarks(run)])))
        journal.finish(run)
        self._note_clients()
        self._result.arrays = to_record(self._runner.weights)
        return run, self._result

    def _begin(
        self, journal: StoreJournal, setting: tuple[int, int], stop: Stop
    ) -> tuple[int, int]:
        """The setting to go on with: the last one used, unless another is given by hand now."""
        if (fewest := self._store.find_step(self._entry, "fewest-clients")) is not None:
            fewest = min(fewest, len(self._names) or fewest)  # some may have gone since
            self._limits = replace(self._limits, min_clients_per_round=fewest)
        plans = self._store.find_step(self._entry, "plans")
        if plans is None:
            self._store.save_step(self._entry, "plans", [[0, *setting]])
            return setting
        clients, steps = plans[-1][1:]
        job = Job(course=uniform(clients, steps), seed=self._goal.seed)
        state = journal.recall(job)
        for record in state.rounds if state else ():
            self._hear(record)
        if self._goal.plan in (None, (clients, steps)):
            return clients, steps
        if state is not None:
            if _record(job, state).until(stop) is not None:
                LOG.info("This study has ended with (%d, %d). To train with another plan from the "
                         "start, give it another name.", clients, steps)  # fmt: skip
                return clients, steps
            self._switch(journal, state, setting)
        return setting

    def _switch(self, journal: StoreJournal, state: State, setting: tuple[int, int]) -> None:
        """Go on with another setting, from the rounds and the model there are."""
        LOG.info("On with %d clients and %d steps", *setting)
        job = Job(course=uniform(*setting), seed=self._goal.seed)
        moved = _record(job, state)
        journal.move(moved, state.weights)
        plans = self._store.find_step(self._entry, "plans")
        self._store.save_step(self._entry, "plans", [*plans, [moved.num_rounds, *setting]])

    def _after_round(self, job: Job, made: Made) -> bool:
        """Whether training goes on with another setting: a cheaper one, or one that arrives."""
        self._hear(made.record)
        round_ = made.record.round
        if made.metrics:
            self._result.train_metrics_clientapp[round_] = MetricRecord({**made.metrics})
        if self._descent is None or round_ == 0:
            return False
        if round_ >= self._overdue:
            better = self._setting_with_more_clients(self._descent, job)
        elif round_ % REPLAN_EVERY == 0:
            better = self._better_setting(self._descent, job)
        else:
            return False
        if better is None:
            return False
        self._next = better
        return True

    def _hear(self, record: RoundRecord) -> None:
        self._observed += record.observations
        known = {"loss": record.loss, "accuracy": record.accuracy}
        self._evaluations[record.round] = MetricRecord(
            {key: value for key, value in known.items() if value is not None}
        )

    def _better_setting(self, descent: Descent, job: Job) -> tuple[int, int] | None:
        fleet = self._fleet_now()
        chosen = self._cheapest(fleet, descent)
        if chosen is None:
            return None
        now = forecast(fleet, descent, self._goal.objective, *job.setting.pair).prediction.cost
        if not now > (1.0 + DRIFT) * chosen.cost or math.isinf(chosen.cost):
            return None
        return chosen.pair

    def _setting_with_more_clients(self, descent: Descent, job: Job) -> tuple[int, int] | None:
        """What to go on with where the target is overdue: the best of at least twice the clients.

        Few clients that differ may never get there, which short pilots cannot see: so many
        are not planned for again.
        """
        self._overdue = math.inf
        clients, steps = job.setting.pair
        fleet = self._fleet_now()
        most = self._limits.clients_range(len(fleet))[1]
        LOG.warning("Not as predicted: with (%d, %d) the target should have been reached by now.",
                    clients, steps)  # fmt: skip
        if clients >= most:
            return None
        fewest = min(2 * clients, most)
        self._limits = replace(self._limits, min_clients_per_round=fewest)
        self._store.save_step(self._entry, "fewest-clients", fewest)
        chosen = self._cheapest(fleet, descent)
        if chosen is None:  # a limit on time or energy that cannot be kept any more
            return fewest, steps
        return chosen.pair

    def _cheapest(self, fleet: Fleet, descent: Descent) -> Prediction | None:
        """The best setting for these devices, within what is known of the limits now."""
        best = plan_descent(
            fleet, descent, self._goal.objective, self._limits, max_rounds=self._num_rounds
        )
        return None if best.forecast is None else best.forecast.prediction

    def _fleet_now(self) -> Fleet:
        return self._write_fleet(drifted(self._costs, self._observed))

    def _note_overdue(self, setting: tuple[int, int]) -> None:
        """When the target should have been reached with this setting, had it begun afresh."""
        if self._descent is None:
            return
        fleet = fleet_of(self._costs, self._names)
        expected = forecast(fleet, self._descent, self._goal.objective, *setting)
        begun = self._store.find_step(self._entry, "plans")[-1][0]
        most = min(expected.rounds_interval[1], self._num_rounds)
        self._overdue = begun + math.ceil(OVERDUE * most)

    def _remarks(self, run: RunRecord) -> Iterator[str]:
        """What to know of a run besides how it ended."""
        if run.status == "rounds":
            yield (
                f"The loss {self._goal.target_loss:g} was not reached in {self._num_rounds:,} "
                "rounds: allow more, or raise target_loss."
            )
        plans = self._store.find_step(self._entry, "plans")
        if len(plans) > 1:
            parts = (f"({k:,}, {e:,}) from round {begun + 1:,}" for begun, k, e in plans)
            yield f"It was trained with several (K, E): {', '.join(parts)}."

    def _write_fleet(self, costs: Mapping[int, DeviceCosts]) -> Fleet:
        fleet = fleet_of(costs, self._names)
        write_fleet(self._folder / "fleet.csv", fleet)
        return fleet

    def _meet_clients(self) -> None:
        there = self._runner.wait_for(self._goal.min_clients)
        if there < self._goal.min_clients:
            raise FedplanError(
                f"{self._goal.min_clients} clients are to be there, but after "
                f"{self._runner.rules.wait_s:g} s {there} are. Start more nodes, or lower "
                "min_clients."
            )
        self._note_clients()

    def _note_clients(self) -> None:
        save_names(self._store, self._entry, self._runner.names)

    def _journal(self, phase: str) -> StoreJournal:
        return StoreJournal(self._store, self._entry.experiment.settings, self._folder / phase)


def _record(job: Job, state: State) -> RunRecord:
    """A run that is going on."""
    return RunRecord(setting=job.setting, seed=job.seed, status="unfinished", rounds=state.rounds)


def _say_pilot(_phase: str, job: Job, record: RoundRecord) -> None:
    if record.round == 0:
        LOG.info("Pilot: %d clients, %d steps", *job.setting.pair)
