"""The leaderboard: what every course costs on every task of the suite, over the best fixed pair.

    python reproduction/leaderboard.py

Reads reproduction/results/suite-courses-*.csv, which `python reproduction/suite.py compare` writes,
and writes reproduction/leaderboard.md. Nothing is trained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from suite.rows import table
from suite.standing import HALVES, Standing, read_standings
from suite.tasks import TASKS

HERE = Path(__file__).parent
SELDOM = 0.05  # of the runs may never arrive before a course is ranked below those that do
DRAWS, LEVEL = 2000, 0.9  # of the cells, with replacement, for an interval of this level
NATURAL = ("wisdm", "torch-mlp")  # tasks whose clients are people
PAGE = """# Leaderboard

What a course costs until the target, everything included, over what the best fixed uniform (K, E)
costs: below 1 is cheaper than the best pair of an exhaustive grid. `python
reproduction/leaderboard.py` writes this page from `results/suite-courses-*.csv`;
[the suite](suite.md) says how they were measured.

A cell is one task on one fleet at one energy weight. Brackets are {level:.0%} intervals of the
mean, by drawing the cells anew ({draws:,} times): they say how far it depends on which cells were
tried. Means leave out cells in which no run arrives, and "never" counts runs that do not: read
both. All courses were tried on the same cells, but some never arrive where others do, so compare
them within a row of the second table.

## All tasks

{overall}

## Task by task

{tasks}

Clients of {natural} are people, with the samples that each of them has made (WISDM).

## Fleet by fleet

{fleets}

The devices of `hospitals` have compute and network times that were measured; the others are drawn.

## The weakest results of the online course

{worst}

## To add a course or a task

- **A course**: one file in `src/fedplan/course/` ([what courses
  are](../docs/explanation/courses.md)), and one line in `CANDIDATES` of `suite/courses.py`. Then
  `python reproduction/suite.py compare --courses NAME`, and the command above.
- **A task**: one entry in `suite/check.py`: data, learner, rate, target, the grid of K and E, and
  fleets. Then `python reproduction/suite.py compare --tasks NAME`, which trains its grid first.
"""


def main() -> None:
    """Write the page."""
    (HERE / "leaderboard.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, from the results of the suite."""
    tasks = [name for name, task in TASKS.items() if task.half]
    standings = read_standings(HERE / "results", tasks)
    courses = _ranked(standings)
    measured = [task for task in tasks if any(one.task == task for one in standings)]
    fleets = list(dict.fromkeys(one.fleet for one in standings))
    return PAGE.format(
        draws=DRAWS,
        level=LEVEL,
        overall=_overall(courses, standings),
        tasks=_by(courses, standings, "task", measured),
        natural=" and ".join(f"`{name}`" for name in measured if name in NATURAL),
        fleets=_by(courses, standings, "fleet", fleets),
        worst=_worst(standings),
    )


def _ranked(standings: Sequence[Standing]) -> list[str]:
    """Courses: those that hardly ever fail to arrive first, then by their mean."""

    def place(course: str) -> tuple[bool, float]:
        own = [one for one in standings if one.course == course]
        ratios = [one.ratio for one in own if math.isfinite(one.ratio)]
        never = sum(one.never for one in own) / sum(one.runs for one in own)
        return never > SELDOM, float(np.mean(ratios))

    return sorted({one.course for one in standings}, key=place)


def _overall(courses: Sequence[str], standings: Sequence[Standing]) -> str:
    rows = []
    for course in courses:
        own = [one for one in standings if one.course == course]
        by_half = [_mean([one for one in own if one.half == half]) for half in HALVES]
        never, runs = sum(one.never for one in own), sum(one.runs for one in own)
        rows.append([course, str(len(own)), _mean(own), *by_half, f"{never} of {runs}"])
    head = ("course", "cells", "mean", *(f"{half} half" for half in HALVES), "never arrive")
    return table(head, rows)


def _by(courses: Sequence[str], standings: Sequence[Standing], of: str, values: list[str]) -> str:
    rows = []
    for value in values:
        own = [one for one in standings if getattr(one, of) == value]
        rows.append([value, *(_mean([one for one in own if one.course == c]) for c in courses)])
    return table(("", *courses), rows)


def _worst(standings: Sequence[Standing]) -> str:
    online = [one for one in standings if one.course == "online"]
    online.sort(key=lambda one: (-one.never / one.runs, -np.nan_to_num(one.ratio)))
    rows = [
        [one.task, one.fleet, one.weight, f"{one.ratio:.2f}", f"{one.never} of {one.runs}"]
        for one in online[:10]
    ]
    return table(("task", "fleet", "energy weight", "over the best pair", "never arrive"), rows)


def _mean(standings: Sequence[Standing]) -> str:
    """The mean over cells with its interval, and how many runs never arrive."""
    ratios = np.array([one.ratio for one in standings if math.isfinite(one.ratio)])
    if not ratios.size:
        return "never" if standings else ""
    random = np.random.default_rng(0)  # the same rows give the same page
    means = random.choice(ratios, (DRAWS, ratios.size)).mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    never = sum(one.never for one in standings)
    text = f"{ratios.mean():.2f} [{low:.2f}, {high:.2f}]"
    return f"{text}, {never} never" if never else text


if __name__ == "__main__":
    main()
