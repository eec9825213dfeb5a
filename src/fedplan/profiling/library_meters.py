"""Meters of other libraries, for who has them installed: Zeus and CodeCarbon."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from fedplan.errors import FedplanError
from fedplan.profiling.meters import Meter
from fedplan.words import JOULES_PER_KWH

_WINDOW = "fedplan"


class ZeusMeter:
    """GPUs, processors and memory by their own counters, read by Zeus."""

    name = "zeus"
    is_measurement = True

    def __init__(self) -> None:
        self._monitor = _made("zeus", "zeus-ml", _monitor)
        self._gpus, self._cpus = len(self._monitor.gpu_indices), len(self._monitor.cpu_indices)
        if not self._gpus + self._cpus:
            raise FedplanError("Zeus finds neither a GPU nor a processor that counts its energy.")

    def describe(self) -> str:
        """What is measured."""
        return f"Zeus: the counters of {self._gpus} GPUs and {self._cpus} processor packages"

    def start(self) -> None:
        """Begin to count."""
        self._monitor.begin_window(_WINDOW)

    def stop(self) -> float:
        """Joules since `start`."""
        seen = self._monitor.end_window(_WINDOW)
        parts = (seen.gpu_energy, seen.cpu_energy, seen.dram_energy)
        return float(sum(sum(part.values()) for part in parts if part))


class CodeCarbonMeter:
    """What CodeCarbon makes of a device: counters where it finds any, else a guess by load."""

    name = "codecarbon"
    is_measurement = False

    def __init__(self) -> None:
        self._tracker = _made("codecarbon", "codecarbon", _tracker)
        self._counted = 0.0

    def describe(self) -> str:
        """What is measured or guessed."""
        return "CodeCarbon: counters where it finds any, else a guess by the processor's load"

    def start(self) -> None:
        """Begin to count."""
        self._tracker.start()

    def stop(self) -> float:
        """Joules since `start`; the tracker's own are since it was made."""
        self._tracker.stop()
        before, self._counted = self._counted, self._tracker.final_emissions_data.energy_consumed
        return float(JOULES_PER_KWH * (self._counted - before))


def _monitor() -> Any:
    from zeus.monitor import ZeusMonitor

    return ZeusMonitor(approx_instant_energy=True)


def _tracker() -> Any:
    from codecarbon import OfflineEmissionsTracker

    # The country is for carbon alone, which is not asked for here; without one, it looks up where
    # this is.
    return OfflineEmissionsTracker(
        country_iso_code="USA", output_methods=[], log_level="error", allow_multiple_runs=True
    )


def _made(package: str, install: str, make: Callable[[], Any]) -> Any:
    if find_spec(package) is None:
        raise FedplanError(f"{package} is not installed. Type: pip install {install}")
    try:
        return make()
    except Exception as error:  # whatever a driver's own package raises where there is no driver
        raise FedplanError(f"{package} is installed, but cannot be used here: {error!r}") from error


LIBRARY_METERS: dict[str, Callable[[], Meter]] = {
    ZeusMeter.name: ZeusMeter,
    CodeCarbonMeter.name: CodeCarbonMeter,
}
