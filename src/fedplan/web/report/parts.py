"""Parts of every report: pictures, tables, facts, code; and numbers for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from fedplan.core.records import RunRecord
from fedplan.figures import Figure, units
from fedplan.figures.units import number
from fedplan.store import RunEntry

T = TypeVar("T")


class Picture(NamedTuple):
    """A figure, its title, and what there is to see, for those who cannot, too."""

    figure: Figure
    title: str
    words: str


class Table(NamedTuple):
    """Cells below headings, and what is said of rows that are left out.

    plain : whether the cells are texts, and the table never wider than the page.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    plain: bool = False


class Facts(NamedTuple):
    """Names and what they are; as tiles, the numbers that people look for first."""

    facts: Mapping[str, str]
    as_tiles: bool = False


class Code(NamedTuple):
    """What is typed, or stands in a file."""

    text: str


Part = str | Picture | Table | Facts | Code | None  # a text is a paragraph
Sections = dict[str, Sequence[Part]]  # what stands under each heading


def listing(
    caption: str,
    columns: Mapping[str, Callable[[T], str]],
    items: Sequence[T],
    *,
    most: int = 1000,
    rest: str = "",
) -> Table:
    """A table with one row per item, and one column per name.

    most, rest : rows at most, and what is said of the number that is left out.
    """
    rows = [[shown(item) for shown in columns.values()] for item in items[:most]]
    more = len(items) - most
    return Table(caption, tuple(columns), rows, note=f"{more:,} {rest}" if more > 0 else "")


def run_table(
    caption: str, runs: Sequence[RunRecord | RunEntry], *, target: str = "target", most: int = 1000
) -> Table:
    """One row per run; `target` is what a run that reached its target was ended by."""
    columns: dict[str, Callable[[RunRecord | RunEntry], str]] = {
        "setting": lambda run: f"{run.identity.partition('/')[0]} {run.setting.label}".lstrip(),
        "seed": lambda run: f"{run.seed}",
        "rounds": lambda run: f"{run.num_rounds:,}",
        "loss at the end": lambda run: "-" if run.final_loss is None else f"{run.final_loss:.4g}",
        "time": lambda run: seconds(run.time_s),
        "energy": lambda run: joules(run.energy_j),
        "ended by": lambda run: target if run.status == "target" else run.status,
    }
    rest = "more runs are in the store: `fedplan export` writes all."
    return listing(caption, columns, runs, most=most, rest=rest)


def seconds(value: float) -> str:
    """A duration."""
    return _or_words(value, units.seconds)


def joules(value: float) -> str:
    """An energy."""
    return _or_words(value, units.joules)


def amount(value: float | None) -> str:
    """A number.

    >>> amount(13166.9), amount(None), amount(math.inf)
    ('13,167', '-', 'never')
    """
    return _or_words(value, number)


def whole(value: float | None) -> str:
    """A number of rounds.

    >>> whole(14.2), whole(2.5e9), whole(math.inf)
    ('14', '2.5e+09', 'never')
    """
    return _or_words(value, lambda v: f"{v:,.0f}" if v < 1e6 else number(v))


def count(value: float) -> str:
    """A whole number, or an average of some."""
    return f"{value:,.0f}" if value == round(value) else amount(value)


def span(ends: tuple[float, float], form: Callable[[float], str] = whole) -> str:
    """A range of numbers.

    >>> span((12.0, math.inf))
    '12 to never'
    """
    return f"{form(ends[0])} to {form(ends[1])}"


def share(value: float) -> str:
    """A share of a cost.

    >>> share(0.1184), share(5.6)
    ('11.8%', '560%')
    """
    return f"{value:.0%}" if value >= 1 else f"{value:.1%}"


def _or_words(value: float | None, shown: Callable[[float], str]) -> str:
    if value is None or math.isnan(value):
        return "-"
    return "never" if math.isinf(value) else shown(value)
