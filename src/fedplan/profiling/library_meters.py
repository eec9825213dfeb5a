"""Energy meters of optional libraries: Zeus and CodeCarbon."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from fedplan.errors import FedplanError
from fedplan.profiling.meters import Meter
from fedplan.words import JOULES_PER_KWH

_WINDOW = "fedplan"


class ZeusMeter:
    """GPUs, processors and memory by their own counters, read by Zeus."""

    name = "zeus"
    is_measurement = True

    def __init__(self) -> None:
        with _needs("zeus", "zeus-ml"):
            from zeus.monitor import ZeusMonitor

            self._monitor = ZeusMonitor(approx_instant_energy=True)
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
        with _needs("codecarbon", "codecarbon"):
            from codecarbon import OfflineEmissionsTracker

            self._tracker = OfflineEmissionsTracker(
                country_iso_code="USA",  # only for carbon; without it our location is looked up
                output_methods=[], log_level="error", allow_multiple_runs=True,
            )  # fmt: skip
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


@contextmanager
def _needs(package: str, install: str) -> Iterator[None]:
    if find_spec(package) is None:
        raise FedplanError(f"{package} is not installed. Type: pip install {install}")
    try:
        yield
    except Exception as error:  # whatever a driver's own package raises where there is no driver
        raise FedplanError(f"{package} is installed, but cannot be used here: {error!r}") from error


LIBRARY_METERS: dict[str, Callable[[], Meter]] = {
    ZeusMeter.name: ZeusMeter,
    CodeCarbonMeter.name: CodeCarbonMeter,
}
