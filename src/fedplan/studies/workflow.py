"""Workflow: train as a study's course steers, from the first round to the target, and bill it.

Every run goes through the archive, and every decision follows from runs alone: the same call after
a crash finds what was done, does the rest, and comes to the same result.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from fedplan.convergence.saturation import Saturation
from fedplan.core.course import Course
from fedplan.core.objective import costs_nothing
from fedplan.core.plan import Alternative, GroupCost, Plan
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.core.setting import Setting
from fedplan.course import Online
from fedplan.course.live import Live
from fedplan.errors import InputError
from fedplan.participation import LAWS, Turns, uniform
from fedplan.planning.planner import make_plan
from fedplan.simulation import Job
from fedplan.store import Store, StudyEntry
from fedplan.studies.archive import Archive, Engine, Progress
from fedplan.studies.cells import RunSummary
from fedplan.studies.courses import FIXED, ONLINE, PAPER, choose_course, fixed_law, make_course
from fedplan.studies.devices import observed_fleet
from fedplan.studies.earlier import known_of_study
from fedplan.studies.experiment import Experiment
from fedplan.studies.outcome import Bill, Measured, Outcome, decisions_of, forecast_of
from fedplan.studies.paper_pilots import choose_setting, run_pilots
from fedplan.studies.verdict import verdict

Report = Callable[[str, Job, RoundRecord], None]
_GOES_ON = "The command that began the study resumes them."


def run_study(
    experiment: Experiment,
    store: Store,
    *,
    engine: Engine | None = None,
    report: Report | None = None,
) -> Outcome:
    """Train to the target and return the outcome; `report` is told the step and every round.

    Stored runs are not trained again; the engine makes the others, by default the simulator.
    """
    case = _Case(experiment, store, report, experiment.save(store))
    return case.follow(experiment.archive(store, engine))


def recall_study(experiment: Experiment, store: Store) -> Outcome:
    """The outcome so far, from the store alone: nothing is trained or written."""
    return _Case(experiment, store).follow(experiment.archive(store, readonly=True))


def planned_problem(experiment: Experiment) -> Problem:
    """The problem of a study; one without devices or without a target is refused."""
    problems = []
    if experiment.assumed_fleet is None:
        problems.append("a plan weighs seconds and joules, and needs devices. Add a [fleet].")
    if experiment.stop.target_loss is None:
        problems.append("a plan is for a target, and needs one. Set target-loss in [training].")
    if problems:
        raise InputError(problems)
    return experiment.problem


def plan_step(outcome: Outcome) -> dict[str, Any]:
    """What training begins with, as it is stored."""
    if outcome.setting is None:
        raise AssertionError("what was begun has a setting")
    return {
        "course": outcome.course,
        "participation": outcome.setting.participation.law,
        "groups": [asdict(group) for group in outcome.groups],
        "clients_per_round": outcome.setting.clients_per_round,
        "local_steps": outcome.setting.local_steps,
        "regret": outcome.regret,
        "why": outcome.why,
    }


class _Case:
    """One study: its problem and course, and its pilots so far.

    entry : the stored study, to keep what is decided; None if the study is only recalled.
    """

    def __init__(
        self,
        experiment: Experiment,
        store: Store,
        report: Report | None = None,
        entry: StudyEntry | None = None,
    ) -> None:
        self._experiment, self._store, self._report = experiment, store, report
        self._entry, self._live = entry, experiment.federation is not None
        self._course = choose_course(experiment.study, live=self._live)
        self._problem = planned_problem(experiment)
        self._pilots: tuple[RunRecord, ...] = ()

    def follow(self, archive: Archive) -> Outcome:
        """The outcome; without an engine in the archive, as far as the archive has it."""
        stop, training = self._experiment.stop, self._experiment.study.training
        if self._course == PAPER:
            progress, planning = self._progress("pilots"), self._experiment.study.planning
            for run in run_pilots(planning, stop.max_rounds, archive, progress=progress):
                self._pilots += (run,)
                self._note("pilots", [asdict(RunSummary.of(one)) for one in self._pilots])
        begun, course = self._begin()
        if course is None:
            return begun
        self._note("plan", plan_step(begun))
        jobs = [Job(course=course, seed=seed) for seed in training.every_seed]
        runs = archive.run_all(jobs, stop, progress=self._progress("training"))
        done = sum(run.status != "unfinished" for run in runs)
        measured = Measured.of(runs, self._experiment.objective) if runs else None
        if measured is None or done < len(jobs):
            so_far = f"Training has not ended: {done} of {len(jobs)} runs are done. {_GOES_ON}"
            return replace(begun, measured=measured, message=f"{begun.why} {so_far}".lstrip())
        self._note("training", {"reached": measured.reached, "of": len(runs)})
        return self._ended(begun, measured)

    def _note(self, step: str, value: Any) -> None:
        if self._entry is not None:
            self._store.save_step(self._entry, step, value)

    def _progress(self, step: str) -> Progress | None:
        return None if self._report is None else partial(self._report, step)

    def _outcome(self, **known: Any) -> Outcome:
        """What is known, with the pilots so far."""
        bill = Bill.of(self._pilots, self._experiment.objective)
        return Outcome(course=self._course, pilots=self._pilots, pilots_bill=bill, **known)

    def _begin(self) -> tuple[Outcome, Course | None]:
        """What training begins with, and the course; None if it cannot begin."""
        if self._course == PAPER:
            planning = self._experiment.study.planning
            choice = choose_setting(self._as_observed(self._pilots), planning, self._pilots)
            if choice.setting is None:
                words = f" {_GOES_ON}" if choice.status == "unfinished" else ""
                return self._outcome(status=choice.status, message=choice.message + words), None
            setting = uniform(*choice.setting)
            return self._started(setting, choice.message), setting
        if self._live:
            live = self._live_course()
            return self._started(live.setting), live
        if self._course == FIXED:
            plan = self._fixed_plan(self._problem)
            if not plan.success:
                return self._outcome(status="infeasible", message=plan.message), None
            return self._started(plan.setting, plan.message, plan.regret), plan.setting
        options: dict[str, Any] = {}
        if self._course == ONLINE:
            question = Online(problem=self._problem).identity
            options = known_of_study(self._experiment, question, self._store, self._entry)
            options["stop"] = self._experiment.stop
        course = make_course(self._course, self._problem, **options)
        return self._started(course.setting), course

    def _fixed_plan(self, problem: Problem) -> Plan:
        return make_plan(problem, participation=fixed_law(self._experiment.study))

    def _live_course(self) -> Live:
        """The course on real devices, which the first rounds measure."""

        def make(problem: Problem) -> Course | str:
            if self._course != FIXED:
                return make_course(self._course, problem)
            plan = self._fixed_plan(problem)
            return plan.setting if plan.success else plan.message

        about = (fixed_law(self._experiment.study),) if self._course == FIXED else ()
        return Live(name=self._course, make=make, problem=self._problem, guessed=True, about=about)

    def _started(self, setting: Setting, why: str = "", regret: float | None = None) -> Outcome:
        return self._outcome(
            status="unfinished",
            setting=setting,
            groups=groups_of(setting, self._problem),
            regret=regret,
            why=why,
            message=why,
        )

    def _as_observed(self, runs: Sequence[RunRecord]) -> Problem:
        """The problem with real devices as these runs have shown them; simulated ones are known."""
        fleet = observed_fleet(runs, self._experiment.num_clients) if self._live else None
        if fleet is None:
            return self._problem
        samples = self._experiment.simulator.learner.sizes
        return replace(self._problem, fleet=fleet).with_samples(samples)

    def _ended(self, begun: Outcome, measured: Measured) -> Outcome:
        runs = measured.runs
        problem = self._as_observed([*begun.pilots, *runs])
        forecast = forecast_of(runs, problem, self._experiment.stop.max_rounds)
        all_in = measured.bill.plus(begun.pilots_bill)
        status, words = verdict(self._experiment, measured, all_in, forecast)
        compared = measured.reached and self._course != PAPER  # pilots are a bill of their own
        return replace(
            begun,
            status=status,
            measured=measured,
            forecast=forecast,
            groups=begun.groups if begun.setting is None else groups_of(begun.setting, problem),
            alternatives=alternatives_of(runs, problem) if compared else (),
            message=f"{begun.why} {words}".lstrip(),
        )


def alternatives_of(runs: Sequence[RunRecord], problem: Problem) -> tuple[Alternative, ...]:
    """What other settings would have cost, by what the first run to the target has shown."""
    run = next(run for run in runs if run.status == "target")
    if not run.num_rounds or costs_nothing(problem.fleet, problem.objective):
        return ()
    free = replace(problem, limits=problem.limits.ranges_only())
    law = (run.rounds[-1].setting or run.setting).participation.law
    if law not in LAWS:  # one that only its course knows
        return ()
    return make_plan(free, learnt_from(run), participation=law).alternatives


def groups_of(setting: Setting, problem: Problem) -> tuple[GroupCost, ...]:
    """The groups that take turns, if any, with what each costs."""
    law = setting.participation
    return law.group_costs(problem, setting.local_steps) if isinstance(law, Turns) else ()


def learnt_from(run: RunRecord) -> Saturation:
    """How rounds saturate with local steps, as a run to the target has shown.

    The saturation is the median of those measured, a usual one if none was. A round of E steps goes
    E / (E + saturation) of the way that one of endless steps would, so the sum over all rounds is
    the number of rounds with endless steps.
    """
    seen = [one.saturation for one in decisions_of(run) if one.saturation]
    sound = [value for value in seen if math.isfinite(value)]
    saturation = statistics.median(sound) if sound else Saturation().saturation
    steps = [one.setting.local_steps for one in run.rounds if one.setting is not None]
    rounds = math.fsum(e / (e + saturation) for e in steps)
    return Saturation(rounds=max(rounds, 1.0), saturation=saturation)
