"""Cost against the energy weight, beside the best measured, and how time trades for energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.lines import known, line_with_spread, lines_figure, numbers
from fedplan.figures.spec import Figure, Line, Panel, Texts
from fedplan.figures.style import Look, line_looks
from fedplan.figures.units import NO_UNIT, energy_unit, fit_axis, time_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from fedplan.core.fleet import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MethodCosts:
    """What a method's settings take, one number for each energy weight; NaN where not known.

    relative_cost : over the lowest cost measured at the same weight.
    relative_error : its standard error, or the like; None where there is none.
    time_s, energy_j : to the target; None, or nothing known, leaves the method out of the
        trade-off.
    """

    relative_cost: ArrayLike
    relative_error: ArrayLike | None = None
    time_s: ArrayLike | None = None
    energy_j: ArrayLike | None = None


def cost_against_weight_data(
    energy_weights: Sequence[float],
    methods: Mapping[str, MethodCosts],
    *,
    title: str = "Cost against the energy weight",
    note: str = "",
) -> Figure:
    """Data of the figure; "fedplan", "paper" and "best measured" look the same in every figure.

    >>> data = cost_against_weight_data([0.0, 0.5, 1.0], {
    ...     "fedplan": MethodCosts(relative_cost=[1.02, 1.05, 1.01]),
    ...     "best measured": MethodCosts(relative_cost=[1, 1, 1]),
    ... })
    >>> [line.name for line in data.panels[0].lines], data.panels[0].y.label
    (['fedplan', 'best measured'], 'cost / the lowest measured')
    """
    weights = np.asarray(energy_weights, dtype=np.float64)
    looks = line_looks([*methods])
    lines = [_cost_line(name, looks[name], weights, found) for name, found in methods.items()]
    xs, ys = known(lines)
    panels = [
        Panel(
            title="Cost to the target",
            x=fit_axis("energy weight", NO_UNIT, xs, log=False),
            y=fit_axis("cost / the lowest measured", NO_UNIT, [*ys, 1.0]),
            parts=tuple(lines),
        )
    ]
    places = {name: _places(name, weights, found) for name, found in methods.items()}
    traded = {name: place for name, place in places.items() if place is not None}
    if traded:
        panels.append(_trade_off(weights, traded, looks))
    return lines_figure(title, panels, len(panels), note)


def _cost_line(name: str, look: Look, weights: FloatArray, found: MethodCosts) -> Line:
    costs, error = found.relative_cost, found.relative_error
    return line_with_spread(
        name,
        look,
        weights,
        numbers(costs, weights.shape, f"relative_cost of {name}"),
        None if error is None else numbers(error, weights.shape, f"relative_error of {name}"),
    )


def _places(
    name: str, weights: FloatArray, found: MethodCosts
) -> tuple[FloatArray, FloatArray] | None:
    """Seconds and joules at every weight; None where both are known at none of them."""
    if found.time_s is None or found.energy_j is None:
        return None
    times = numbers(found.time_s, weights.shape, f"time_s of {name}")
    energies = numbers(found.energy_j, weights.shape, f"energy_j of {name}")
    return (times, energies) if np.isfinite(times + energies).any() else None


def _trade_off(
    weights: FloatArray,
    places: Mapping[str, tuple[FloatArray, FloatArray]],
    looks: Mapping[str, Look],
) -> Panel:
    ends = (f"{weights[0]:g}", f"{weights[-1]:g}")
    lines = [line_with_spread(name, looks[name], *place) for name, place in places.items()]
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
