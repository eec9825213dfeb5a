"""How courses stand: what they cost over the best uniform pair, in tables and in a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedplan.figures.style import BLUE, ORANGE
from suite.courses import CANDIDATES
from suite.rows import read_rows, table

HALVES = ("development", "check")
NUMBERS = ("cells", "mean", "90%", "worst", "runs that never arrive")
WORST = 10  # cells of the online course that are listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One course on one cell: a task, a fleet and a weight.

    ratio : mean cost of the runs that arrived over the best uniform pair's; NaN where none did.
    """

    task: str
    half: str
    fleet: str
    weight: str
    course: str
    ratio: float
    rounds: float
    runs: int
    never: int


def read_standings(results: Path, tasks: Iterable[str]) -> list[Standing]:
    """What the files of these tasks have, a course and a cell each."""
    grouped: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for task in tasks:
        for row in read_rows(results / f"suite-courses-{task}.csv"):
            key = tuple(row[name] for name in ("task", "half", "fleet", "weight", "course"))
            grouped.setdefault(key, []).append(row)
    return [_standing(key, rows) for key, rows in grouped.items()]


def _standing(key: tuple[str, ...], rows: list[dict[str, str]]) -> Standing:
    arrived = [row for row in rows if row["status"] == "target"]
    task, half, fleet, weight, course = key

    def mean(name: str) -> float:
        return float(np.mean([float(row[name]) for row in arrived])) if arrived else np.nan

    return Standing(
        task=task, half=half, fleet=fleet, weight=weight, course=course, ratio=mean("ratio"),
        rounds=mean("rounds"), runs=len(rows), never=len(rows) - len(arrived),
    )  # fmt: skip


def tables(standings: Sequence[Standing]) -> str:
    """All tables, in Markdown."""
    courses = [name for name in CANDIDATES if any(s.course == name for s in standings)]
    parts = []
    for title, half in (("Both halves", ""), *((f"The {half} half", half) for half in HALVES)):
        own = [s for s in standings if half in ("", s.half)]
        if own:
            parts += [
                f"{title}, the cost over that of the best fixed pair:",
                _summary(courses, own),
            ]
    for title, of in (("task", _task), ("weight", _weight)):
        parts += [
            f"The mean by {title} (n: runs that never arrive):",
            _means(courses, standings, of),
        ]
    worst = sorted(
        (s for s in standings if s.course == "online"),
        key=lambda s: (-s.never / s.runs, -np.nan_to_num(s.ratio)),
    )[:WORST]
    rows = [
        [s.task, s.fleet, s.weight, f"{s.ratio:.2f}", f"{s.rounds:.0f}", f"{s.never} of {s.runs}"]
        for s in worst
    ]
    head = ("task", "fleet", "weight", "ratio", "rounds", "never arrive")
    parts += ["The dearest cells of the online course:", table(head, rows)]
    return "\n\n".join(parts)


def _task(standing: Standing) -> str:
    return standing.task


def _weight(standing: Standing) -> str:
    return standing.weight


def _summary(courses: Sequence[str], standings: Sequence[Standing]) -> str:
    rows = [[name, *_numbers([s for s in standings if s.course == name])] for name in courses]
    return table(("course", *NUMBERS), rows)


def _numbers(own: Sequence[Standing]) -> list[str]:
    """Of these cells: how many, the ratio in three numbers, and the runs that never arrive."""
    ratios = np.array([s.ratio for s in own if np.isfinite(s.ratio)])
    numbers = ["", "", ""]
    if ratios.size:
        numbers = [
            f"{value:.2f}" for value in (ratios.mean(), np.quantile(ratios, 0.9), ratios.max())
        ]
    never, runs = sum(s.never for s in own), sum(s.runs for s in own)
    return [str(len(own)), *numbers, f"{never} of {runs}"]


def _means(
    courses: Sequence[str], standings: Sequence[Standing], of: Callable[[Standing], str]
) -> str:
    values = list(dict.fromkeys(of(s) for s in standings))
    rows = []
    for value in values:
        row = [value]
        for course in courses:
            own = [s for s in standings if s.course == course and of(s) == value]
            ratios = [s.ratio for s in own if np.isfinite(s.ratio)]
            never = sum(s.never for s in own)
            shown = f"{np.mean(ratios):.2f}" if ratios else ""
            row.append(f"{shown} ({never} n)".strip() if never else shown)
        rows.append(row)
    return table(("", *courses), rows)


def setup_tables(standings: Sequence[Standing]) -> str:
    """The online course on the paper's setups, in Markdown."""
    third = [s for s in standings if s.task.startswith("setup3")]
    parts: dict[str, list[Standing]] = {}
    for one in third:
        parts.setdefault(one.task, []).append(one)
    for one in third:
        parts.setdefault(f"Setup 3, {one.fleet}", []).append(one)
    parts["Setup 3"] = third
    parts |= {f"{s.task}, {s.fleet}": [s] for s in standings if s not in third}
    weights = sorted({s.weight for s in third}, key=float)
    means = [_numbers([s for s in third if s.weight == weight])[1] for weight in weights]
    whole = table(("", *NUMBERS), [[name, *_numbers(own)] for name, own in parts.items() if own])
    return f"{whole}\n\nSetup 3, the mean by energy weight:\n\n{table(weights, [means])}"


def write_between(page: Path, mark: str, text: str) -> None:
    """Put a text between the two marks of a page, in place of what is there."""
    first, last = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    whole = page.read_text(encoding="utf-8")
    before, begin, rest = whole.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"{page} has no place for tables: add the lines {first} and {last}.")
    page.write_text(f"{before}{first}\n\n{text}\n\n{last}{after}", encoding="utf-8")


def draw(standings: Sequence[Standing], path: Path) -> None:
    """Every cell's ratio, course by course; crosses at the right are cells that never arrive."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    courses = [name for name in CANDIDATES if any(s.course == name for s in standings)]
    most = max((s.ratio for s in standings if np.isfinite(s.ratio)), default=1.0)
    figure, axes = plt.subplots(figsize=(7, 0.9 + 0.42 * len(courses)), layout="constrained")
    for half, colour, shift in zip(HALVES, (BLUE, ORANGE), (-0.16, 0.16), strict=True):
        own = [s for s in standings if s.half == half]
        places = np.array([courses.index(s.course) + shift for s in own])
        # Spread by a fixed pattern, so that the same rows give the same picture.
        places += 0.1 * (np.arange(places.size) * 0.618 % 1 - 0.5)
        ratios = np.array([s.ratio for s in own])
        there = np.isfinite(ratios)
        axes.scatter(ratios[there], places[there], s=10, alpha=0.6, color=colour, linewidths=0,
                     label=f"{half} half")  # fmt: skip
        axes.scatter(np.full((~there).sum(), 1.3 * most), places[~there], s=14, marker="x",
                     color=colour, linewidths=0.8)  # fmt: skip
    axes.axvline(1.0, color="0.4", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(courses)), courses)
    axes.invert_yaxis()
    axes.set_xlabel("cost of everything / cost of the best fixed K and E (crosses: never arrives)")
    axes.legend(fontsize="small", frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
