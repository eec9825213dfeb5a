"""The networked prototype: what its devices take, against their limits, and a plan run on them.

    sudo .venv/bin/python reproduction/prototype.py

Two prototypes are made, one after the other, on this machine (Linux, root, with nothing else
running). On the first, devices without a network's limits say what the work itself takes; that and
the limits of the five devices of the second imply their seconds, which are then measured by a whole
study: profile, pilots, plan, training. What came of it goes to reproduction/results/prototype.json
and to the pictures in reproduction/prototype. Interrupted, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedplan.atomic import draft_of
from fedplan.figures.for_print import print_style
from fedplan.studies import build_experiment, read_study

HERE = Path(__file__).parent
INPUTS = HERE / "prototype"
TOOL = HERE.parent / "tools" / "prototype"
RESULTS = HERE / "results" / "prototype.json"
PICTURES = INPUTS / "devices.png", INPUTS / "run.png"
ALLOWED = 0.15  # how far what is measured may be from what the limits imply
# Two devices, and a target that is soon reached: only their seconds are asked for.
REFERENCE = ("num-clients=2", "target-loss=0.5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a step and a round take of a core, and what a round takes whatever the core.

    A device with a share q of a core, U Mbit/s up and D down takes step_cpu_s / q for a step, and
    round_fixed_s + round_cpu_s / q + model_mbit (1 / U + 1 / D) for all else of a round.
    """

    step_cpu_s: float
    round_cpu_s: float
    round_fixed_s: float
    model_mbit: float

    def step_s(self, device: dict[str, Any]) -> float:
        """Seconds of a step on a device with these limits."""
        return float(self.step_cpu_s / device["cpu"])

    def round_s(self, device: dict[str, Any]) -> float:
        """Seconds of a round on it, besides its steps."""
        transfer = sum(self.model_mbit / device[way] for way in ("up-mbit", "down-mbit"))
        return float(self.round_fixed_s + self.round_cpu_s / device["cpu"] + transfer)


