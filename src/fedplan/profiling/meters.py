"""Meters: where joules come from, each honest about what it measures.

A meter of the kernel reads files below a root folder, `/` unless a test writes one of its own.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fedplan.errors import FedplanError, InputError

METERS = "auto, none, rapl, ina, battery, csv:FILE or constant:WATTS"
_MOST_WATTS = 1e6  # of a device that takes part in a federation; above, a reading is wrong
_BETWEEN_READINGS_S = 0.05


class MeterDeniedError(InputError):
    """A meter is there, but may not be read."""


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
        if not 0 <= watts <= _MOST_WATTS:
            raise InputError(
                f"`0 <= watts <= {_MOST_WATTS:g}` must hold for a constant meter, but got {watts}."
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


class _SampledMeter(ABC):
    """A meter that is read again and again while it counts, in a thread of its own.

    The first and the last reading are made by whoever starts and stops it, right then: on a busy
    machine a thread may be late.
    """

    is_measurement = True

    def __init__(self) -> None:
        self._joules = 0.0
        self._reading = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._fault: FedplanError | None = None

    def start(self) -> None:
        """Begin to count."""
        self._joules, self._fault = 0.0, None
        self._stopped.clear()
        self._thread = threading.Thread(target=self._read_on, daemon=True)
        with self._reading:
            self._thread.start()
            try:
                self._begin()
            except FedplanError:
                self._stopped.set()
                raise

    def stop(self) -> float:
        """Joules since `start`; what went wrong meanwhile is raised here."""
        if self._thread is None:
            raise AssertionError("a meter is started before it is stopped")
        with self._reading:
            self._stopped.set()
            if self._fault is None:
                self._joules += self._joules_since_last()
        self._thread.join()
        if self._fault is not None:
            raise self._fault
        return self._joules

    def _read_on(self) -> None:
        try:
            while not self._stopped.wait(_BETWEEN_READINGS_S):
                with self._reading:
                    if not self._stopped.is_set():
                        self._joules += self._joules_since_last()
        except FedplanError as error:
            self._fault = error

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _joules_since_last(self) -> float: ...


class _PowerMeter(_SampledMeter):
    """A sensor of watts, integrated over time by trapezoids."""

    def __init__(self, read_watts: Callable[[], float]) -> None:
        super().__init__()
        self._read_watts = read_watts
        self._last = (0.0, 0.0)

    def _begin(self) -> None:
        self._last = (time.perf_counter(), self._read_watts())

    def _joules_since_last(self) -> float:
        then, before = self._last
        self._last = now, watts = time.perf_counter(), self._read_watts()
        return (now - then) * (before + watts) / 2


class RaplMeter(_SampledMeter):
    """The processor's own energy counters (powercap), all packages together."""

    name = "rapl"

    def __init__(self, root: Path = Path("/")) -> None:
        super().__init__()
        # Not intel-rapl-mmio, which counts package-0 again, nor cores and memory within packages.
        zones = sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
        self._packages = [
            zone for zone in zones if _text(zone / "name", self.name).startswith("package")
        ]
        if not self._packages:
            raise InputError(
                "meter rapl: this machine has no energy counters (no intel-rapl package in "
                "/sys/class/powercap). A virtual machine never has. Choose another --meter."
            )
        # A counter starts again at 0 after this much.
        self._ranges = [_number(zone / "max_energy_range_uj", self.name) for zone in self._packages]
        self._last = self._read()

    def describe(self) -> str:
        """What is measured."""
        packages = len(self._packages)
        return (
            f"RAPL counters of {packages} processor package{'s' * (packages > 1)}: the processor "
            "alone, without memory, screen, radio and power supply"
        )

    def _read(self) -> list[float]:
        return [_number(zone / "energy_uj", self.name) for zone in self._packages]

    def _begin(self) -> None:
        self._last = self._read()

    def _joules_since_last(self) -> float:
        before, self._last = self._last, self._read()
        micro = 0.0
        for then, now, range_ in zip(before, self._last, self._ranges, strict=True):
            micro += now - then if now >= then else now - then + range_
        return micro / 1e6


class InaMeter(_PowerMeter):
    """Power sensors of the INA family that boards have soldered in, through hwmon."""

    name = "ina"

    def __init__(self, root: Path = Path("/")) -> None:
        chips = sorted((root / "sys/class/hwmon").glob("hwmon*"))
        self._sensors = [
            sensor
            for chip in chips
            if (chip / "name").exists() and _text(chip / "name", self.name).startswith("ina")
            for sensor in sorted(chip.glob("power*_input"))
        ]
        if not self._sensors:
            raise InputError(
                "meter ina: this machine has no INA power sensor (no hwmon whose name begins with "
                "ina has a power1_input). Load its driver, or choose another --meter."
            )
        super().__init__(self._read)
        self._read()

    def describe(self) -> str:
        """What is measured."""
        names = ", ".join(f"{sensor.parent.name}/{sensor.name}" for sensor in self._sensors)
        return f"INA power sensors added up ({names}): the supply lines they sit on"

    def _read(self) -> float:
        return sum(_watts(_number(sensor, self.name) / 1e6, sensor) for sensor in self._sensors)


