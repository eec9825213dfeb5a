"""Numbers, units, times and tables as text, for every output."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

SECONDS_PER_HOUR = 3600.0
JOULES_PER_KWH = 3.6e6
_DIGITS = 12  # of a fingerprint: enough to identify it


class Unit(NamedTuple):
    """A unit to show a quantity in, and its size in seconds or joules."""

    name: str
    size: float


NO_UNIT = Unit("", 1.0)

# Each unit by the quantity from which on it reads better than the one before.
_TIME_UNITS = {
    0.0: Unit("s", 1.0),
    300.0: Unit("min", 60.0),
    3 * SECONDS_PER_HOUR: Unit("h", SECONDS_PER_HOUR),
}
_ENERGY_UNITS = {
    0.0: Unit("J", 1.0),
    2e3: Unit("kJ", 1e3),
    2e6: Unit("MJ", 1e6),
    10 * JOULES_PER_KWH: Unit("kWh", JOULES_PER_KWH),
}


def time_unit(typical_s: float) -> Unit:
    """The unit in which this many seconds read best.

    >>> time_unit(90.0).name, time_unit(1200.0).name, time_unit(86400.0).name
    ('s', 'min', 'h')
    """
    return _TIME_UNITS[max(start for start in _TIME_UNITS if typical_s >= start)]


def energy_unit(typical_j: float) -> Unit:
    """The unit in which this many joules read best.

    >>> [energy_unit(10.0**power).name for power in (2, 4, 7, 9)]
    ['J', 'kJ', 'MJ', 'kWh']
    """
    return _ENERGY_UNITS[max(start for start in _ENERGY_UNITS if typical_j >= start)]


def number(value: float) -> str:
    """Three significant digits; thousands separated, integers below a million kept whole.

    >>> number(0.012345), number(20.63), number(13166.9), number(2.5e9), number(0.0)
    ('0.0123', '20.6', '13,167', '2.5e+09', '0')
    """
    if 100 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def amount(value: float) -> str:
    """A number by itself: four digits, or all before the decimal point.

    >>> amount(0.123456), amount(58240.09), amount(float("inf"))
    ('0.1235', '58,240', 'inf')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def quantity(value: float, unit: Unit) -> str:
    """A number of seconds or joules, in a unit.

    >>> quantity(1237.7, time_unit(1237.7))
    '20.6 min'
    """
    return f"{number(value / unit.size)} {unit.name}"


def few_digits(value: float) -> float:
    """Enough digits for a figure, and few to send.

    >>> few_digits(1 / 3)
    0.333333
    """
    return float(f"{value:.6g}")


def counted(count: float, what: str) -> str:
    """How many there are of something.

    >>> counted(1, "run"), counted(1200, "local step"), counted(0, "seed")
    ('1 run', '1,200 local steps', '0 seeds')
    """
    return f"{count:,.0f} {what}{'' if f'{count:.0f}' == '1' else 's'}"


def seconds(value: float) -> str:
    """A duration in the unit that suits it.

    >>> seconds(1237.7), seconds(9.0), seconds(math.inf), seconds(math.nan)
    ('20.6 min', '9 s', 'never', '-')
    """
    return _endless(value) or quantity(value, time_unit(value))


def joules(value: float) -> str:
    """An energy in the unit that suits it."""
    return _endless(value) or quantity(value, energy_unit(value))


def whole(value: float | None) -> str:
    """A number of rounds.

    >>> whole(14.2), whole(2.5e9), whole(math.inf), whole(None)
    ('14', '2.5e+09', 'never', '-')
    """
    if value is None:
        return "-"
    return _endless(value) or (f"{value:,.0f}" if value < 1e6 else number(value))


def _endless(value: float) -> str:
    """The text for NaN (nothing was measured) and for infinity; empty for any other number."""
    return "-" if math.isnan(value) else "never" if math.isinf(value) else ""


def small(value: float, unit: str) -> str:
    """A small amount people can read.

    >>> small(2.5961e-06, "s"), small(0.25, "J"), small(12.3, "s"), small(0.0, "s")
    ('2.6 µs', '250 mJ', '12.3 s', '0 s')
    """
    if value == 0 or value >= 1:
        return f"{value:,.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
    for prefix, size in (("m", 1e-3), ("µ", 1e-6), ("n", 1e-9), ("p", 1e-12)):
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def totals(time_s: float, energy_j: float) -> str:
    """Time and energy that people can read.

    >>> totals(1237.7, 213.0)
    '20.6 min, 213 J'
    """
    return f"{seconds(time_s)}, {joules(energy_j)}"


def with_error(value: float, error: float) -> str:
    """A number and its error, if known.

    >>> with_error(337.0, 6.015), with_error(4.0, math.nan)
    ('337 ± 6.015', '4')
    """
    return in_words(value) if math.isnan(error) else f"{amount(value)} ± {amount(error)}"


def span(ends: tuple[float, float], form: Callable[[float], str] = whole) -> str:
    """A range of numbers.

    >>> span((12.0, math.inf))
    '12 to never'
    """
    return " to ".join(map(form, ends))