def measure(profile: Path, overrides: tuple[str, ...], folder: Path, *more: str) -> dict[str, Any]:
    """Make a prototype, run the study on it, and remove it again: its devices, and what came of it.

    What the folder has from an earlier time is not trained again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store = f"sqlite:///{folder.resolve() / 'fedplan.db'}"
    place = ("--folder", str(folder))
    prototype("down", *place)  # of a run that was killed
    try:
        made = json.loads(prototype("up", "--profile", str(profile), *place, "--format", "json"))
        study = shlex.join([str(INPUTS / "study.toml"), *overrides])
        line = made["next"]["study"].replace("STUDY", study)
        run = json.loads(call([*shlex.split(line), "--store", store, "--format", "json", *more]))
    finally:
        prototype("down", *place)
    seen = json.loads(fedplan("profile", "--fleet-from", store, "--format", "json"))
    return {"run": run, "devices": seen["devices"]}


def prototype(*words: str) -> str:
    """What a command of the prototype tool prints."""
    return call([sys.executable, str(TOOL), *words])


def fedplan(*words: str) -> str:
    """What a fedplan command prints."""
    return call([sys.executable, "-m", "fedplan.cli", *words])


def call(command: list[str]) -> str:
    """What a command prints on standard output; the rest is shown as it comes."""
    print("$", shlex.join(command), flush=True)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def work_of(reference: list[dict[str, Any]], model_mbit: float) -> Work:
    """What two devices with different shares of a core, and nothing else, took, as work."""
    shares = [device["cpu"] for device in read_devices(INPUTS / "reference.toml")]
    steps, rounds = (
        [device[part]["value"] for device in reference] for part in ("step_time_s", "comm_time_s")
    )
    slope = (rounds[1] - rounds[0]) / (1 / shares[1] - 1 / shares[0])
    # Of the steps, the slower device's are the better measured: they took longer.
    return Work(
        step_cpu_s=steps[1] * shares[1],
        round_cpu_s=slope,
        round_fixed_s=rounds[0] - slope / shares[0],
        model_mbit=model_mbit,
    )


def read_devices(path: Path) -> list[dict[str, Any]]:
    """The devices of a profile, as its file has them."""
    devices: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["device"]
    return devices


def model_mbit() -> float:
    """Megabits of the model, one way."""
    learner = build_experiment(read_study(str(INPUTS / "study.toml"))).simulator.learner
    return 8e-6 * learner.initial(0).nbytes


def table(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Of every device, its seconds as implied and as measured, and how far those are apart."""
    work = Work(**result["work"])
    rows = []
    limits = read_devices(INPUTS / "devices.toml")
    for device, seen in zip(limits, result["devices"], strict=True):
        row: dict[str, Any] = {"device": device["name"], "limits": device}
        for part, implied in (
            ("step_time_s", work.step_s(device)),
            ("comm_time_s", work.round_s(device)),
        ):
            row[part] = {**seen[part], "implied": implied, "off": seen[part]["value"] / implied - 1}
        rows.append(row)
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw what the limits imply, with what was measured and its interval."""
    with print_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.5, 3.9), layout="constrained")
        parts = (
            ("step_time_s", "a local step", 1e3, "ms"),
            ("comm_time_s", "a round besides", 1, "s"),
        )
        for axes, (part, title, scale, unit) in zip(figure.subplots(1, 2), parts, strict=True):
            for place, row in enumerate(rows):
                known = {name: scale * value for name, value in row[part].items()}
                band = [known["implied"] * (1 + sign * ALLOWED) for sign in (-1, 1)]
                first = place == 0
                axes.plot(band, [place] * 2, color="#cfd8e3", linewidth=12, solid_capstyle="butt",
                          label="its limits imply, 15% either way" if first else None)  # fmt: skip
                axes.plot(
                    [known["low"], known["high"]], [place] * 2, color="#1f4e79", linewidth=1.4
                )
                axes.plot(known["value"], place, "o", color="#1f4e79",
                          label="measured, 90% interval" if first else None)  # fmt: skip
            axes.set_yticks(range(len(rows)), [row["device"] for row in rows])
            axes.invert_yaxis()
            axes.set_xlim(left=0)
            axes.set_title(title)
            axes.set_xlabel(unit)
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
        )
        figure.savefig(path, dpi=150)


def show(result: dict[str, Any]) -> None:
    """Print the tables of prototype.md."""
    print(f"\nload average before: {result['load']}; work: {result['work']}\n")
    print(
        "| device | core | up, down Mbit/s | step implied | measured | off "
        "| round besides implied | measured | off |\n" + "|---" * 9 + "|"
    )
    for row in table(result):
        limits, step, rest = row["limits"], row["step_time_s"], row["comm_time_s"]
        print(
            f"| {row['device']} | {limits['cpu']} | {limits['up-mbit']}, {limits['down-mbit']} "
            f"| {1e3 * step['implied']:.1f} ms | {1e3 * step['value']:.1f} ms | {step['off']:+.0%} "
            f"| {rest['implied']:.1f} s | {rest['value']:.1f} s | {rest['off']:+.0%} |"
        )
    run = result["run"]
    predicted, measured = run["predicted"], run["measured"]
    print(
        f"\nplan {run['plan']}\n"
        f"predicted {predicted['rounds']:.1f} rounds {predicted['rounds_interval']}, "
        f"{predicted['time_s']:.0f} s {predicted['time_s_interval']}"
        f"\nmeasured {measured['rounds']} rounds, {measured['time_s']:.0f} s, as predicted: "
        f"{measured['as_predicted']}\npilots {run['bill']['pilots']}"
    )


def main() -> None:
    """Measure it all, or with --show only what was measured before."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("prototype-run"), help="for the work")
    parser.add_argument("--show", action="store_true", help="draw and print the last results again")
    options = parser.parse_args()
    if not options.show:
        load = os.getloadavg()[0]
        if load > 0.5:
            print(f"The load average is {load:.1f}: other work will slow the devices down.")
        reference = measure(INPUTS / "reference.toml", REFERENCE, options.folder / "reference")
        plot = ("--plot", str(PICTURES[1]))
        main_run = measure(INPUTS / "devices.toml", (), options.folder / "devices", *plot)
        work = asdict(work_of(reference["devices"], model_mbit()))
        with draft_of(RESULTS) as draft:
            known = {"load": load, "work": work, "reference": reference["devices"], **main_run}
            draft.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    draw(table(result), PICTURES[0])
    show(result)


if __name__ == "__main__":
    main()
