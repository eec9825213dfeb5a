"""Total time to the target: against E for several K, and against K for several E."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedplan import InputError
from fedplan.figures import Figure, Panel
from fedplan.figures.axes import fit_axis
from fedplan.figures.lines import known, line_with_spread, lines_figure
from fedplan.figures.spec import Line
from fedplan.figures.style import Look, line_looks
from fedplan.words import NO_UNIT, time_unit

_MOST_BELOW = 1.5  # times the lowest mean over the lowest place of the axis


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalTime:
    """Seconds to the target with one (K, E): the mean over seeds, and the standard deviation."""

    clients_per_round: int
    local_steps: int
    mean_s: float
    sd_s: float = 0.0


def total_time_data(totals: Sequence[TotalTime], *, title: str, note: str) -> Figure:
    """Data of the figure; a panel has the lines that have at least two points.

    >>> times = {(2, 5): 30.0, (2, 10): 20.0, (4, 5): 25.0, (4, 10): 18.0}
    >>> totals = [TotalTime(clients_per_round=k, local_steps=e, mean_s=t)
    ...     for (k, e), t in times.items()]
    >>> data = total_time_data(totals, title="demo", note="")
    >>> [[line.name for line in panel.lines] for panel in data.panels]
    [['K=2', 'K=4'], ['E=5', 'E=10']]
    """
    panels = [
        panel
        for panel in (
            _panel(totals, "K", "local steps E", lambda t: (t.clients_per_round, t.local_steps)),
            _panel(
                totals, "E", "clients per round K", lambda t: (t.local_steps, t.clients_per_round)
            ),
        )
        if panel is not None
    ]
    if not panels:
        raise InputError(
            "total times need two settings with the same K or the same E. Add more of either."
        )
    return lines_figure(title, panels, len(panels), note)


def _panel(
    totals: Sequence[TotalTime],
    symbol: str,
    label: str,
    fixed_and_varied: Callable[[TotalTime], tuple[int, int]],
) -> Panel | None:
    groups: dict[int, list[tuple[int, TotalTime]]] = {}
    for total in totals:
        fixed, varied = fixed_and_varied(total)
        if math.isfinite(total.mean_s):
            groups.setdefault(fixed, []).append((varied, total))
    named = {f"{symbol}={k:,}": group for k, group in sorted(groups.items()) if len(group) > 1}
    if not named:
        return None
    looks = line_looks([*named])
    lines = [
        _line(name, looks[name], sorted(group, key=lambda item: item[0]))
        for name, group in named.items()
    ]
    xs, ys = known(lines)
    # Few clients can take many times as long as more, and a bar of theirs reach down to nought.
    lowest = min(float(line.y.min()) for line in lines) / _MOST_BELOW
    shown = [max(y, lowest) for y in ys]
    return Panel(
        x=replace(fit_axis(label, NO_UNIT, xs), counts=True),
        y=fit_axis("time to target", time_unit(statistics.median(shown)), shown, log=True),
        parts=tuple(lines),
    )


def _line(name: str, look: Look, points: Sequence[tuple[int, TotalTime]]) -> Line:
    spread = np.array([total.sd_s for _, total in points])
    return line_with_spread(
        name,
        look,
        np.array([varied for varied, _ in points], dtype=np.float64),
        np.array([total.mean_s for _, total in points]),
        spread if spread.any() else None,
    )