class BatteryMeter(_PowerMeter):
    """What flows out of the battery: the whole device, as long as it is not charging."""

    name = "battery"

    def __init__(self, root: Path = Path("/")) -> None:
        supplies = sorted((root / "sys/class/power_supply").glob("*"))
        self._batteries = [supply for supply in supplies if _is_battery(supply)]
        if not self._batteries:
            raise InputError(
                "meter battery: this machine has no battery (none in /sys/class/power_supply that "
                "tells power_now, or current_now and voltage_now). Choose another --meter."
            )
        super().__init__(self._read)
        try:
            self._read()
        except FedplanError as error:
            raise InputError(str(error)) from error

    def describe(self) -> str:
        """What is measured."""
        names = ", ".join(battery.name for battery in self._batteries)
        return f"discharge of {names}: the whole device, its screen included"

    def _read(self) -> float:
        states = {_text(battery / "status", self.name) for battery in self._batteries}
        if "Discharging" not in states or "Charging" in states:
            raise FedplanError(
                "meter battery: the battery must be discharging, but its status is "
                f"{', '.join(sorted(states))}. Unplug the charger while measuring."
            )
        return sum(self._power(battery) for battery in self._batteries)

    def _power(self, battery: Path) -> float:
        if (battery / "power_now").exists():
            watts = abs(_number(battery / "power_now", self.name)) / 1e6
        else:  # some drivers give a current that leaves the battery as a negative one
            current = abs(_number(battery / "current_now", self.name)) / 1e6
            watts = current * _number(battery / "voltage_now", self.name) / 1e6
        return _watts(watts, battery)


def _is_battery(supply: Path) -> bool:
    if not (supply / "type").exists() or _text(supply / "type", "battery") != "Battery":
        return False
    if (supply / "scope").exists() and _text(supply / "scope", "battery") == "Device":
        return False  # of a mouse or a headset
    return (supply / "power_now").exists() or (
        (supply / "current_now").exists() and (supply / "voltage_now").exists()
    )


def find_meter(choice: str, root: Path = Path("/")) -> tuple[Meter | None, str]:
    """The meter that was asked for, and what is to be said of the choice.

    auto takes the first that works of rapl, ina and battery; none is no meter.

    >>> find_meter("none")
    (None, 'Energy is not measured (--meter none): 0 stands for unknown.')
    """
    from fedplan.profiling.plug import PlugMeter

    kind, _, detail = choice.partition(":")
    meter: Meter
    match kind, detail:
        case "none", "":
            return None, "Energy is not measured (--meter none): 0 stands for unknown."
        case "auto", "":
            return _best_meter(root)
        case "rapl", "":
            meter = RaplMeter(root)
        case "ina", "":
            meter = InaMeter(root)
        case "battery", "":
            meter = BatteryMeter(root)
        case "csv", path if path:
            meter = PlugMeter(path)
        case "constant", watts if watts:
            meter = ConstantMeter(_parse_watts(watts))
        case _:
            raise InputError(f"--meter must be {METERS}, but got {choice!r}.")
    return meter, f"Energy by {meter.describe()}."


def _best_meter(root: Path) -> tuple[Meter | None, str]:
    denied = ""
    for make in (RaplMeter, InaMeter, BatteryMeter):
        try:
            meter: Meter = make(root)
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


def _text(path: Path, meter: str) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except PermissionError:
        raise MeterDeniedError(
            f"meter {meter}: no permission to read {path}, which the kernel keeps for root. "
            f"Type: sudo chmod a+r {path} (until the next restart), or choose another --meter."
        ) from None
    except OSError as error:
        raise FedplanError(f"meter {meter}: {path} cannot be read ({error.strerror}).") from error


def _number(path: Path, meter: str) -> float:
    text = _text(path, meter)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FedplanError(f"meter {meter}: {path} must hold a number, but holds {text[:40]!r}.")
    return value


def _watts(value: float, source: Path) -> float:
    if not 0 <= value <= _MOST_WATTS:
        raise FedplanError(
            f"`0 <= watts <= {_MOST_WATTS:g}` must hold for {source}, but got {value:g}."
        )
    return value
