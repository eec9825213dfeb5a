"""Text: values of results as people read them: numbers, units, settings, times and ids."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fedplan.notebook import amount as amount

if TYPE_CHECKING:
    from fedplan.studies.experiment import Experiment

_DIGITS = 12  # of a fingerprint: as many as tell it from others


def with_error(value: float, error: float) -> str:
    """A number and what it may be off by, where that is known.

    >>> with_error(337.0, 6.015), with_error(4.0, math.nan)
    ('337 ± 6.015', '4')
    """
    if math.isnan(error):
        return in_words(value)
    return f"{amount(value)} ± {amount(error)}"


def seconds(value: float) -> str:
    """A duration people can read.

    >>> seconds(0.25), seconds(75.0), seconds(1236.0), seconds(13200.0), seconds(200000.0)
    ('0.25 s', '75 s', '20.6 min', '3.67 h', '2.31 d')
    >>> seconds(math.inf)
    'inf'
    """
    if value == math.inf:
        return "inf"
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if value < limit:
            return f"{value / size:.3g} {unit}"
    return f"{value / 86_400:,.3g} d" if value < 86_400_000 else f"{value / 86_400:,.0f} d"


def joules(value: float) -> str:
    """An energy people can read.

    >>> joules(12.3), joules(45600.0), joules(2.37e6), joules(7.2e6), joules(math.inf)
    ('12.3 J', '45.6 kJ', '2,370 kJ', '2 kWh', 'inf')
    """
    if value == math.inf:
        return "inf"
    if value < 1e3:
        return f"{value:.3g} J"
    if value < 3.6e6:
        return f"{value / 1e3:.3g} kJ" if value < 999.5e3 else f"{value / 1e3:,.0f} kJ"
    return f"{value / 3.6e6:,.4g} kWh"


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


def difference(ratio: float) -> str:
    """A cost against the plan's.

    >>> difference(1.262), difference(5.6), difference(12.0), difference(1.0)
    ('+26.2%', '5.6 x', '12 x', 'same')
    """
    if abs(ratio - 1) < 5e-4:
        return "same"
    if ratio < 3:
        return f"{ratio - 1:+.1%}"
    return f"{ratio:,.1f} x" if ratio < 10 else f"{ratio:,.0f} x"


def who_trains(
    law: str, clients_per_round: int | None, groups: int | None, num_clients: int
) -> tuple[str, str]:
    """Who trains in a round, as a fact with its name.

    >>> who_trains("turns", None, 6, 20), who_trains("shuffled", 4, None, 20)
    (('groups that take turns', '[bold]6[/] (20 clients)'),
     ('clients per round (shuffled)', '[bold]4[/] of 20'))
    """
    if clients_per_round is None:
        return "groups that take turns", f"[bold]{groups or 0:,}[/] ({num_clients:,} clients)"
    name = "clients per round" if law == "uniform" else f"clients per round ({law})"
    return name, f"[bold]{clients_per_round:,}[/] of {num_clients:,}"


def study_in_words(experiment: Experiment) -> str:
    """A study, by its name, what is learnt and by which model."""
    study = experiment.study
    return f"{study.name}: {experiment.data_name}, {study.task.model}"


def short(fingerprint: str) -> str:
    """As much of a fingerprint as tells it from others."""
    return fingerprint[:_DIGITS]


def local_time(created: str) -> str:
    """A stored moment, by the clock on the wall."""
    return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as lines.

    >>> list(flat({"task": {"data": "mnist", "seeds": [1, 2]}, "rounds": None}))
    [('task.data', 'mnist'), ('task.seeds', '[1, 2]'), ('rounds', '-')]
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        elif value is None:
            yield f"{prefix}{key}", "-"
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)


# How values are written that are more than a number or a text, by their names in results.
_FORMS: dict[str, Callable[[Any], str]] = {
    "time_s": seconds,
    "energy_j": joules,
    "final_loss": "{:.4g}".format,
    "cost_ratio": difference,
    "ratio": difference,
    "data_share": "{:.1%}".format,
    "frequency": "{:.1%}".format,
    "regret": "+{:.1%}".format,
    "seed": str,
    "fingerprint": short,
    "experiment": short,
    "created": local_time,
}


def in_words(value: Any, name: str = "") -> str:
    """A value of a result; its name says what kind it is.

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
        return ", ".join(value) or "-"
    return value if isinstance(value, str) else amount(value)
