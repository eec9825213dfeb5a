"""Workflow: pilots, plan, training and the check of the plan's own prediction.

Every run goes through the archive, and every decision follows from runs alone: the same call after
a crash finds what was done, does the rest, and comes to the same result.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from fedplan.convergence.descent import Descent
from fedplan.core.constraints import Constraints
from fedplan.core.objective import Objective
from fedplan.core.plan import Plan
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.errors import InputError
from fedplan.notebook import Shown, in_words, interval_in_words
from fedplan.participation import uniform
from fedplan.planning.descent_plan import Forecast
from fedplan.planning.descent_words import limit_words
from fedplan.planning.making import make_plan
from fedplan.simulation import Job
from fedplan.store import Store
from fedplan.studies.archive import Archive, Engine, MissingRunError, NoEngine
from fedplan.studies.building import Experiment
from fedplan.studies.jobs import make_jobs
from fedplan.studies.paper_pilots import PaperPilots
from fedplan.studies.pilots import DesignedPilots, Failure, PilotProblem, Trial
from fedplan.studies.settings import study_problem
from fedplan.studies.summary import RunSummary

Status = Literal["reached", "not reached", "infeasible", "unfinished"] | Failure
Report = Callable[[str, Job, RoundRecord], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What something cost: seconds, joules, and both in the objective's unit."""

    time_s: float
    energy_j: float
    cost: float

    @classmethod
    def of(cls, runs: Sequence[RunRecord], objective: Objective) -> Bill:
        """The bill of all these runs together."""
        time_s = math.fsum(run.time_s for run in runs)
        energy_j = math.fsum(run.energy_j for run in runs)
        taken_part = sum(run.taken_part for run in runs)
        cost = float(objective.of_round(time_s, energy_j, taken_part))
        return cls(time_s=time_s, energy_j=energy_j, cost=cost)

    def divided(self, parts: int) -> Bill:
        """The average bill."""
        return Bill(
            time_s=self.time_s / parts, energy_j=self.energy_j / parts, cost=self.cost / parts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Training with the plan, over the seeds that reached the target."""

    runs: tuple[RunRecord, ...]
    reached: int
    rounds: float
    rounds_sd: float
    bill: Bill


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome(Shown):
    """Everything a study has come to.

    setting : (K, E) of the plan; None where there is none.
    descent : what was fitted to the pilots; None with the paper's, or where they failed.
    forecast : what training with it was predicted to take; None where nothing was (the paper's
        pilots predict no rounds).
    measured : what it took; None where training was not begun.
    plan : of a law other than uniform sampling, which needs no pilots.
    """

    status: Status
    setting: tuple[int, int] | None
    descent: Descent | None
    regret: float | None
    forecast: Forecast | None
    pilots: tuple[RunRecord, ...]
    pilots_bill: Bill
    measured: Measured | None
    message: str
    plan: Plan | None = None

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {text}" for name, text in self._facts() if name != "message")
        return f"<Outcome: {shown}>"

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "status", self.status
        if self.setting is not None:
            yield "clients_per_round", in_words(self.setting[0])
            yield "local_steps", in_words(self.setting[1])
        if (expected := self.forecast) is not None:
            rounds = expected.prediction.expected_rounds
            yield "rounds predicted", interval_in_words(rounds, expected.rounds_interval)
        if self.plan is not None and self.plan.success:
            yield "participation", self.plan.participation
            yield "setting", self.plan.setting.label
        if (measured := self.measured) is not None:
            yield "rounds measured", in_words(measured.rounds)
            yield "cost of training", in_words(measured.bill.cost)
        yield "pilots", in_words(len(self.pilots))
        yield "cost of pilots", in_words(self.pilots_bill.cost)
        yield "message", self.message

    @property
    def success(self) -> bool:
        """Whether training reached the target."""
        return self.status == "reached"

    @property
    def pilots_share(self) -> float | None:
        """What the pilots cost, as a share of training once."""
        if self.measured is None or not self.measured.bill.cost:
            return None
        return self.pilots_bill.cost / self.measured.bill.cost

    @property
    def as_predicted(self) -> bool | None:
        """Whether the rounds measured are in the interval predicted."""
        if self.measured is None or self.forecast is None or not self.measured.reached:
            return None
        low, high = self.forecast.rounds_interval
        return low <= self.measured.rounds <= high


def run_study(
    experiment: Experiment,
    store: Store,
    *,
    engine: Engine | None = None,
    report: Report | None = None,
) -> Outcome:
    """Pilot, plan, train and verify; `report` hears the step's name and every round.

    What is in the store already is not trained again; the rest the engine makes, the simulator
    without one.
    """
    if not _needs_pilots(experiment):
        plan = plan_study(experiment)
        entry = experiment.save(store)
        store.save_step(entry, "plan", plan_step(plan))
        return _train_plan(experiment, plan, experiment.archive(store, engine), report)
    problem = pilot_problem(experiment)
    entry = experiment.save(store)

    def note(step: str, value: Any) -> None:
        store.save_step(entry, step, value)

    pilots = _make_pilots(experiment, problem)
    return _follow(experiment, pilots, experiment.archive(store, engine), note, report)


def _needs_pilots(experiment: Experiment) -> bool:
    return experiment.study.training.participation == "uniform"


def plan_study(experiment: Experiment) -> Plan:
    """The plan of a study whose law needs no pilots: from its devices and data alone."""
    if experiment.fleet is None or experiment.stop.target_loss is None:
        pilot_problem(experiment)  # says what is missing
    law = experiment.study.training.participation
    return make_plan(study_problem(experiment), participation=law)


def plan_step(plan: Plan) -> dict[str, Any]:
    """A plan as the store keeps it."""
    return {
        "participation": plan.participation,
        "groups": [asdict(group) for group in plan.groups],
        "clients_per_round": plan.prediction and plan.prediction.clients_per_round,
        "local_steps": plan.prediction and plan.prediction.local_steps,
        "regret": plan.regret,
        "why": plan.message,
    }


def _train_plan(
    experiment: Experiment, plan: Plan, archive: Archive, report: Report | None
) -> Outcome:
    """Train with a plan that was made without pilots; every round is on the bill."""
    nothing = Bill(time_s=0.0, energy_j=0.0, cost=0.0)
    outcome = Outcome(
        status="infeasible",
        setting=None,
        descent=None,
        regret=plan.regret,
        forecast=None,
        pilots=(),
        pilots_bill=nothing,
        measured=None,
        message=plan.message,
        plan=plan,
    )
    if not plan.success:
        return outcome
    jobs = make_jobs([plan.setting], experiment.study.training.every_seed)
    progress = None if report is None else lambda job, record: report("training", job, record)
    runs = archive.run_all(jobs, experiment.stop, progress=progress)
    measured = _measure(experiment, runs)
    status, verdict = _verdict(experiment, measured, None)
    message = f"{plan.message} {verdict}"
    return replace(outcome, status=status, measured=measured, message=message)


def recall_study(experiment: Experiment, store: Store) -> Outcome:
    """What a study that was run has come to, from the store alone: nothing is trained or written.

    A study of which a run is missing is refused.
    """
    archive = experiment.archive(store, NoEngine(experiment.num_clients, experiment.study.name))
    if not _needs_pilots(experiment):
        return _train_plan(experiment, plan_study(experiment), archive, None)
    pilots = _make_pilots(experiment, pilot_problem(experiment))
    return _follow(experiment, pilots, archive, _forget, None)


def recall_so_far(experiment: Experiment, store: Store) -> Outcome:
    """What a study has come to so far, from the store alone; unfinished where a run is missing."""
    archive = experiment.archive(store, NoEngine(experiment.num_clients, experiment.study.name))
    if not _needs_pilots(experiment):
        plan = plan_study(experiment)
        try:
            return _train_plan(experiment, plan, archive, None)
        except MissingRunError:
            return _begun(experiment, plan, archive)
    pilots = _make_pilots(experiment, pilot_problem(experiment))
    try:
        return _follow(experiment, pilots, archive, _forget, None)
    except MissingRunError:
        pass
    made = Outcome(
        status="unfinished",
        setting=None,
        descent=None,
        regret=None,
        forecast=None,
        pilots=pilots.runs,
        pilots_bill=Bill.of(pilots.runs, experiment.objective),
        measured=None,
        message="The pilots have not ended. The command that began the study goes on with them.",
    )
    if pilots.ask() is not None:
        return made
    choice = pilots.choice
    if choice.setting is None:
        raise AssertionError("a study without a plan has ended")
    jobs = make_jobs([uniform(*choice.setting)], experiment.study.training.every_seed)
    runs = [run for job in jobs if (run := archive.begun(job, experiment.stop)) is not None]
    ended = sum(run.status != "unfinished" for run in runs)
    return replace(
        made,
        setting=choice.setting,
        descent=pilots.descent if isinstance(pilots, DesignedPilots) else None,
        regret=choice.regret,
        forecast=choice.forecast,
        measured=_measure(experiment, runs) if runs else None,
        message=f"{choice.message} Training has not ended: {ended} of {len(jobs)} runs are done. "
        "The command that began the study goes on with them.",
    )


def _begun(experiment: Experiment, plan: Plan, archive: Archive) -> Outcome:
    """A training by a plan without pilots that has not ended, as far as it has come."""
    jobs = make_jobs([plan.setting], experiment.study.training.every_seed)
    runs = [run for job in jobs if (run := archive.begun(job, experiment.stop)) is not None]
    ended = sum(run.status != "unfinished" for run in runs)
    return Outcome(
        status="unfinished",
        setting=None,
        descent=None,
        regret=plan.regret,
        forecast=None,
        pilots=(),
        pilots_bill=Bill(time_s=0.0, energy_j=0.0, cost=0.0),
        measured=_measure(experiment, runs) if runs else None,
        message=f"{plan.message} Training has not ended: {ended} of {len(jobs)} runs are done. "
        "The command that began the study goes on with them.",
        plan=plan,
    )


def _make_pilots(experiment: Experiment, problem: PilotProblem) -> DesignedPilots | PaperPilots:
    table = experiment.study.planning
    if table.pilots == "paper":
        return PaperPilots(problem, table)
    return DesignedPilots(problem, table.pilot_budget)


def _follow(
    experiment: Experiment,
    pilots: DesignedPilots | PaperPilots,
    archive: Archive,
    note: Callable[[str, Any], None],
    report: Report | None,
) -> Outcome:
    """The whole way from the first pilot; `note` hears what was decided."""
    run_pilots(pilots, archive, note=note, report=report)
    bill = Bill.of(pilots.runs, experiment.objective)
    choice = pilots.choice
    descent = pilots.descent if isinstance(pilots, DesignedPilots) else None
    if choice.status != "chosen":
        return Outcome(
            status=choice.status,
            setting=None,
            descent=descent,
            regret=None,
            forecast=None,
            pilots=pilots.runs,
            pilots_bill=bill,
            measured=None,
            message=choice.message,
        )
    if choice.setting is None:
        raise AssertionError("what was chosen is a setting")
    clients, steps = choice.setting
    note("plan", {"clients_per_round": clients, "local_steps": steps, "why": choice.message})
    measured = _train(experiment, archive, clients, steps, report)
    note("training", {"reached": measured.reached, "of": len(measured.runs)})
    status, verdict = _verdict(experiment, measured, choice.forecast)
    return Outcome(
        status=status,
        setting=choice.setting,
        descent=descent,
        regret=choice.regret,
        forecast=choice.forecast,
        pilots=pilots.runs,
        pilots_bill=bill,
        measured=measured,
        message=f"{choice.message} {verdict}",
    )


def _forget(step: str, value: Any) -> None:
    """Keep nothing."""


def run_pilots(
    pilots: DesignedPilots | PaperPilots,
    archive: Archive,
    *,
    note: Callable[[str, Any], None] = _forget,
    report: Report | None = None,
) -> None:
    """Run whatever the pilots ask for, until they ask no more."""
    while (trial := pilots.ask()) is not None:
        pilots.tell(_run(archive, trial, report))
        note("pilots", [asdict(RunSummary.of(run)) for run in pilots.runs])


def pilot_problem(experiment: Experiment) -> PilotProblem:
    """What pilots of this study need to know; a study without devices or target is refused."""
    target, fleet = experiment.stop.target_loss, experiment.fleet
    problems = []
    if fleet is None:
        problems.append("a plan weighs seconds and joules, and needs devices. Add a [fleet].")
    if target is None:
        problems.append("a plan is for a target, and needs one. Set target-loss in [training].")
    if problems or fleet is None or target is None:
        raise InputError(problems)
    return PilotProblem(
        fleet=fleet,
        objective=experiment.objective,
        constraints=experiment.constraints,
        rate=experiment.rate,
        target_loss=target,
        max_rounds=experiment.stop.max_rounds,
        seed=experiment.study.planning.pilot_seed,
    )


def _run(archive: Archive, trial: Trial, report: Report | None) -> RunRecord:
    progress = None if report is None else lambda job, record: report("pilots", job, record)
    (run,) = archive.run_all([trial.job], trial.stop, progress=progress)
    return run


def _train(
    experiment: Experiment, archive: Archive, clients: int, steps: int, report: Report | None
) -> Measured:
    jobs = make_jobs([uniform(clients, steps)], experiment.study.training.every_seed)
    progress = None if report is None else lambda job, record: report("training", job, record)
    return _measure(experiment, archive.run_all(jobs, experiment.stop, progress=progress))


def _measure(experiment: Experiment, runs: Sequence[RunRecord]) -> Measured:
    """What training took, by the runs that reached the target, or by all where none did."""
    arrived = [run for run in runs if run.status == "target"]
    counted = arrived or runs
    rounds = [run.num_rounds for run in counted]
    return Measured(
        runs=tuple(runs),
        reached=len(arrived),
        rounds=statistics.fmean(rounds),
        rounds_sd=statistics.stdev(rounds) if len(rounds) > 1 else 0.0,
        bill=Bill.of(counted, experiment.objective).divided(len(counted)),
    )


def _verdict(
    experiment: Experiment, measured: Measured, forecast: Forecast | None
) -> tuple[Status, str]:
    """How training ended, and what to change where it did not end well."""
    stop, training = experiment.stop, experiment.study.training
    total = len(measured.runs)
    if not measured.reached:
        if all(run.status == "diverged" for run in measured.runs):
            return "diverged", (
                f"Training diverged: lower learning-rate (now {training.learning_rate:g})."
            )
        lowest = min(run.final_loss or math.inf for run in measured.runs)
        limits = {
            "rounds": f" in {stop.max_rounds:,} rounds",
            "time": f" in {stop.max_time_s:,.6g} s (max-time-s)",
            "energy": f" with {stop.max_energy_j:,.6g} J (max-energy-j)",
        }
        endings = {run.status for run in measured.runs}
        ended = [status for status in limits if status in endings]
        return "not reached", (
            f"Training did not reach the loss {stop.target_loss:g}"
            f"{' or'.join(limits[status] for status in ended)}; the best run ended at "
            f"{lowest:.4g}. Allow more {' and '.join(ended) or 'rounds'}, or raise target-loss."
        )
    words = f"{measured.reached} of {total} runs reached the loss {stop.target_loss:g}, in "
    words += f"{measured.rounds:,.0f} rounds on average"
    if forecast is not None:
        low, high = forecast.rounds_interval
        inside = low <= measured.rounds <= high
        words += f", {'as' if inside else 'not as'} predicted"
    words += f".{_limits_kept(experiment, measured)}"
    return ("reached" if measured.reached == total else "not reached"), words


def _limits_kept(experiment: Experiment, measured: Measured) -> str:
    """How many runs kept each limit that the plan was made for."""
    sentences = []
    for name, kept in runs_within(experiment.constraints, measured.runs).items():
        limit = limit_words(name, getattr(experiment.constraints, name))
        if kept == len(measured.runs):
            sentences.append(f" {'Each' if kept > 1 else 'It'} kept {limit}.")
        else:
            sentences.append(f" {kept} of {len(measured.runs)} kept {limit}.")
    return "".join(sentences)


def runs_within(constraints: Constraints, runs: Sequence[RunRecord]) -> dict[str, int]:
    """Of each limit on a total, how many runs reached the target within it."""
    spent: dict[str, Callable[[RunRecord], float]] = {
        "deadline_s": lambda run: run.time_s,
        "energy_budget_j": lambda run: run.energy_j,
        "max_rounds": lambda run: run.num_rounds,
    }
    return {
        name: sum(run.status == "target" and total(run) <= limit for run in runs)
        for name, total in spent.items()
        if (limit := getattr(constraints, name)) is not None
    }
