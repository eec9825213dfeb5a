"""A smart plug, or any meter that writes a file of timestamps and watts."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedplan.csvfile import MOST_PROBLEMS, Cells, Kind, number, read_blocks
from fedplan.errors import FedplanError, InputProblem

_KINDS = {"power": Kind(required=("timestamp", "watts"), optional=())}
_BETWEEN_LOOKS_S = 0.25


class _Reading(NamedTuple):
    at: float  # seconds since 1970
    watts: float


class PlugMeter:
    """A CSV file with the columns timestamp and watts that goes on being written.

    Timestamps are ISO 8601 (local time where they name no zone) or seconds since 1970. The last
    reading of a window may come a little later than its end, so `stop` waits for it.
    """

    name = "csv"
    is_measurement = True

    def __init__(self, path: str | Path, *, wait_s: float = 15.0) -> None:
        self._path = Path(path)
        self._wait_s = wait_s
        self._started = 0.0
        read_power(self._path)  # what is wrong with it is said before anything is measured

    def describe(self) -> str:
        """What is measured."""
        return f"{self._path.name}: what its meter sees, for a plug the whole device and its supply"

    def start(self) -> None:
        """Begin to count."""
        self._started = time.time()

    def stop(self) -> float:
        """Joules since `start`, by trapezoids."""
        end = time.time()
        give_up = time.monotonic() + self._wait_s
        while True:
            try:
                return integrate(read_power(self._path), self._started, end, self._path.name)
            except FedplanError:  # not there yet, or a line half written
                if time.monotonic() >= give_up:
                    raise
            time.sleep(_BETWEEN_LOOKS_S)


def read_power(path: Path) -> list[_Reading]:
    """The readings of a file, by time; InputError carries every problem of it."""
    parts = read_blocks(path, "power", _KINDS, _parse)
    return sorted(reading for part in parts for reading in part)


def integrate(readings: list[_Reading], start: float, end: float, name: str) -> float:
    """Joules from start to end; the readings must reach from before the one to after the other."""
    times, watts = np.array(readings, dtype=np.float64).T
    if not times[0] <= start <= end <= times[-1]:
        raise FedplanError(
            f"{name}: must cover the time of the measurement, {_shown(start)} to {_shown(end)}, "
            f"but covers {_shown(times[0])} to {_shown(times[-1])}. Let the plug's logger go on "
            "writing while fedplan measures, and compare the two clocks."
        )
    inside = (times > start) & (times < end)
    at = np.concatenate([[start], times[inside], [end]])
    power = np.interp(at, times, watts)
    return float((np.diff(at) * (power[1:] + power[:-1]) / 2).sum())


def _parse(cells: Cells, at: list[int]) -> tuple[list[_Reading], list[InputProblem]]:
    readings: list[_Reading] = []
    problems: list[InputProblem] = []
    for line, when, power in zip(at, cells["timestamp"], cells["watts"], strict=True):
        seconds, watts = _seconds(when), number(power)
        if not math.isfinite(seconds):
            message = f"must be ISO 8601 or seconds since 1970, but got {when[:40]!r}."
            problems.append(InputProblem(line=line, column="timestamp", message=message))
        if not 0 <= watts < math.inf:
            message = f"must be a finite number >= 0, but got {power[:40]!r}."
            problems.append(InputProblem(line=line, column="watts", message=message))
        readings.append(_Reading(seconds, watts))
        if len(problems) >= MOST_PROBLEMS:
            break
    return readings, problems


def _seconds(text: str) -> float:
    if math.isfinite(seconds := number(text)):
        return seconds
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def _shown(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s"
