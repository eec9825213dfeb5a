"""The picture and the tables of Setup 1 on 20 devices: predicted and measured seconds."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from fedplan.figures.for_print import print_style

TARGET_LOSS = 0.365
COLOURS = ("#c2410c", "#9aa5b1", "#7b8794", "#616e7c", "#52606d", "#3e4c59", "#1f4e79")
Rows = dict[str, dict[str, Any]]


def rows_of(known: dict[str, Any]) -> Rows:
    """The methods of a fleet, in the order in which they trained."""
    return {method: row for method, row in known.items() if method != "devices"}


def all_in_s(row: dict[str, Any]) -> float:
    """Seconds with the pilots that led to a method, where there were any."""
    return float(row["seconds"] + row.get("pilots_s", 0.0))


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw losses over real seconds, and seconds as predicted and as measured, for each fleet."""
    with print_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 3.9 * len(results)), layout="constrained")
        axes = figure.subplots(len(results), 2, squeeze=False, width_ratios=(1.25, 1))
        for (curves, bars), (name, known) in zip(axes, results.items(), strict=True):
            rows = rows_of(known)
            _draw_losses(curves, rows)
            curves.set_title(f"{name}: loss over the seconds of the rounds")
            _draw_seconds(bars, rows)
            bars.set_title(f"{name}: seconds to the loss {TARGET_LOSS}")
        known_by = axes[0][1].get_legend_handles_labels()
        figure.legend(*known_by, loc="outside lower right", ncols=2, frameon=False)
        figure.savefig(path, dpi=150)


def _draw_losses(axes: Any, rows: Rows) -> None:
    for colour, (method, row) in zip(COLOURS, rows.items(), strict=False):
        seconds = list(accumulate(row["round_s"]))
        wide = 2.2 if colour in (COLOURS[0], COLOURS[-1]) else 1.1
        axes.plot(seconds, row["losses"], color=colour, linewidth=wide, label=method)
    axes.axhline(TARGET_LOSS, color="#cfd8e3", linewidth=1)
    axes.set_yscale("log")
    axes.set_yticks([0.4, 0.6, 1.0, 2.0], ["0.4", "0.6", "1", "2"])
    axes.minorticks_off()
    axes.set_xlim(left=0)
    axes.set_xlabel("s")
    axes.legend(frameon=False)


def _draw_seconds(axes: Any, rows: Rows) -> None:
    for place, (colour, row) in enumerate(zip(COLOURS, rows.values(), strict=False)):
        axes.barh(place, row["seconds"], height=0.55, color=colour)
        if pilots_s := row.get("pilots_s"):
            axes.barh(place, pilots_s, left=row["seconds"], height=0.55, color=colour, alpha=0.25)
            axes.text(row["seconds"] + pilots_s / 2, place, "its pilots", ha="center", va="center")
        first = "the simulator's" if place == 0 else None
        axes.plot(
            row["simulated"]["seconds"], place, "|", color="black", markersize=18, label=first
        )
        if forecast := row.get("forecast"):
            axes.plot(forecast["interval"], [place - 0.38] * 2, color="black", linewidth=1)
            axes.plot(forecast["seconds"], place - 0.38, "o", color="black", markersize=4,
                      label="said by the course, nine of ten")  # fmt: skip
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlabel("s; bars are measured")


def tables(results: dict[str, dict[str, Any]]) -> str:
    """The tables of prototype.md."""
    lines = []
    for name, known in results.items():
        lines += [f"\n{name}: {_devices(known['devices'])}\n"]
        lines += [
            "| method | setting | rounds | seconds, the simulator's | measured | off | with pilots "
            "| on the wall | test accuracy |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for method, row in rows_of(known).items():
            expected = row["simulated"]
            rounds = f"{row['rounds']}"
            if expected["rounds"] != row["rounds"]:
                rounds += f" ({expected['rounds']})"
            lines.append(
                f"| {method} | {row.get('setting', method)} | {rounds} "
                f"| {expected['seconds']:.1f} | {row['seconds']:.1f} "
                f"| {row['seconds'] / expected['seconds'] - 1:+.1%} | {all_in_s(row):.1f} "
                f"| {row['wall_s']:.1f} | {row['test_accuracy']:.1%} |"
            )
        late = max(row["late_share"] for row in rows_of(known).values())
        latest = max(row["latest_s"] for row in rows_of(known).values())
        loads = [row["load"] for row in rows_of(known).values()]
        lines.append(
            f"\nLate: at most {late:.2%} of a method's local trainings, by at most {latest:.3f} s; "
            f"load average {min(loads):.1f} to {max(loads):.1f}"
        )
        if forecast := known.get("fedplan", {}).get("forecast"):
            low, high = forecast["interval"]
            lines.append(
                f"Said by the course before round {forecast['round']:.0f}: "
                f"{forecast['seconds']:.0f} s ({low:.0f} to {high:.0f})"
            )
    return "\n".join(lines)


def _devices(devices: dict[str, list[float]]) -> str:
    step, comm = (np.array(devices[part]) for part in ("step_time_s", "comm_time_s"))
    return (
        f"measured t_p {1e3 * step.mean():.2f} ms (sd {1e3 * step.std():.2f}), "
        f"t_m {comm.mean():.3f} s (sd {comm.std():.3f})"
    )
