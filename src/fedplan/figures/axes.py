"""Axes: their range, linear or logarithmic scale, and ticks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedplan.core.fleet import FloatArray
from fedplan.words import NO_UNIT, Unit

_LOG_FROM = 10.0  # an axis that spans more than this ratio is logarithmic
# Other settings may widen an axis by this power of the frontier's own ratio, or by this ratio: one
# further out would squash the frontier, and is pinned to the edge instead.
_ROOM, _LEAST_ROOM = 1.5, 2.0
_FEW_DECADES = 2000.0
_WITHIN_A_DECADE = 12.0  # a logarithmic axis up to here is too short for powers of ten
_MARGIN = 0.06  # of the span, left free at each end
_EDGE = 0.02  # of the span, between an edge and what is pinned to it


def tick_text(value: float) -> str:
    """A tick of an axis, thousands separated.

    >>> tick_text(20000.0), tick_text(0.5), tick_text(3e9)
    ('20,000', '0.5', '3e+09')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The label and range of an axis; `low` and `high` are its ends, in `unit`."""

    label: str
    unit: Unit
    log: bool
    low: float
    high: float
    counts: bool = False  # whole numbers alone make sense
    all_zero: bool = False  # nothing but zeros to show

    @property
    def decades(self) -> tuple[float, ...]:
        """The places of ticks in a decade; empty if ticks are evenly spaced."""
        if not self.log or self.high <= _WITHIN_A_DECADE * self.low:
            return ()
        return (1.0, 2.0, 5.0) if self.high < _FEW_DECADES * self.low else (1.0,)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends, in seconds or joules."""
        return self.low * self.unit.size, self.high * self.unit.size

    def side(self, value: float) -> int:
        """Where a value in seconds or joules lies: -1 below the axis, 0 on it, 1 above it."""
        shown = value / self.unit.size
        return int(shown > self.high) - int(shown < self.low)

    def has(self, value: float) -> bool:
        """Whether a value in seconds or joules lies on the axis."""
        return self.side(value) == 0

    def shares(self, values: ArrayLike) -> FloatArray:
        """Positions of values in seconds or joules along the axis: 0 at its start, 1 at its end."""
        at = np.append(np.asarray(values, dtype=np.float64), self.ends)
        at = np.log(at) if self.log else at
        return np.asarray((at[:-2] - at[-2]) / (at[-1] - at[-2]))

    def kept(self, value: float) -> float:
        """A value in seconds or joules, moved to the edge if it lies beyond."""
        if self.has(value):
            return value
        inner = _widened(self.low, self.high, -_EDGE, self.log)
        return inner[self.side(value) > 0] * self.unit.size


def near(core: Sequence[float], value: float) -> bool:
    """Whether an axis that must show all of `core` can show `value` too and not squash it.

    >>> near([60.0, 80.0], 100.0), near([60.0, 80.0], 5000.0)
    (True, False)
    """
    low, high = min(core), max(core)
    if not high:
        return value == 0
    room = max((high / low) ** _ROOM, _LEAST_ROOM) if low else math.inf
    return low / room <= value <= high * room


def fit_axis(name: str, unit: Unit, values: Sequence[float], *, log: bool | None = None) -> Axis:
    """An axis that shows all values (in seconds or joules), logarithmic if they span a wide range.

    log : force (for values above 0) or forbid a logarithmic axis.

    >>> from fedplan.words import time_unit
    >>> axis = fit_axis("time to target", time_unit(60.0), [60.0, 80.0])
    >>> axis.label, axis.log, axis.has(80.0), axis.has(100.0)
    ('time to target (s)', False, True, False)
    """
    low, high = min(values) / unit.size, max(values) / unit.size
    log = low > 0 and (high / low > _LOG_FROM if log is None else log)
    if low == high:  # a single value, or no energy at all, still needs an axis to stand on
        low, high = sorted((0.9 * low, 1.1 * high)) if high else (-1.0, 1.0)
    else:
        low, high = _widened(low, high, _MARGIN, log)
    all_zero = not any(values)
    return Axis(label=_with(name, unit), unit=unit, log=log, low=low, high=high, all_zero=all_zero)


def count_axis(label: str, low: int, high: int) -> Axis:
    """An axis of whole numbers from `low` to `high`, widened if they are equal.

    >>> count_axis("local steps E", 1, 62).log
    True
    """
    log, pad = high > _LOG_FROM * low, 0.5 if low == high else 0.0
    return Axis(label=label, unit=NO_UNIT, log=log, low=low - pad, high=high + pad, counts=True)


def bar_axis(label: str, high: float, unit: Unit = NO_UNIT, *, counts: bool = False) -> Axis:
    """An axis from 0 to `high` (in seconds or joules).

    >>> from fedplan.words import time_unit
    >>> bar_axis("cost (s)", 30.0).high, bar_axis("time", 120.0, time_unit(600.0)).label
    (30.0, 'time (min)')
    """
    return Axis(
        label=_with(label, unit),
        unit=unit,
        log=False,
        low=0.0,
        high=high / unit.size or 1.0,
        counts=counts,
        all_zero=not high,
    )


def _with(label: str, unit: Unit) -> str:
    return f"{label} ({unit.name})" if unit.name else label


def _widened(low: float, high: float, share: float, log: bool) -> tuple[float, float]:
    if log:
        factor = (high / low) ** share
        return low / factor, high * factor
    extent = (high - low) * share
    return low - extent, high + extent
