"""Robust lines and medians with intervals, unaffected by a quarter of outliers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used

CONFIDENCE = 0.9
UNSEEN_FIXED_PART = 0.5  # how far off a cost may be, as a share, where one E alone was seen
FEWEST_FOR_INTERVAL = 5  # values; with fewer, a computed interval is not trusted


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A value with its 90% interval.

    >>> Measured(value=2.0, low=1.9, high=2.3).spread
    0.15
    """

    value: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The larger distance from the value to an end of its interval, relative to the value."""
        reach = max(self.high - self.value, self.value - self.low)
        return round(reach / self.value, 12) if self.value else (math.inf if reach else 0.0)

    def times(self, factor: float) -> Measured:
        """The same in other units."""
        return Measured(value=self.value * factor, low=self.low * factor, high=self.high * factor)

    def plus(self, other: Measured) -> Measured:
        """The sum, as if both could be at the same end of their intervals."""
        return Measured(
            value=self.value + other.value, low=self.low + other.low, high=self.high + other.high
        )


def exactly(value: float) -> Measured:
    """What is known without a doubt."""
    return Measured(value=value, low=value, high=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """y = fixed + slope * steps."""

    fixed: float
    slope: Measured


def fit_line(local_steps: Sequence[float], values: Sequence[float]) -> Line | None:
    """The robust line through the points (Theil-Sen), unaffected by a quarter of outliers.

    None if there is no line: only one number of steps, or values that do not rise.

    >>> line = fit_line([1, 1, 2, 2, 4, 4], [3.0, 3.0, 5.0, 5.0, 9.0, 70.0])
    >>> line.fixed, line.slope.value
    (1.0, 2.0)
    """
    if len(set(local_steps)) < 2:
        return None
    # Sums over ties depend on the order of their terms in the last digit; observations have none.
    points = np.array(sorted(zip(local_steps, values, strict=True)), dtype=np.float64)
    steps, seen = points.T
    with np.errstate(invalid="ignore"):  # where almost all are equal it finds no interval: NaN
        slope, _, low, high = map(float, scipy.stats.theilslopes(seen, steps, CONFIDENCE))
    if not slope > 0:
        return None
    fixed = max(0.0, float(np.median(seen - slope * steps)))
    if not math.isfinite(low + high) or len(points) < FEWEST_FOR_INTERVAL:
        low, high = slope * (1 - UNSEEN_FIXED_PART), slope * (1 + UNSEEN_FIXED_PART)
    interval = Measured(value=slope, low=max(0.0, min(low, slope)), high=max(high, slope))
    return Line(fixed=fixed, slope=interval)


def median_of(values: Sequence[float]) -> Measured:
    """The median of values >= 0, with its interval (their whole range if they are few).

    >>> median_of([1.0, 2.0, 9.0])
    Measured(value=2.0, low=1.0, high=9.0)
    """
    value, low, high = float(np.median(values)), min(values), max(values)
    if len(values) >= FEWEST_FOR_INTERVAL:
        interval = scipy.stats.quantile_test(sorted(values)).confidence_interval(CONFIDENCE)
        low = float(interval.low) if math.isfinite(interval.low) else low
        high = float(interval.high) if math.isfinite(interval.high) else high
    return Measured(value=value, low=low, high=high)
