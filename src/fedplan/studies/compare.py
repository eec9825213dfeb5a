"""Compare: several courses on one study, each billed from its first round on."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fedplan.core.records import RunRecord
from fedplan.core.setting import Setting
from fedplan.errors import Collector, InputError
from fedplan.participation import Uniform, uniform
from fedplan.store import Store
from fedplan.studies.cells import deviation_of, mean_of
from fedplan.studies.courses import COURSE_NAMES, ONLINE, PAPER, PUBLISHED, choose_course
from fedplan.studies.experiment import Experiment, make_jobs
from fedplan.studies.grid import default_grid
from fedplan.studies.outcome import Bill, counted_runs
from fedplan.studies.study import Study
from fedplan.studies.study_file import read_study
from fedplan.studies.sweep import sweep_study
from fedplan.studies.workflow import Report, planned_problem, run_study

BEST_FIXED = "best-fixed"
_PAIR = re.compile(r"K=([1-9]\d*),\s*E=([1-9]\d*)")
_NEEDED = ("target-loss", "fleet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A way to train: the study with a course, or with a fixed setting."""

    name: str
    study: Study
    setting: Setting | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether it is one K and E from the first round to the last."""
        return self.setting is not None or self.name == BEST_FIXED


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The result of one way, averaged over the seeds that reached the target, or over all.

    rounds, time_s, energy_j, cost : all in; NaN if nothing was trained.
    cost_error : standard error of the cost; NaN for a single seed.
    ratio : the cost relative to the reference; None if a seed did not arrive.
    """

    course: str
    reached: int
    seeds: int
    rounds: float
    time_s: float
    energy_j: float
    cost: float
    cost_error: float
    ratio: float | None = None
    message: str = ""

    @property
    def arrived(self) -> bool:
        """Whether every seed reached the target."""
        return 0 < self.seeds == self.reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All of them, in the order requested, and the reference."""

    rows: tuple[Compared, ...]
    against: str


def read_entrants(
    name: str, overrides: Iterable[str] = (), courses: Sequence[str] = (), seeds: int | None = None
) -> list[Entrant]:
    """The study once for each course; by default, for every course whose keys it has.

    courses : names of courses, `K=10,E=20`, or `best-fixed`.

    >>> [one.name for one in read_entrants("demo", courses=["online", "K=5,E=20"])]
    ['online', 'K=5, E=20']
    """
    words = [*overrides, *([] if seeds is None else [f"seeds={seeds}"])]
    study = read_study(name, words, required=_NEEDED)  # reports its problems once
    courses = courses or [ONLINE, *([PAPER] if study.planning.pairs else []), *PUBLISHED]
    collector = Collector()
    found = [collector.attempt(partial(_entrant, name, words, course)) for course in courses]
    collector.finish()
    return list({one.name: one for one in found if one is not None}.values())


def _entrant(name: str, words: Sequence[str], course: str) -> Entrant:
    setting, more = None, [f"participation={Uniform.law}"]
    if pair := _PAIR.fullmatch(course.strip()):
        setting = uniform(int(pair[1]), int(pair[2]))
        more += [f"clients-per-round={pair[1]}", f"local-steps={pair[2]}"]
    elif course in COURSE_NAMES:
        # Earlier runs are not used here, or the result would depend on what is in the store.
        more = [f"course={course}", *(["earlier-runs=ignore"] if course == ONLINE else [])]
    elif course != BEST_FIXED:
        raise InputError(
            f"a course is one of {', '.join(COURSE_NAMES)}, {BEST_FIXED}, or a pair such as "
            f"K=10,E=20, but got {course!r}."
        )
    study = read_study(name, [*words, *more], required=_NEEDED)
    if course in COURSE_NAMES:
        choose_course(study)
    return Entrant(name=setting.label if setting else course, study=study, setting=setting)


def compare_courses(
    experiment: Experiment,
    entrants: Sequence[Entrant],
    store: Store,
    *,
    report: Report | None = None,
) -> Comparison:
    """Train every one with every seed; runs in the store are not trained again.

    The reference is the cheapest K and E among them that arrived, or else the first.
    """
    rows = [_train(replace(experiment, study=one.study), one, store, report) for one in entrants]
    pairs = [row for row, one in zip(rows, entrants, strict=True) if one.is_uniform and row.arrived]
    against = min(pairs, key=lambda row: row.cost) if pairs else rows[0]
    comparable = against.arrived and against.cost > 0
    rows = [
        replace(row, ratio=row.cost / against.cost if comparable and row.arrived else None)
        for row in rows
    ]
    return Comparison(rows=tuple(rows), against=against.course)


def _train(experiment: Experiment, one: Entrant, store: Store, report: Report | None) -> Compared:
    training, stop, objective = experiment.study.training, experiment.stop, experiment.objective
    progress = None if report is None else partial(report, one.name)
    name, message = one.name, ""
    pilots: tuple[RunRecord, ...] = ()
    if one.is_uniform:
        setting = one.setting
        if setting is None:
            grid = default_grid(planned_problem(experiment).fleet)
            best = sweep_study(experiment, grid, store, progress=progress).cells[0]
            setting, name = uniform(*best.setting), f"{name} ({best.label})"
        jobs = make_jobs([setting], training.every_seed)
        runs = experiment.archive(store).run_all(jobs, stop, progress=progress)
    else:
        outcome = run_study(experiment, store, report=progress and (lambda _, *on: progress(*on)))
        runs = list(outcome.measured.runs) if outcome.measured else []
        pilots, message = outcome.pilots, outcome.message
    paid = [(*pilots, run) for run in counted_runs(runs)]
    bills = [Bill.of(both, objective) for both in paid]
    costs = [bill.cost for bill in bills]
    return Compared(
        course=name,
        reached=sum(run.status == "target" for run in runs),
        seeds=training.seeds,
        rounds=mean_of([sum(run.num_rounds for run in both) for both in paid]),
        time_s=mean_of([bill.time_s for bill in bills]),
        energy_j=mean_of([bill.energy_j for bill in bills]),
        cost=mean_of(costs),
        cost_error=deviation_of(costs) / math.sqrt(max(len(costs), 1)),
        message=message,
    )
