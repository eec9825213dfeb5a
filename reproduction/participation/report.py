"""What came of the cells: a summary in tables, and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from suite.rows import Row, read_rows, table

VARIED = ("mini-rare-labels", "wisdm-averaging", "wisdm-dropout-10", "wisdm-dropout-30")
MARGINS = {"round_cost": 0.02, "round_cost_cycles": 0.02, "rounds": 0.15}


def print_summary(results: Path) -> None:
    """All cells together, by task, by fleet and by weight, and the worst three."""
    every = read_rows(results / "participation-cells.csv")
    cells = [cell for cell in every if cell["task"] not in VARIED]
    groups = [("all but the variants", cells)] if cells else []
    for key in ("task", "fleet", "weight"):
        own = every if key == "task" else cells
        values = dict.fromkeys(cell[key] for cell in own)
        groups += [(f"{key} {one}", [cell for cell in own if cell[key] == one]) for one in values]
    _print_table(
        ("cells", "number", "mean ratio", "90%", "worst", "ten models: mean", "90%", "worst",
         "round cost within 2%", "of whole cycles",
         "rounds within 15%", "predicted / realised"),
        [[name, str(len(own)), *_numbers(own)] for name, own in groups],
    )  # fmt: skip
    print("\nThe worst three:\n")
    shown = ("task", "fleet", "weight", "ratio", "uniform_clients", "uniform_steps", "groups",
             "cycle", "turns_steps", "full_rounds", "turns_rounds", "rounds"
             )  # fmt: skip
    worst = sorted(cells, key=lambda cell: -float(cell["ratio"]))[:3]
    _print_table(shown, [[cell[name] for name in shown] for cell in worst])
    for name in ("fits", "later", "constants"):
        rows = read_rows(results / f"participation-{name}.csv")
        if rows:
            print(f"\n{name}:\n")
            _print_table(list(rows[0]), [list(row.values()) for row in rows])


def _numbers(cells: Sequence[Row]) -> list[str]:
    ratio, smooth, rounds = (
        np.array([float(cell[key]) for cell in cells])
        for key in ("ratio", "smooth_ratio", "rounds")
    )
    return [
        *(f"{value:.2f}" for one in (ratio, smooth) for value in
          (one.mean(), np.quantile(one, 0.9), one.max())),
        *(f"{_share(cells, key):.0%}" for key in MARGINS),
        f"{np.median(rounds):.2f}",
    ]  # fmt: skip


def _share(cells: Sequence[Row], key: str) -> float:
    return float(np.mean([abs(float(cell[key]) - 1) <= MARGINS[key] for cell in cells]))


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(table([name.replace("_", " ") for name in head], rows))


def draw(results: Path, path: Path) -> None:
    """Every cell's ratio, task by task; colours are fleets, sizes energy weights."""
    cells = read_rows(results / "participation-cells.csv")
    if not cells:
        return
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    tasks = list(dict.fromkeys(cell["task"] for cell in cells))
    fleets = list(dict.fromkeys(cell["fleet"] for cell in cells))
    figure, axes = plt.subplots(figsize=(7, 0.8 + 0.42 * len(tasks)), layout="constrained")
    for number, fleet in enumerate(fleets):
        own = [cell for cell in cells if cell["fleet"] == fleet]
        axes.scatter(
            [float(cell["ratio"]) for cell in own],
            [tasks.index(cell["task"]) + 0.16 * (number - 1.5) for cell in own],
            s=[14 + 30 * float(cell["weight"]) for cell in own],
            alpha=0.75, linewidths=0, label=fleet,
        )  # fmt: skip
    axes.axvline(1.0, color="0.4", linewidth=0.8)
    axes.set_xlim(left=0)
    axes.set_yticks(range(len(tasks)), tasks)
    axes.invert_yaxis()
    axes.set_xlabel("cost of turns / cost of the best K at random (larger: energy weighs more)")
    axes.legend(fontsize="small", frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
