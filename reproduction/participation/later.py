"""Later: where training by turns is 200 rounds after the target, beside all clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

from suite.pricing import Pricing
from suite.rows import read_rows
from suite.trainings import Trainings

from fedplan import uniform
from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from participation.cells import turns_at

LATER = 200  # rounds
LAST = 30  # rounds over which losses are averaged, and their swing is measured
SEED = 1
CELLS = (("lognormal", 0.0), ("tenth slow", 0.5), ("hospitals", 0.9))


def later(trainings: Trainings, data: Path, results: Path) -> Iterator[dict[str, object]]:
    """Loss, its swing and accuracy in the last of the later rounds, of turns and of all clients."""
    for row in read_rows(results / "participation-cells.csv"):
        fleet, weight = row["fleet"], float(row["weight"])
        if row["task"] != trainings.task.name or (fleet, weight) not in CELLS:
            continue
        pricing = Pricing(trainings, fleet, data)
        setting = turns_at(pricing, pricing.problem(weight), int(row["turns_steps"]))
        rounds = round(float(row["turns_rounds"])) + LATER
        whole = uniform(trainings.task.clients[-1], setting.local_steps)
        found = {"task": trainings.task.name, "fleet": fleet, "weight": weight,
                 "local_steps": setting.local_steps, "groups": setting.groups,
                 "rounds": rounds}  # fmt: skip
        for name, one in (("turns", setting), ("all", whole)):
            measured = _ends(trainings, one, rounds)
            found |= {f"{name}_{key}": f"{value:.4g}" for key, value in measured.items()}
        yield found


def _ends(trainings: Trainings, setting: Setting, rounds: int) -> dict[str, float]:
    run = trainings.simulator.run(setting, Stop(max_rounds=rounds), seed=SEED)
    last = run.rounds[-LAST:]
    losses = [record.loss for record in last if record.loss is not None]
    singles = [record.loss if record.model_loss is None else record.model_loss for record in last]
    accuracies = [record.accuracy for record in last if record.accuracy is not None]
    return {
        "loss": fmean(losses),
        "loss_sd": stdev(losses),
        "single_sd": stdev(one for one in singles if one is not None),
        "accuracy": fmean(accuracies),
    }
