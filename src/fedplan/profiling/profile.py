"""Profile: the cost of a step and of an exchange on this device, and its row in a fleet.csv."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedplan.atomic import check_target
from fedplan.core.fleet import QUANTITIES, Fleet
from fedplan.errors import InputError, InputProblem
from fedplan.profiling.meters import Meter, Window, metered
from fedplan.profiling.regression import Measured, exactly
from fedplan.profiling.timing import StepTiming, time_steps
from fedplan.profiling.transfer import Address, ExchangeTiming, time_exchanges
from fedplan.tables import read_fleet, write_fleet

NOISY = 0.1  # a spread, or a share of the processor lost to others, that needs a caution


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was measured.

    comm_time_s : None if not requested; `exchanges` are None if it was stated.
    step_energy_j, comm_energy_j : above idle; None where unknown.
    idle_watts : the idle power that was subtracted; None without a meter.
    """

    steps: StepTiming
    exchanges: ExchangeTiming | None
    comm_time_s: Measured | None
    step_energy_j: Measured | None
    comm_energy_j: Measured | None
    idle_watts: float | None

    @property
    def step_time_s(self) -> Measured:
        """Seconds of a local step."""
        return self.steps.step_time_s

    def quantities(self) -> dict[str, float]:
        """The row of a fleet, with 0 for what is unknown."""
        return {name: part.value if (part := getattr(self, name)) else 0.0 for name in QUANTITIES}

    def cautions(self) -> Iterator[str]:
        """What to be careful about, and what to do."""
        remedy = "Close other programs and measure longer (--seconds 10)."
        if self.steps.processor_share < 1 - NOISY:
            lost = 1 - self.steps.processor_share
            yield f"Other programs had the processor {lost:.0%} of the time. {remedy}"
        for name, part in (("a local step", self.step_time_s), ("an exchange", self.comm_time_s)):
            if part is not None and part.spread > NOISY:
                yield f"The time of {name} is uncertain by {part.spread:.0%}. {remedy}"
        if self.step_energy_j is not None and self.step_energy_j.value == 0:
            yield "By the meter, training draws no more power than idling: its energy is 0."
        if self.step_energy_j is not None and self.comm_time_s and self.comm_energy_j is None:
            yield "The energy of a stated exchange is unknown: 0. Measure one with --server."


def profile_device(
    train: Callable[[int], None],
    *,
    model_bytes: int,
    seconds: float,
    server: Address | None = None,
    comm_time_s: float | None = None,
    meter: Meter | None = None,
    idle_watts: float | None = None,
) -> Profile:
    """Measure `train(local_steps)` and the exchange of a model of this many bytes.

    seconds : about how long to measure each of idling, training and exchanging.
    comm_time_s : the time of an exchange, if there is no server to measure it with.
    idle_watts : idle power to subtract; None measures it first, or assumes 0
        if the meter is an assumption.

    A step's joules are the mean power while training, above idle, times the seconds of a step; an
    exchange's likewise. Their intervals are those of the seconds.
    """
    if idle_watts is None and meter is not None:
        idle_watts = _idle_watts(meter, seconds) if meter.is_measurement else 0.0
    exchanges = comm_energy = comm = None
    if server is not None:  # first, since it is what may fail
        exchanges = time_exchanges(server, model_bytes, seconds=seconds, meter=meter)
        comm = exchanges.comm_time_s
        comm_energy = _energy(comm, exchanges.window, idle_watts)
    steps = time_steps(train, seconds=seconds, meter=meter)
    if comm is None and comm_time_s is not None:
        comm = exactly(comm_time_s)
        if meter is not None and not meter.is_measurement:  # assumed for any work alike
            comm_energy = _energy(comm, steps.window, idle_watts)
    return Profile(
        steps=steps,
        exchanges=exchanges,
        comm_time_s=comm,
        step_energy_j=_energy(steps.step_time_s, steps.window, idle_watts),
        comm_energy_j=comm_energy,
        idle_watts=idle_watts,
    )


def _idle_watts(meter: Meter, seconds: float) -> float:
    with metered(meter) as window:
        time.sleep(seconds)
    return window.watts or 0.0


def _energy(duration: Measured, window: Window, idle_watts: float | None) -> Measured | None:
    if window.watts is None:
        return None
    return duration.times(max(0.0, window.watts - (idle_watts or 0.0)))


def read_row(path: str | os.PathLike[str], device: str) -> tuple[Fleet | None, int | None]:
    """The fleet in a file and the device's row in it, each None if there is none.

    Refuses a file that is not a fleet or cannot be written, and a name shared by several rows.
    """
    check_target(path, (".csv",))
    if device != device.strip() or not device.isprintable() or not device:
        raise InputError(
            f"--device must be one line of text without spaces around it, but got {device!r}."
        )
    if not Path(path).exists():
        return None, None
    fleet = read_fleet(path)
    rows = [row for row, name in enumerate(fleet.device or ()) if name == device]
    if len(rows) > 1:
        message = (
            f"device {device} stands in {len(rows)} rows, so none can be replaced. Leave one, or "
            "give another --device."
        )
        raise InputError(InputProblem(source=Path(path).name, message=message))
    return fleet, rows[0] if rows else None


def write_row(path: str | os.PathLike[str], device: str, quantities: dict[str, float]) -> bool:
    """Add the device's row to the file, or replace the row it has; returns whether it did.

    A replaced row keeps its count and its samples; a new one gets the median of samples.
    """
    fleet, row = read_row(path, device)
    if fleet is None:
        write_fleet(path, Fleet(**quantities, device=[device]))
        return False
    columns = {name: getattr(fleet, name).tolist() for name in (*QUANTITIES, "samples", "count")}
    names = list(fleet.device or [""] * fleet.count.size)
    if row is None:
        names.append(device)
        added = {**quantities, "samples": float(np.median(fleet.samples)), "count": 1}
        for name, values in columns.items():
            values.append(added[name])
    else:
        for name in QUANTITIES:
            columns[name][row] = quantities[name]
    write_fleet(path, Fleet(**columns, device=names))
    return row is not None
