"""The paper's prototype, whole: its Setup 1 on 20 light devices, each in a network namespace.

    sudo .venv/bin/python tools/prototype/setup1.py

On two fleets, the five (K, E) of Table I, the paper's method and fedplan's course train to the loss
0.365 over real TCP connections, as slow as each device's own. What came of it goes to
reproduction/results/setup1-prototype.json after every training, and a training that is there is not
repeated; the picture goes to reproduction/prototype/setup1.png. No second is scaled.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import click
import numpy as np

from fedplan import Fleet, uniform
from fedplan.atomic import draft_of
from fedplan.core.course import Course
from fedplan.core.records import RoundRecord, RunRecord, Stop
from fedplan.core.setting import Setting
from fedplan.course import Online
from fedplan.course.live import Live
from fedplan.errors import FedplanError
from fedplan.simulation import Simulator
from fedplan.studies import Experiment, build_experiment, read_study
from fedplan.studies.devices import observed_fleet
from fedplan.studies.outcome import forecast_of
from fedplan.studies.paper_pilots import choose_setting
from light import PORT, LightDevice, end_devices, enter, start_devices
from machine import LINK_ADDRESS, Commands, check_machine, make_hub, make_node, remove_namespaces
from profiles import Device, read_profile
from setup1_picture import draw, tables
from state import locked

REPRODUCTION = Path(__file__).parents[2] / "reproduction"
RESULTS = REPRODUCTION / "results" / "setup1-prototype.json"
PICTURE = REPRODUCTION / "prototype" / "setup1.png"
HUB = "fedplan-setup1"
PAPER, FEDPLAN = "paper's method", "fedplan"
SEED = 0
_SEGMENT, _FRAME = 1448, 1514  # bytes of a full packet: those of ours, and all that the link sees


def published_fleet(experiment: Experiment) -> Fleet:
    """The devices as the paper measured them: t_p and t_m with their standard deviations."""
    if experiment.fleet is None:
        raise AssertionError("the study has a [fleet]")
    return experiment.fleet


def pi_mix_fleet(experiment: Experiment) -> Fleet:
    """Three kinds of devices as unequal as those of pi-mix, with the paper's means of t_p and t_m.

    >>> from fedplan.studies import read_study
    >>> fleet = pi_mix_fleet(build_experiment(read_study("setup1")))
    >>> [round(float(value), 3) for value in fleet.comm_time_s[:4]]
    [0.617, 0.247, 0.123, 0.617]
    >>> round(fleet.mean("step_time_s"), 4), round(fleet.mean("comm_time_s"), 2)
    (0.0031, 0.34)
    """
    devices = read_profile("pi-mix", experiment.num_clients)
    published = published_fleet(experiment)
    steps = np.array([1 / (one.cpu or 1) for one in devices])
    rounds = np.array([1 / (one.up_mbit or 1) + 1 / (one.down_mbit or 1) for one in devices])
    return Fleet(
        step_time_s=steps * published.mean("step_time_s") / steps.mean(),
        comm_time_s=rounds * published.mean("comm_time_s") / rounds.mean(),
    )


FLEETS = {"as published": published_fleet, "pi-mix": pi_mix_fleet}


def device_for(client: int, comm_time_s: float, model_bytes: int) -> Device:
    """A device whose link takes that long for the model there and back, twice as quick down as up.

    >>> device = device_for(3, 0.34, 31_400)
    >>> device.name, round(device.up_mbit, 2), round(device.down_mbit, 2)
    ('device-3', 1.16, 2.32)
    """
    megabits = 8e-6 * model_bytes * _FRAME / _SEGMENT
    up_mbit = 1.5 * megabits / comm_time_s
    return Device(name=f"device-{client}", up_mbit=up_mbit, down_mbit=2 * up_mbit)


@contextmanager
def network(devices: Sequence[Device]) -> Iterator[list[str]]:
    """A namespace for each device, and the hub; all are removed, also those of a killed run."""
    names = [f"{HUB}-{device.name}" for device in devices]
    with locked(Path(gettempdir()) / HUB) as lock:
        commands = Commands(lock)
        remove_namespaces(commands, [*names, HUB])
        try:
            make_hub(commands, HUB)
            for place, device in enumerate(devices):
                make_node(commands, HUB, names[place], place, device)
            yield names
        finally:
            remove_namespaces(commands, [*names, HUB])


class Bench:
    """The devices of one fleet, connected, and what trains on them."""

    def __init__(
        self, experiment: Experiment, connections: dict[int, socket.socket], stop: Stop
    ) -> None:
        from fedplan.flower import FlowerRunner
        from fedplan.flower.app import WEIGHTS, pack, unpack
        from fedplan.flower.client import partition_name
        from light_grid import LightGrid

        logging.getLogger("flwr").setLevel(logging.ERROR)
        learner = experiment.simulator.learner
        samples = learner.samples()
        self._grid = LightGrid(connections)
        self._key, self._learner, self._stop = WEIGHTS, learner, stop
        self._runner = FlowerRunner(
            self._grid,
            lambda seed: pack(learner.initial(seed)),
            evaluate=lambda _, arrays: learner.evaluate(unpack(arrays), samples),
            learning_rate=experiment.rate,
            names=[partition_name(client) for client in range(experiment.num_clients)],
            samples=learner.sizes.tolist(),
            clock=self._grid,
        )

    def train(self, course: Course) -> tuple[RunRecord, dict[str, Any]]:
        """Train to the target; the run, and what is to be known of it."""
        self._grid.late_s.clear()
        start = time.monotonic()
        run = self._runner.run(course, self._stop, seed=SEED)
        wall_s = time.monotonic() - start
        late = np.array(self._grid.late_s)
        _, test_accuracy = self._learner.evaluate(
            self._runner.weights[self._key], self._learner.test_samples()
        )
        return run, {
            "status": run.status,
            "rounds": run.num_rounds,
            "seconds": run.time_s,
            "wall_s": wall_s,
            "test_accuracy": test_accuracy,
            "late_share": float((late > 0).mean()),
            "latest_s": float(late.max()),
            "load": os.getloadavg()[0],
            "losses": [round(loss, 5) for loss in run.losses if loss is not None],
            "round_s": [round(record.seconds, 4) for record in run.rounds],
        }


def simulated(experiment: Experiment, fleet: Fleet, course: Course) -> dict[str, Any]:
    """What the simulator says of a training on devices that take exactly what the fleet says."""
    simulator = Simulator(experiment.simulator.learner, experiment.rate, fleet)
    run = simulator.run(course, experiment.stop, seed=SEED)
    return {"rounds": run.num_rounds, "seconds": run.time_s}


def measure(experiment: Experiment, fleet: Fleet, known: dict[str, Any]) -> Iterator[None]:
    """Train by every method that is not known yet, one after the other; a step after each."""
    learner = experiment.simulator.learner
    model_bytes = learner.initial(SEED).nbytes
    comm_s = fleet.comm_time_s.tolist()
    devices = [device_for(client, seconds, model_bytes) for client, seconds in enumerate(comm_s)]
    with network(devices) as names:
        step_s = fleet.step_time_s.tolist()
        light = [LightDevice(place, step_s[place], name) for place, name in enumerate(names)]
        enter(HUB)
        server = socket.create_server((LINK_ADDRESS, PORT))
        connections, pids = start_devices(learner, light, server, (LINK_ADDRESS, PORT))
        try:
            yield from _train_all(
                experiment, fleet, Bench(experiment, connections, experiment.stop), known
            )
        finally:
            end_devices(connections, pids)
            server.close()


def _train_all(
    experiment: Experiment, fleet: Fleet, bench: Bench, known: dict[str, Any]
) -> Iterator[None]:
    planning = experiment.study.planning
    if FEDPLAN not in known:
        known |= _train_online(experiment, fleet, bench)
        yield
    for pair in planning.pairs or ():
        setting = uniform(*pair)
        if setting.label not in known:
            _, row = bench.train(setting)
            known[setting.label] = {**row, "simulated": simulated(experiment, fleet, setting)}
            yield
    if PAPER not in known:
        lower = Stop(max_rounds=experiment.stop.max_rounds, target_loss=planning.lower_loss)
        pilots = [_recalled(known, uniform(*pair)).until(lower) for pair in planning.pairs or ()]
        problem = replace(experiment.problem, fleet=Fleet(**known["devices"]))
        runs = [run for run in pilots if run is not None]
        choice = choose_setting(problem, planning, runs)
        if choice.setting is None:
            raise FedplanError(choice.message)
        setting = uniform(*choice.setting)
        _, row = bench.train(setting)
        known[PAPER] = {
            **row,
            "simulated": simulated(experiment, fleet, setting),
            "setting": setting.label,
            "pilots_s": sum(run.time_s for run in runs),
        }
        yield


def _train_online(experiment: Experiment, fleet: Fleet, bench: Bench) -> dict[str, Any]:
    """Train by fedplan's course, which knows nothing of the devices before."""
    live = build_experiment(experiment.study, federation=HUB).problem
    run, row = bench.train(Live.online(live, guessed=True))
    devices = observed_fleet([run], experiment.num_clients)
    if devices is None:
        raise AssertionError("the devices have answered")
    held = experiment.simulator.learner.sizes
    seen = replace(live, fleet=devices).with_samples(held)
    forecast = forecast_of([run], seen, experiment.stop.max_rounds)
    if forecast is not None:
        a_round_s = forecast.bill.time_s / forecast.rounds
        row["forecast"] = {
            "round": forecast.round,
            "seconds": forecast.bill.time_s,
            "interval": [a_round_s * rounds for rounds in forecast.interval],
        }
    told = replace(experiment.problem, fleet=fleet).with_samples(held)
    row["simulated"] = simulated(experiment, fleet, Online(problem=told, stop=experiment.stop))
    row["setting"] = ", ".join(
        f"{one.groups or 1} groups of {one.local_steps} steps" for one in run.decisions[-1:]
    )
    parts = ("step_time_s", "comm_time_s")
    costs = {part: [round(float(one), 6) for one in getattr(devices, part)] for part in parts}
    return {FEDPLAN: row, "devices": costs}