def expected(
    value: float | None, ends: tuple[float, float] | None, form: Callable[[Any], str] = whole
) -> str:
    """An expected number, of rounds by default, and its interval.

    >>> expected(14.2, (12.0, math.inf)), expected(14.2, None), expected(3.5, (2.0, 5.0), in_words)
    ('14 (12 to never)', '14', '3.5 (2 to 5)')
    """
    return f"{form(value)} ({span(ends, form)})" if ends else form(value)


def ratio_label(ratio: float) -> str:
    """A cost ratio short enough for a cell.

    >>> ratio_label(1.262), ratio_label(0.97), ratio_label(3.44), ratio_label(12.43)
    ('+26%', '-3%', '3.4x', '12x')
    """
    if ratio >= 2:
        return f"{number(round(ratio, 0 if ratio >= 10 else 1))}x"
    return f"{round(100 * (ratio - 1)):+d}%"


def extra(ratio: float) -> str:
    """A cost ratio in words, short enough for a legend.

    >>> extra(1.262), extra(0.97), extra(1.0), extra(12.43)
    ('+26%', '-3%', 'same cost', '12x the cost')
    """
    percent = 100 * (ratio - 1)
    if abs(percent) < 0.05:
        return "same cost"
    if ratio >= 3:
        return f"{ratio_label(ratio)} the cost"
    return f"{percent:+.0f}%" if abs(percent) >= 2 else f"{percent:+.1f}%"


def difference(ratio: float) -> str:
    """A cost relative to the plan's, with one more digit.

    >>> difference(1.262), difference(5.6), difference(12.0), difference(1.0)
    ('+26.2%', '5.6 x', '12 x', 'same')
    """
    if abs(ratio - 1) < 5e-4:
        return "same"
    if ratio < 3:
        return f"{ratio - 1:+.1%}"
    return f"{ratio:,.1f} x" if ratio < 10 else f"{ratio:,.0f} x"


def share(value: float) -> str:
    """A share of a cost.

    >>> share(0.1184), share(5.6)
    ('11.8%', '560%')
    """
    return f"{value:.0%}" if value >= 1 else f"{value:.1%}"


def short(fingerprint: str) -> str:
    """Enough of a fingerprint to identify it."""
    return fingerprint[:_DIGITS]


def local_time(created: str) -> str:
    """A stored time, as local time."""
    return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as lines.

    >>> list(flat({"task": {"data": "mnist", "seeds": [1, 2]}, "rounds": None}))
    [('task.data', 'mnist'), ('task.seeds', '[1, 2]'), ('rounds', '-')]
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{prefix}{key}", "-" if value is None else text


# How values are written that are more than a number or a text, by their names in results.
_FORMS: dict[str, Callable[[Any], str]] = {
    "time_s": seconds,
    "energy_j": joules,
    "final_loss": "{:.4g}".format,
    "cost_ratio": difference,
    "ratio": difference,
    "data_share": share,
    "frequency": share,
    "regret": "+{:.1%}".format,
    "seed": str,
    "fingerprint": short,
    "experiment": short,
    "created": local_time,
}


def in_words(value: Any, name: str = "") -> str:
    """A value of a result as text; its name determines its kind.

    >>> in_words(75.0, "time_s"), in_words(1200), in_words(None), in_words(["plan", "training"])
    ('75 s', '1,200', '-', 'plan, training')
    """
    if value is None or value != value:  # not a number where nothing was measured
        return "-"
    if name in _FORMS:
        return _FORMS[name](value)
    if isinstance(value, Mapping):
        return " ".join(f"{key.rpartition('.')[2]}={text}" for key, text in flat(value)) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value)) or "-"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return amount(value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Table:
    """Texts below headings, for a terminal, a page and Markdown.

    left : headings of the columns that a terminal aligns to the left.
    whole : headings of columns whose cells stay on one line there.
    note : about rows that are left out.
    plain : whether it is never wider than a page, which then need not scroll it.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    left: Collection[str] = ()
    whole: Collection[str] = ()
    note: str = ""
    plain: bool = False


def table_of(
    items: Sequence[Any],
    columns: Mapping[str, str | Callable[[Any], Any]],
    *,
    title: str = "",
    whole: Collection[str] = (),
    most: int = 1000,
    rest: str = "",
) -> Table:
    """A table with one row per item, a mapping or an object: numbers to the right, names left.

    columns : by heading, the name of a value in an item, or a function of the item.
    most, rest : most rows, and the note on the number left out.

    >>> table_of([{"time_s": 75.0}], {"time": "time_s", "twice": lambda item: 2 * item["time_s"]})
    Table(head=('time', 'twice'), rows=[['75 s', '150']], title='', left=set(), ...)
    """
    left: set[str] = set()
    rows: list[list[str]] = []
    for item in items[:most]:
        rows.append([])
        for head, key in columns.items():
            if isinstance(key, str):
                value = item[key] if isinstance(item, Mapping) else getattr(item, key)
                words, is_name = in_words(value, key), isinstance(value, str | list | Mapping)
            else:
                words = in_words(key(item))
                is_name = words[:1].isalpha()
            rows[-1].append(words)
            if is_name:
                left.add(head)
    note = f"{len(items) - most:,} {rest}" if len(items) > most else ""
    return Table(tuple(columns), rows, title=title, left=left, whole=whole, note=note)
