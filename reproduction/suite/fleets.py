"""Devices that tasks are priced on, and what their seconds and joules are worth."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Literal

import numpy as np

from fedplan import Fleet, Objective, Problem, draw_fleet, with_stragglers

# Setup 1's prototype, as the paper measured it, and as spread out as other fleets here: standard
# deviations of a step and of communication, in seconds, and the law.
RASPBERRY_PIS: dict[str, tuple[float, float, Literal["normal", "lognormal"]]] = {
    "Raspberry Pis": (2.3e-4, 1.56e-3, "normal"),
    "Pis, normal": (3.1e-3 / 3, 0.34 / 3, "normal"),
    "Pis, lognormal": (3.1e-3, 0.34, "lognormal"),
}
WATTS = 50.0  # of a hospital's machine while it computes or sends


def make_fleet(name: str, num_clients: int, data: Path, seed: int = 1) -> Fleet:
    """The devices, with the means of Setup 3 but for hospitals and Raspberry Pis."""
    if name == "hospitals":
        return _hospitals(num_clients, data / "hospitals", seed)
    if name in RASPBERRY_PIS:
        step_sd, comm_sd, law = RASPBERRY_PIS[name]
        return draw_fleet(
            num_clients, step_time_s=(3.1e-3, step_sd), comm_time_s=(0.34, comm_sd), law=law,
            seed=seed,
        )  # fmt: skip
    spread = {"normal": 1 / 3, "lognormal": 1.0, "tenth slow": 0.1}[name]
    fleet = draw_fleet(
        num_clients,
        step_time_s=(0.1, 0.1 * spread),
        comm_time_s=(2.0, 2.0 * spread),
        step_energy_j=(1e-3, 1e-3 / 3),
        comm_energy_j=(2e-2, 2e-2 / 3),
        law="lognormal" if name == "lognormal" else "normal",
        seed=seed,
    )
    return with_stragglers(fleet, 0.1, 10.0) if name == "tenth slow" else fleet


def _hospitals(num_clients: int, folder: Path, seed: int) -> Fleet:
    """Every client has the machine of one measured site and the link of another."""
    random = np.random.default_rng(seed)
    compute, network = (_columns(folder / f"{name}.csv") for name in ("compute", "network"))
    machine = random.integers(len(compute["seconds_per_patient"]), size=num_clients)
    link = random.integers(len(network["download_s"]), size=num_clients)
    step_s = compute["seconds_per_patient"][machine]
    comm_s = (network["download_s"] + network["upload_s"])[link]
    return Fleet(
        step_time_s=step_s,
        comm_time_s=comm_s,
        step_energy_j=WATTS * step_s,
        comm_energy_j=WATTS * comm_s,
    )


def _columns(path: Path) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def make_problem(fleet_name: str, fleet: Fleet, weight: float) -> Problem:
    """What a second and a joule are worth; of hospitals, a kilojoule."""
    objective = Objective.weighted(weight)
    if fleet_name == "hospitals":
        objective = Objective(per_second=1.0 - weight, per_joule=weight / 1000.0)
    return Problem(fleet=fleet, objective=objective)