def _recalled(known: dict[str, Any], setting: Setting) -> RunRecord:
    """A training as it was kept."""
    row = known[setting.label]
    rounds = (
        RoundRecord(round=place, loss=loss, seconds=seconds)
        for place, (loss, seconds) in enumerate(zip(row["losses"], row["round_s"], strict=True))
    )
    return RunRecord(setting=setting, seed=SEED, status=row["status"], rounds=tuple(rounds))


def run_fleet(name: str) -> None:
    """Measure one fleet, in a process that has not been used yet: devices are forks of it."""
    experiment = build_experiment(read_study("setup1"))
    experiment.simulator.warm_up()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    known = results.setdefault(name, {})
    for _ in measure(experiment, FLEETS[name](experiment), known):
        with draft_of(RESULTS) as draft:
            draft.write_text(json.dumps(results) + "\n", encoding="utf-8")
        method = [key for key in known if key != "devices"][-1]
        row = known[method]
        click.echo(f"{name}: {method}: {row['rounds']} rounds, {row['seconds']:.1f} s")


@click.command()
@click.option("--fleet", type=click.Choice(list(FLEETS)), help="Only this one.")
@click.option("--show", "only_show", is_flag=True, help="Draw and print the last results again.")
def main(fleet: str | None, only_show: bool) -> None:
    """Train Setup 1 by every method, on 20 devices in network namespaces of this machine."""
    if fleet is not None:
        check_machine()
        run_fleet(fleet)
        return
    for name in () if only_show else FLEETS:
        subprocess.run([sys.executable, __file__, "--fleet", name], check=True)
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    draw(results, PICTURE)
    click.echo(tables(results))


if __name__ == "__main__":
    main()
