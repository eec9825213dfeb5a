"""Meters: where joules come from, each honest about what it measures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fedplan.errors import FedplanError, InputError

METERS = "auto, none, rapl, ina, battery, csv:FILE or constant:WATTS"
MOST_WATTS = 1e6  # of a device that takes part in a federation; above, a reading is wrong


class Meter(Protocol):
    """Joules from `start` to `stop`."""

    name: str
    is_measurement: bool  # False where it is an assumption

    def describe(self) -> str:
        """What is measured, in words."""
        ...

    def start(self) -> None:
        """Begin to count."""
        ...

    def stop(self) -> float:
        """Joules since `start`."""
        ...


@dataclass(slots=True)
class Window:
    """A stretch of time, once it is over; joules are None where nothing measured them."""

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
    """A power that is taken for granted.

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


def find_meter(choice: str, root: Path = Path("/")) -> tuple[Meter | None, str]:
    """The meter that was asked for, and what is to be said of the choice.

    auto takes the first that works of rapl, ina and battery; none is no meter.

    >>> find_meter("none")
    (None, 'Energy is not measured (--meter none): 0 stands for unknown.')
    """
    from fedplan.profiling.kernel_meters import KERNEL_METERS
    from fedplan.profiling.plug import PlugMeter

    kind, _, detail = choice.partition(":")
    meter: Meter
    match kind, detail:
        case "none", "":
            return None, "Energy is not measured (--meter none): 0 stands for unknown."
        case "auto", "":
            return _best_meter(root)
        case name, "" if name in KERNEL_METERS:
            meter = KERNEL_METERS[name](root)
        case "csv", path if path:
            meter = PlugMeter(path)
        case "constant", watts if watts:
            meter = ConstantMeter(_parse_watts(watts))
        case _:
            raise InputError(f"--meter must be {METERS}, but got {choice!r}.")
    return meter, f"Energy by {meter.describe()}."


def _best_meter(root: Path) -> tuple[Meter | None, str]:
    from fedplan.profiling.kernel_meters import KERNEL_METERS, MeterDeniedError

    denied = ""
    for make in KERNEL_METERS.values():
        try:
            meter = make(root)
        except MeterDeniedError as error:  # there, but closed: worth a word
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
