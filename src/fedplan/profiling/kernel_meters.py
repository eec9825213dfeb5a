"""Energy meters of the Linux kernel, below a root folder that tests can replace."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fedplan.csvfile import number
from fedplan.errors import FedplanError, InputError
from fedplan.profiling.meters import MOST_WATTS, Meter

_BETWEEN_READINGS_S = 0.05


class MeterDeniedError(InputError):
    """A meter is there, but may not be read."""


class SampledMeter:
    """A kernel meter that its own thread reads repeatedly while it counts.

    `start` and `stop` make the first and the last reading themselves: on a busy machine the thread
    may be late.
    """

    is_measurement = True

    def __init__(
        self, name: str, description: str, readings: Callable[[], Iterator[float]]
    ) -> None:
        """`readings()` yields 0 first, and from then on the joules since the previous reading."""
        self.name = name
        self._description = description
        self._new_readings = readings
        self._readings = readings()
        next(self._readings)  # raises now if it cannot be read
        self._joules = 0.0
        self._reading = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._fault: FedplanError | None = None

    def describe(self) -> str:
        """What is measured."""
        return self._description

    def start(self) -> None:
        """Begin to count."""
        self._fault, self._readings = None, self._new_readings()
        self._stopped.clear()
        self._thread = threading.Thread(target=self._read_on, daemon=True)
        with self._reading:
            self._thread.start()
            try:
                self._joules = next(self._readings)
            except FedplanError:
                self._stopped.set()
                raise

    def stop(self) -> float:
        """Joules since `start`; raises any error that occurred meanwhile."""
        if self._thread is None:
            raise AssertionError("a meter is started before it is stopped")
        with self._reading:
            self._stopped.set()
            if self._fault is None:
                self._joules += next(self._readings)
        self._thread.join()
        if self._fault is not None:
            raise self._fault
        return self._joules

    def _read_on(self) -> None:
        try:
            while not self._stopped.wait(_BETWEEN_READINGS_S):
                with self._reading:
                    if not self._stopped.is_set():
                        self._joules += next(self._readings)
        except FedplanError as error:
            self._fault = error


def _integrated(read_watts: Callable[[], float]) -> Iterator[float]:
    """Joules between readings of a power, by trapezoids."""
    then, before = time.perf_counter(), read_watts()
    yield 0.0
    while True:
        now, watts = time.perf_counter(), read_watts()
        yield (now - then) * (before + watts) / 2
        then, before = now, watts


def rapl_meter(root: Path) -> Meter:
    """The processor's own energy counters (powercap), all packages together."""
    # Not intel-rapl-mmio, which counts package-0 again, nor cores and memory within packages.
    zones = sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
    packages = [zone for zone in zones if _text(zone / "name", "rapl").startswith("package")]
    if not packages:
        raise InputError(
            "meter rapl: this machine has no energy counters (no intel-rapl package in "
            "/sys/class/powercap). A virtual machine never has. Choose another --meter."
        )
    # A counter starts again at 0 after this much.
    ranges = [_number(zone / "max_energy_range_uj", "rapl") for zone in packages]

    def read() -> list[float]:
        return [_number(zone / "energy_uj", "rapl") for zone in packages]

    def readings() -> Iterator[float]:
        before = read()
        yield 0.0
        while True:
            now = read()
            counts = zip(before, now, ranges, strict=True)
            yield sum((end - start) % range_ for start, end, range_ in counts) / 1e6
            before = now

    description = (
        f"RAPL counters of {len(packages)} processor package{'s' * (len(packages) > 1)}: the "
        "processor alone, without memory, screen, radio and power supply"
    )
    return SampledMeter("rapl", description, readings)


def ina_meter(root: Path) -> Meter:
    """INA power sensors that are soldered onto boards, through hwmon."""
    sensors = [
        sensor
        for chip in sorted((root / "sys/class/hwmon").glob("hwmon*"))
        if (chip / "name").exists() and _text(chip / "name", "ina").startswith("ina")
        for sensor in sorted(chip.glob("power*_input"))
    ]
    if not sensors:
        raise InputError(
            "meter ina: this machine has no INA power sensor (no hwmon whose name begins with "
            "ina has a power1_input). Load its driver, or choose another --meter."
        )

    def watts() -> float:
        return sum(_watts(_number(sensor, "ina") / 1e6, sensor) for sensor in sensors)

    names = ", ".join(f"{sensor.parent.name}/{sensor.name}" for sensor in sensors)
    description = f"INA power sensors added up ({names}): the supply lines they sit on"
    return SampledMeter("ina", description, lambda: _integrated(watts))


def battery_meter(root: Path) -> Meter:
    """The power drawn from the battery: the whole device, as long as it is not charging."""
    supplies = sorted((root / "sys/class/power_supply").glob("*"))
    batteries = [supply for supply in supplies if _is_battery(supply)]
    if not batteries:
        raise InputError(
            "meter battery: this machine has no battery (none in /sys/class/power_supply that "
            "tells power_now, or current_now and voltage_now). Choose another --meter."
        )

    def watts() -> float:
        states = {_text(battery / "status", "battery") for battery in batteries}
        if "Discharging" not in states or "Charging" in states:
            raise InputError(
                "meter battery: the battery must be discharging, but its status is "
                f"{', '.join(sorted(states))}. Unplug the charger while measuring."
            )
        return sum(_battery_watts(battery) for battery in batteries)

    names = ", ".join(battery.name for battery in batteries)
    description = f"discharge of {names}: the whole device, its screen included"
    return SampledMeter("battery", description, lambda: _integrated(watts))


def _battery_watts(battery: Path) -> float:
    if (battery / "power_now").exists():
        return _watts(abs(_number(battery / "power_now", "battery")) / 1e6, battery)
    # Some drivers give a current that leaves the battery as a negative one.
    current = abs(_number(battery / "current_now", "battery")) / 1e6
    return _watts(current * _number(battery / "voltage_now", "battery") / 1e6, battery)


def _is_battery(supply: Path) -> bool:
    if not (supply / "type").exists() or _text(supply / "type", "battery") != "Battery":
        return False
    if (supply / "scope").exists() and _text(supply / "scope", "battery") == "Device":
        return False  # of a mouse or a headset
    return (supply / "power_now").exists() or (
        (supply / "current_now").exists() and (supply / "voltage_now").exists()
    )


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
    value = number(text)
    if not math.isfinite(value):
        raise FedplanError(f"meter {meter}: {path} must hold a number, but holds {text[:40]!r}.")
    return value


def _watts(value: float, source: Path) -> float:
    if not 0 <= value <= MOST_WATTS:
        raise FedplanError(
            f"`0 <= watts <= {MOST_WATTS:g}` must hold for {source}, but got {value:g}."
        )
    return value


# The best first.
KERNEL_METERS = {"rapl": rapl_meter, "ina": ina_meter, "battery": battery_meter}
