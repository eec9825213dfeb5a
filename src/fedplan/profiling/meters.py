"""Energy meters, each of which says what it measures."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from fedplan.csvfile import MOST_PROBLEMS, Cells, Kind, number, read_blocks
from fedplan.errors import FedplanError, InputError, InputProblem

METERS = "auto, none, rapl, ina, battery, zeus, codecarbon, csv:FILE or constant:WATTS"
MOST_WATTS = 1e6  # of a device that takes part in a federation; above, a reading is wrong
_KINDS = {"power": Kind(required=("timestamp", "watts"), optional=())}
_BETWEEN_LOOKS_S = 0.25


class Meter(Protocol):
    """Joules from `start` to `stop`."""

    name: str
    is_measurement: bool  # False if it is an assumption

    def describe(self) -> str:
        """What is measured, in words."""

    def start(self) -> None:
        """Begin to count."""

    def stop(self) -> float:
        """Joules since `start`."""


@dataclass(slots=True)
class Window:
    """A period of time, once it is over; joules are None if nothing measured them."""

    seconds: float = 0.0
    joules: float | None = None

    @property
    def watts(self) -> float | None:
        """Mean power."""
        return None if self.joules is None else self.joules / self.seconds


@contextmanager
def metered(meter: Meter | None) -> Iterator[Window]:
    """What the block takes, in seconds and, with a meter, in joules."""
    window = Window()
    if meter is not None:
        meter.start()
    started = time.perf_counter()
    try:
        yield window
    finally:
        window.seconds = time.perf_counter() - started
        if meter is not None:  # also where the block failed: it may be reading in a thread
            window.joules = meter.stop()


class ConstantMeter:
    """A power that is assumed.

    >>> ConstantMeter(4.5).describe()
    '4.5 W whenever the device works: an assumption, not a measurement'
    """

    name = "constant"
    is_measurement = False

    def __init__(self, watts: float) -> None:
        if not 0 <= watts <= MOST_WATTS:
            raise InputError(
                f"`0 <= watts <= {MOST_WATTS:g}` must hold for a constant meter, but got {watts}."
            )
        self.watts = watts
        self._started = 0.0

    def describe(self) -> str:
        """What is assumed."""
        return f"{self.watts:g} W whenever the device works: an assumption, not a measurement"

    def start(self) -> None:
        """Begin to count."""
        self._started = time.perf_counter()

    def stop(self) -> float:
        """Watts times seconds since `start`."""
        return self.watts * (time.perf_counter() - self._started)


class _Reading(NamedTuple):
    at: float  # seconds since 1970
    watts: float


class PlugMeter:
    """A CSV file with the columns timestamp and watts that is still being written.

    Timestamps are ISO 8601 (local time where they name no zone) or seconds since 1970. The last
    reading of a window may come a little later than its end, so `stop` waits for it.
    """

    name = "csv"
    is_measurement = True

    def __init__(self, path: str | Path, *, wait_s: float = 15.0) -> None:
        self._path = Path(path)
        self._wait_s = wait_s
        self._started = 0.0
        read_power(self._path)  # raises now if it cannot be read

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


def find_meter(choice: str, root: Path = Path("/")) -> tuple[Meter | None, str]:
    """The meter that was asked for, and a sentence on the choice.

    auto takes the first that works of rapl, ina, battery and zeus; none is no meter. codecarbon
    guesses where it finds no counter, and is taken only when asked for.

    >>> find_meter("none")
    (None, 'Energy is not measured (--meter none): 0 stands for unknown.')
    """
    from fedplan.profiling.kernel_meters import KERNEL_METERS
    from fedplan.profiling.library_meters import LIBRARY_METERS

    kind, _, detail = choice.partition(":")
    meter: Meter
    match kind, detail:
        case "none", "":
            return None, "Energy is not measured (--meter none): 0 stands for unknown."
        case "auto", "":
            return _best_meter(root)
        case name, "" if name in KERNEL_METERS:
            meter = KERNEL_METERS[name](root)
        case name, "" if name in LIBRARY_METERS:
            meter = LIBRARY_METERS[name]()
        case "csv", path if path:
            meter = PlugMeter(path)
        case "constant", watts if watts:
            meter = ConstantMeter(_parse_watts(watts))
        case _:
            raise InputError(f"--meter must be {METERS}, but got {choice!r}.")
    return meter, f"Energy by {meter.describe()}."


def _best_meter(root: Path) -> tuple[Meter | None, str]:
    from fedplan.profiling.kernel_meters import KERNEL_METERS, MeterDeniedError
    from fedplan.profiling.library_meters import ZeusMeter

    denied = ""
    finders: list[Callable[[], Meter]] = [partial(make, root) for make in KERNEL_METERS.values()]
    for find in [*finders, ZeusMeter]:
        try:
            meter = find()
        except MeterDeniedError as error:  # there, but not readable: reported
            denied += f" {error}"
        except FedplanError:  # not there, or of no use now
            continue
        else:
            chosen = f"Energy by {meter.describe()} (--meter auto chose {meter.name})."
            return meter, chosen + denied
    hint = denied or (
        " Have a smart plug write a CSV file (--meter csv:FILE), or assume a power "
        "(--meter constant:WATTS)."
    )
    return None, f"No energy meter is at hand: 0 stands for unknown energy.{hint}"


def _parse_watts(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"--meter constant:WATTS needs a number, as in constant:4.5, but got {text!r}."
        ) from None


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
