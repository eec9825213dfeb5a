"""Reader: the values of a state by key, and which words a key may have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fedplan.core.plan import METHODS
from fedplan.errors import Collector, InputProblem
from fedplan.participation import LAWS

DISTRIBUTIONS = ("normal", "lognormal")
CHOICES: dict[str, tuple[str, ...]] = {
    "law": DISTRIBUTIONS,
    "bound": ("given", "own", "none"),
    "objective": ("weight", "prices"),
    "method": METHODS,
    "participation": tuple(LAWS),
}


class Reader:
    """Values of a state by key; what is wrong with one is noted, and it has its usual value."""

    def __init__(self, given: Mapping[str, Any], collector: Collector) -> None:
        self._given, self._collector = given, collector

    def text(self, key: str, usual: str) -> str:
        """A short text."""
        value = self._given.get(key)
        if value is None or (isinstance(value, str) and len(value) <= 64):
            return value or usual
        self._wrong(key, "must be a short text.")
        return usual

    def choice(self, key: str, usual: Any) -> Any:
        """One of the words that this key may have."""
        value = self._given.get(key)
        if value is None or value in CHOICES[key]:
            return usual if value is None else value
        self._wrong(key, f"must be one of {', '.join(CHOICES[key])}.")
        return usual

    def number(self, key: str, usual: float | None = None, *, whole: bool = False) -> Any:
        """A finite number; a whole one where asked for."""
        value = self._given.get(key)
        if value is None:
            return usual
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._wrong(key, "must be a number.")
            return usual
        try:
            finite = math.isfinite(float(value))
        except OverflowError:
            finite = False
        if not finite or (whole and value != int(value)):
            self._wrong(key, "must be a whole number." if finite else "must be a finite number.")
            return usual
        return int(value) if whole else float(value)

    def within(self, key: str, usual: float, low: float, high: float, *, whole: bool) -> Any:
        """A number of a range."""
        value = self.number(key, usual, whole=whole)
        if low <= value <= high:
            return value
        self._wrong(key, f"must be from {low:,g} to {high:,g}, but got {value:,g}.")
        return usual

    def _wrong(self, key: str, message: str) -> None:
        self._collector.add(InputProblem(column=key, message=message))
