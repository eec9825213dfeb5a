"""The figure of several energy weights: cost beside the best measured, and time against energy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fedplan.figures import Figure, Panel
from fedplan.figures.axes import fit_axis
from fedplan.figures.lines import known, line_with_spread, lines_figure
from fedplan.figures.spec import Line, Texts
from fedplan.figures.style import BLACK, BLUE, PURPLE, Look
from fedplan.words import NO_UNIT, energy_unit, time_unit
from fedplan_reproduction.weights import BEST, FEDPLAN, PAPER, Priced

_LOOKS = {
    FEDPLAN: Look(colour=BLUE, symbol="circle", size=7.0, layer=5),
    PAPER: Look(colour=PURPLE, symbol="square", size=6.5),
    BEST: Look(colour=BLACK, symbol="diamond", size=6.0, layer=4),
}


def weights_figure(priced: Sequence[Priced], *, title: str, note: str) -> Figure:
    """Data of Figure 5: cost against the weight, and how time trades for energy.

    A method that never arrives is left out of the trade-off.
    """
    weights = sorted({one.energy_weight for one in priced})
    methods = {}
    for method in _LOOKS:
        own = {one.energy_weight: one for one in priced if one.method == method}
        methods[method] = [own[weight] for weight in weights]
    lines = [_cost_line(method, found) for method, found in methods.items()]
    xs, ys = known(lines)
    panels = [
        Panel(
            title="Cost to the target",
            x=fit_axis("energy weight", NO_UNIT, xs, log=False),
            y=fit_axis("cost / the lowest measured", NO_UNIT, [*ys, 1.0]),
            parts=tuple(lines),
        )
    ]
    places = {
        method: (_known([one.time_s for one in found]), _known([one.energy_j for one in found]))
        for method, found in methods.items()
    }
    traded = {method: (x, y) for method, (x, y) in places.items() if np.isfinite(x + y).any()}
    if traded:
        panels.append(_trade_off(weights, traded))
    return lines_figure(title, panels, len(panels), note)


def _cost_line(method: str, found: Sequence[Priced]) -> Line:
    return line_with_spread(
        method,
        _LOOKS[method],
        np.array([one.energy_weight for one in found]),
        _known([one.relative_cost for one in found]),
        np.array([_relative_error(one) for one in found]),
    )


def _trade_off(
    weights: Sequence[float],
    places: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> Panel:
    ends = (f"{weights[0]:g}", f"{weights[-1]:g}")
    lines = [line_with_spread(method, _LOOKS[method], *place) for method, place in places.items()]
    xs, ys = known(lines)
    # Beside the outermost line there is room to say which end is which.
    slowest = max(lines, key=lambda line: float(np.nanmean(line.x)))
    said = Texts(
        x=slowest.x[[0, -1]],
        y=slowest.y[[0, -1]],
        texts=ends,
        side=(1, 1),
        colour=slowest.colour,
        layer=7,
    )
    return Panel(
        title=f"Time against energy, energy weights {ends[0]} to {ends[1]}",
        # One plan that takes many times the others' would squash them on any other axis.
        x=fit_axis("time to target", time_unit(float(np.median(xs))), xs, log=True),
        y=fit_axis("energy to target", energy_unit(float(np.median(ys))), ys, log=True),
        parts=(*lines, said),
    )


def _relative_error(one: Priced) -> float:
    """Standard error of the relative cost; 0 of a single seed, which has none."""
    ratio = one.error * one.relative_cost / one.cost if one.cost else 0.0
    return ratio if math.isfinite(ratio) else 0.0


def _known(values: Sequence[float]) -> NDArray[np.float64]:
    """Values as a figure takes them, which has no place for what is infinite."""
    return np.array([value if math.isfinite(value) else math.nan for value in values])
