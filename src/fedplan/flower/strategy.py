"""PlannedFedAvg: profile, pilot, plan and train to a target, in the place of Flower's FedAvg."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result

from fedplan.errors import FedplanError, InputError, Problem
from fedplan.flower.drift import drifted
from fedplan.flower.engine import FlowerEngine
from fedplan.flower.exchange import Clock
from fedplan.flower.journal import StoreJournal, load_weights, save_weights
from fedplan.flower.log import LOG
from fedplan.flower.metrics import Layout
from fedplan.flower.profile import profile_clients
from fedplan.flower.rounds import Made, RoundRules, to_record
from fedplan.flower.runner import FlowerRunner, State
from fedplan.profiling import DeviceCosts, fleet_of
from fedplan.records import Observation, RoundRecord, RunRecord, Status, Stop
from fedplan.simulation import Job
from fedplan.store import DEFAULT_URL, Store, StudyEntry
from fedplan.store.database import path_of
from fedplan.studies.archive import Archive
from fedplan.studies.config import PlanningTable
from fedplan.studies.devices import find_names, save_names
from fedplan.studies.pilots import DesignedPilots, PilotProblem
from fedplan.studies.workflow import run_pilots
from fedplan.tables import write_fleet
from fedplan.theory.constraints import Constraints
from fedplan.theory.cost import Objective
from fedplan.theory.descent import Descent
from fedplan.theory.descent_plan import forecast, plan_descent
from fedplan.theory.fleet import Fleet
from fedplan.theory.learning_rate import LearningRate

REPLAN_EVERY = 10  # rounds
DRIFT = 0.1  # a plan that has become dearer than the best by more than this share is changed
_PILOTS = PlanningTable()  # as of a study that does not say
EvaluateFn = Callable[[int, ArrayRecord], MetricRecord | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goal:
    """What training is for."""

    target_loss: float
    patience: int
    rate: LearningRate
    objective: Objective
    constraints: Constraints
    plan: tuple[int, int] | None
    min_clients: int
    seed: int


class PlannedFedAvg:
    """FedAvg with K and E chosen for the lowest cost of reaching a loss.

    target_loss : where training ends.
    learning_rate : of the clients, for every round; sent to them as `learning-rate`.
    objective, constraints : what is to be low, and what must be kept to; seconds alone by default.
    plan : the (K, E) to use, or a JSON file of `fedplan plan --format json`; None finds them by
        pilots.
    study, store : under which name, and in which file, everything is kept. A server that was
        killed and is started again with the same two goes on from its last round.
    min_clients : how many clients must be there before anything begins. The profile, and so the
        plan, is of those that are there then: give the size of your federation.
    rules : how a round deals with clients that fail.
    loss_metric, accuracy_metric : what the clients' evaluation calls them, where they evaluate.

    After `start`, `setting` is the (K, E) last used, and `status` and `message` say how training
    has ended.
    """

    def __init__(
        self,
        *,
        target_loss: float,
        learning_rate: float | LearningRate,
        objective: Objective | None = None,
        constraints: Constraints | None = None,
        plan: tuple[int, int] | str | os.PathLike[str] | None = None,
        study: str = "flower",
        store: str = DEFAULT_URL,
        seed: int = 0,
        patience: int = 1,
        min_clients: int = 2,
        rules: RoundRules | None = None,
        loss_metric: str = "eval_loss",
        accuracy_metric: str = "eval_acc",
        clock: Clock | None = None,
    ) -> None:
        if not re.fullmatch(r"[\w.-]+", study) or study.startswith("."):
            raise InputError(f"study names a folder: letters, digits, - and _, but got {study!r}.")
        self.setting: tuple[int, int] | None = None
        self.status: Status | None = None
        self.message = ""
        self.folder = path_of(store).absolute().parent / f"{study}-flower"
        if not isinstance(learning_rate, LearningRate):
            learning_rate = LearningRate(initial=learning_rate)
        self._goal = _Goal(
            target_loss=target_loss,
            patience=patience,
            rate=learning_rate,
            objective=objective or Objective.weighted(0.0),
            constraints=constraints or Constraints(),
            plan=plan if plan is None or isinstance(plan, tuple) else read_plan(plan),
            min_clients=min_clients,
            seed=seed,
        )
        self._study, self._store_url = study, store
        self._rules = rules or RoundRules()
        self._metrics = (loss_metric, accuracy_metric)
        self._clock = clock

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 1000,
        timeout: float | None = None,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: EvaluateFn | None = None,
    ) -> Result:
        """Train to the target, or for `num_rounds` at most; as FedAvg's `start`, and its result.

        evaluate_fn : a MetricRecord with `loss`, and `accuracy` if there is one, of the model
            after a round; without it, all clients evaluate.
        timeout : seconds a round waits for an answer.
        """
        rules = self._rules if timeout is None else replace(self._rules, deadline_s=timeout)
        with Store(self._store_url) as store:
            LOG.info("Study %s is kept in %s", self._study, path_of(self._store_url).absolute())
            experiment = {
                "engine": "flower",
                "study": self._study,
                "arrays": _shapes(initial_arrays),
                "learning_rate": asdict(self._goal.rate),
            }
            entry = store.save_study(self._study, {}, experiment)
            runner = FlowerRunner(
                grid,
                self._first_arrays(initial_arrays),
                evaluate=None if evaluate_fn is None else _central(evaluate_fn),
                learning_rate=self._goal.rate,
                rules=rules,
                train_config=train_config,
                evaluate_config=evaluate_config,
                loss_metric=self._metrics[0],
                accuracy_metric=self._metrics[1],
                names=find_names(store, entry),
                clock=self._clock,
            )
            work = _Work(self._goal, num_rounds, runner, store, entry, self.folder)
            run, result = work.train(work.choose())
        self.status, self.message = run.status, run.message
        self.setting = (run.clients_per_round, run.local_steps)
        LOG.info("Training has ended (%s) after %d rounds. %s", run.status, run.num_rounds,
                 run.message)  # fmt: skip
        return result

    def _first_arrays(self, arrays: ArrayRecord) -> ArrayRecord:
        """The arrays of the first start: after a restart, pilots begin where others did."""
        path = self.folder / "initial.npz"
        if not path.exists():
            save_weights(path, 0, Layout(arrays).arrays)
        return to_record(load_weights(path)[1])


class _Work:
    """One start, from the profile to the end of training; every decision is in the store."""

    def __init__(
        self,
        goal: _Goal,
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
        self._next = (0, 0)  # the setting to go on with, where training is to change
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
        run_pilots(pilots, Archive(FlowerEngine(self._runner), self._store, lambda _stop: settings))
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
        setting = self._begin(journal, setting)
        stop = Stop(
            max_rounds=self._num_rounds,
            target_loss=self._goal.target_loss,
            patience=self._goal.patience,
        )
        while True:
            run = self._runner.run(*setting, stop, seed=self._goal.seed)
            if run.status != "unfinished":
                break
            setting = self._next
            self._switch(journal, State(rounds=run.rounds, weights=self._runner.weights), setting)
        journal.finish(run)
        self._note_clients()
        self._result.arrays = to_record(self._runner.weights)
        return run, self._result

    def _begin(self, journal: StoreJournal, setting: tuple[int, int]) -> tuple[int, int]:
        """The setting to go on with: the last one used, unless another is given by hand now."""
        plans = self._store.find_step(self._entry, "plans")
        if plans is None:
            self._store.save_step(self._entry, "plans", [[0, *setting]])
            return setting
        clients, steps = plans[-1][1:]
        job = Job(clients_per_round=clients, local_steps=steps, seed=self._goal.seed)
        state = journal.recall(job)
        for record in state.rounds if state else ():
            self._hear(record)
        if self._goal.plan in (None, (clients, steps)):
            return clients, steps
        if state is not None:
            self._switch(journal, state, setting)
        return setting

    def _switch(self, journal: StoreJournal, state: State, setting: tuple[int, int]) -> None:
        """Go on with another setting, from the rounds and the model there are."""
        LOG.info("On with %d clients and %d steps", *setting)
        moved = RunRecord(
            clients_per_round=setting[0],
            local_steps=setting[1],
            seed=self._goal.seed,
            status="unfinished",
            rounds=state.rounds,
        )
        journal.move(moved, state.weights)
        plans = self._store.find_step(self._entry, "plans")
        self._store.save_step(self._entry, "plans", [*plans, [moved.num_rounds, *setting]])

    def _after_round(self, job: Job, made: Made) -> bool:
        """Whether another setting has become so much cheaper that training goes on with it."""
        self._hear(made.record)
        round_ = made.record.round
        if made.metrics:
            self._result.train_metrics_clientapp[round_] = MetricRecord({**made.metrics})
        if self._descent is None or round_ == 0 or round_ % REPLAN_EVERY:
            return False
        better = self._better_setting(self._descent, job)
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
        fleet = self._write_fleet(drifted(self._costs, self._observed))
        objective, constraints = self._goal.objective, self._goal.constraints
        best = plan_descent(fleet, descent, objective, constraints, max_rounds=self._num_rounds)
        if best.forecast is None:
            return None
        chosen = best.forecast.prediction
        current = (job.clients_per_round, job.local_steps)
        now = forecast(fleet, descent, objective, *current).prediction.cost
        if not now > (1.0 + DRIFT) * chosen.cost or math.isinf(chosen.cost):
            return None
        return chosen.clients_per_round, chosen.local_steps

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


def read_plan(path: str | os.PathLike[str]) -> tuple[int, int]:
    """(K, E) of a JSON file that `fedplan plan --format json` wrote."""
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
        setting = (plan["clients_per_round"], plan["local_steps"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"is no plan ({error}). Write one: fedplan plan ... --format json > plan.json."
        raise InputError(Problem(source=str(path), message=message)) from error
    if not all(isinstance(part, int) and part >= 1 for part in setting):
        message = f"must have clients_per_round and local_steps >= 1, but has {setting}."
        raise InputError(Problem(source=str(path), message=message))
    return setting


def _central(evaluate_fn: EvaluateFn) -> Callable[[int, ArrayRecord], tuple[float, float | None]]:
    def evaluate(round_: int, arrays: ArrayRecord) -> tuple[float, float | None]:
        metrics: Mapping[str, Any] = evaluate_fn(round_, arrays) or {}
        loss, accuracy = metrics.get("loss"), metrics.get("accuracy")
        if not isinstance(loss, int | float):
            raise InputError(
                "evaluate_fn must return a MetricRecord with a number `loss`, but it has "
                f"{sorted(metrics)}."
            )
        return float(loss), float(accuracy) if isinstance(accuracy, int | float) else None

    return evaluate


def _shapes(arrays: ArrayRecord) -> list[list[Any]]:
    return [[name, array.dtype, list(array.shape)] for name, array in arrays.items()]
