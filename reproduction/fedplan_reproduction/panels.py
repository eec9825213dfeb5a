"""Panels: Figures 3 to 5 of the paper, drawn from the tables of a folder alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from fedplan import Objective
from fedplan.figures import Figure, Panel
from fedplan.figures.axes import Axis, fit_axis
from fedplan.figures.spec import Line, Texts, known, line_with_spread, rule, spot
from fedplan.figures.style import BLACK, BLUE, PURPLE, Look, series_looks
from fedplan.studies import Cell, RunSummary, make_cells
from fedplan.words import NO_UNIT, energy_unit, time_unit
from fedplan_reproduction.curves import CurvePoint
from fedplan_reproduction.published import Figure as Caption
from fedplan_reproduction.weights import BEST, FEDPLAN, PAPER, Priced

LOOKS = {
    FEDPLAN: Look(colour=BLUE, symbol="circle", size=7.0, layer=5),
    PAPER: Look(colour=PURPLE, symbol="square", size=8.0, layer=6),
    BEST: Look(colour=BLACK, symbol="diamond", size=8.0, layer=6),
}
SHOWN_WEIGHTS = (0.0, 0.45, 1.0)  # of panels (a) to (c) of Figure 5
_CURVES = {
    "a": ("(a) Loss, different E", "training loss"),
    "b": ("(b) Loss, different K", "training loss"),
    "d": ("(d) Test accuracy, different E", "test accuracy"),
    "e": ("(e) Test accuracy, different K", "test accuracy"),
}
_WIDTH, _HEIGHT = 5.6, 4.3  # inches of a panel
_ENTRY = 0.1  # of a panel's span, left free above the costs for each entry of its legend
_APART = 0.045  # of a panel's height between the names of two lines: about that of a letter
_NAMES = 0.12  # of a panel's width, left free at the right for these names


def training_figure(
    points: Sequence[CurvePoint],
    runs: Sequence[RunSummary],
    priced: Sequence[Priced],
    caption: Caption,
    *,
    target_loss: float,
    title: str,
    note: str,
) -> Figure:
    """Figure 3 or 4: loss and test accuracy against time, and total time over (K, E)."""
    panels = {
        letter: _curve_panel(letter, own, caption, target_loss)
        for letter in _CURVES
        if (own := [point for point in points if point.panel == letter])
    }
    published = caption if target_loss == caption.target_loss else None
    panels["c"] = cost_panel(runs, priced, 0.0, title="(c) Total time", published=published)
    return _figure(title, [panels[letter] for letter in sorted(panels)], note)


def weights_figure(
    runs: Sequence[RunSummary], priced: Sequence[Priced], *, title: str, note: str
) -> Figure:
    """Figure 5: cost over (K, E) at three weights, cost against the weight, time for energy."""
    weights = {one.energy_weight for one in priced}
    panels = [
        cost_panel(runs, priced, weight, title=f"({letter}) Energy weight {weight:g}")
        for letter, weight in zip("abc", SHOWN_WEIGHTS, strict=True)
        if weight in weights
    ]
    return _figure(title, [*panels, *_over_weights(priced)], note)


def cost_panel(
    runs: Sequence[RunSummary],
    priced: Sequence[Priced],
    weight: float,
    *,
    title: str,
    published: Caption | None = None,
) -> Panel:
    """Cost against E, one line for each K, and what each method costs.

    A setting with a seed that never arrives has no point. fedplan's course keeps to no (K, E): its
    cost is a line across.
    """
    groups: dict[int, list[Cell]] = {}
    for cell in make_cells(runs, Objective.weighted(weight)):
        if math.isfinite(cell.cost):
            groups.setdefault(cell.setting[0], []).append(cell)
    names = {f"K={k}": sorted(groups[k], key=lambda cell: cell.local_steps) for k in sorted(groups)}
    looks = series_looks(names)
    lines = [_cost_line(name, looks[name], cells) for name, cells in names.items()]
    own = {one.method: one for one in priced if one.energy_weight == weight}
    marks = [
        (one.local_steps, one.cost, method)
        for method, one in own.items()
        if one.local_steps is not None and math.isfinite(one.cost)
    ]
    across = []
    if FEDPLAN in own and math.isfinite(own[FEDPLAN].cost):
        across.append((own[FEDPLAN].cost, f"fedplan, {own[FEDPLAN].cost:,.4g}", BLUE))
    if published is not None and published.best_time_s and published.time_s:
        across.append((published.best_time_s, f"published best, {published.best_time_s:g}", BLACK))
        across.append((published.time_s, f"published plan, {published.time_s:g}", PURPLE))
    xs, ys = known(lines) if lines else ([], [])
    xs += [float(steps) for steps, *_ in marks]
    ys += [cost for _, cost, _ in marks] + [cost for cost, *_ in across]
    xs.append(max(xs) * (max(xs) / min(xs)) ** _NAMES)
    ys.append(max(ys) * (max(ys) / min(ys)) ** (_ENTRY * len([*marks, *across])))
    x = replace(fit_axis("local steps E", NO_UNIT, xs, log=True), counts=True)
    unit = time_unit(1.0) if weight == 0 else NO_UNIT
    y = fit_axis("time to target" if weight == 0 else "cost to target", unit, ys, log=True)
    rules = [
        replace(rule(x, cost, name, "dash" if colour == BLUE else "dot"), colour=colour)
        for cost, name, colour in across
    ]
    words = {PAPER: "paper's plan", BEST: "best measured"}
    spots = [
        spot(
            steps,
            cost,
            LOOKS[method],
            name=f"{words[method]}: K={own[method].clients_per_round}, E={steps}, {cost:,.4g}",
        )
        for steps, cost, method in marks
    ]
    # Those that end at the right edge are named there, the others in the legend.
    most = max((line.x[-1] for line in lines), default=0.0)
    whole, short = (
        [line for line in lines if (line.x[-1] == most) == ends] for ends in (True, False)
    )
    drawn = (*(replace(line, name="") for line in whole), *short)
    parts = (*drawn, *_names(whole, y), *rules, *spots)
    return Panel(title=title, x=x, y=y, parts=parts, own_legend=True)


def _names(lines: Sequence[Line], y: Axis) -> list[Texts]:
    """What each line is, right of its end; moved apart where lines end side by side."""
    ordered = sorted(lines, key=lambda line: float(line.y[-1]))
    # The nearest places that rise by a step each: those less their steps are the nearest that rise.
    steps = _APART * np.arange(len(ordered))
    wanted = y.shares([float(line.y[-1]) for line in ordered])
    places = isotonic_regression(wanted - steps).x + steps if ordered else wanted
    low, high = np.log(y.ends)
    return [
        Texts(
            x=line.x[-1:],
            y=np.array([math.exp(low + place * (high - low))]),
            texts=(line.name,),
            side=(1, 0),
            colour=line.colour,
            layer=7,
        )
        for line, place in zip(ordered, places, strict=True)
    ]


def _curve_panel(
    letter: str, points: Sequence[CurvePoint], caption: Caption, target_loss: float
) -> Panel:
    title, label = _CURVES[letter]
    groups: dict[str, list[CurvePoint]] = {}
    for point in points:
        groups.setdefault(point.line, []).append(point)
    looks = series_looks([name for name in groups if name.startswith("K=")])
    lines = [
        line_with_spread(
            name,
            looks[name] if name in looks else LOOKS[name.partition(":")[0]],
            np.array([point.seconds for point in own]),
            np.array([point.value for point in own]),
            np.array([point.sd for point in own]),
        )
        for name, own in groups.items()
    ]
    xs, ys = known(lines)
    is_loss = label == "training loss"
    x = fit_axis("time", time_unit(max(xs)), xs, log=False)
    aims: list[Line] = []
    if is_loss:
        aims.append(rule(x, target_loss, f"target {target_loss:g}"))
    elif caption.test_accuracy is not None and target_loss == caption.target_loss:
        aims.append(rule(x, caption.test_accuracy, f"published {caption.test_accuracy:.1%}"))
    ys += [float(line.y[0]) for line in aims]
    if not is_loss:
        # The first seconds of training are of no interest: the end is where settings differ.
        ys = [max(y, 0.5) for y in ys if y <= 1]
    y = fit_axis(label, NO_UNIT, [value for value in ys if value > 0], log=is_loss)
    return Panel(title=title, x=x, y=y, parts=(*lines, *aims), own_legend=True)


def _over_weights(priced: Sequence[Priced]) -> list[Panel]:
    """Panels (d) and (e); a method that never arrives is left out of the trade-off."""
    weights = sorted({one.energy_weight for one in priced})
    methods = {}
    for method in LOOKS:
        own = {one.energy_weight: one for one in priced if one.method == method}
        methods[method] = [own[weight] for weight in weights]
    lines = [_weight_line(method, found) for method, found in methods.items()]
    xs, ys = known(lines)
    panels = [
        Panel(
            title="(d) Cost against the energy weight",
            x=fit_axis("energy weight", NO_UNIT, xs, log=False),
            y=fit_axis("cost / the best measured", NO_UNIT, [*ys, 1.0]),
            parts=tuple(lines),
            own_legend=True,
        )
    ]
    traded = [
        line_with_spread(method, LOOKS[method], x, y)
        for method, found in methods.items()
        for x, y in [(_finite([o.time_s for o in found]), _finite([o.energy_j for o in found]))]
        if np.isfinite(x + y).any()
    ]
    return [*panels, _trade_off(weights, traded)] if traded else panels


def _trade_off(weights: Sequence[float], lines: Sequence[Line]) -> Panel:
    xs, ys = known(lines)
    named = [
        Texts(
            x=line.x[ends],
            y=line.y[ends],
            texts=tuple(f"{weights[end]:g}" for end in ends),
            side=(-1, -1) if line.name == BEST else (1, 1),
            colour=line.colour,
            layer=7,
        )
        for line in lines
        for known_ends in [np.flatnonzero(np.isfinite(line.x))]
        for ends in [sorted({int(known_ends[0]), int(known_ends[-1])})]
    ]
    # Above the dearest there is room to say which weight it is.
    ys.append(max(ys) * (max(ys) / min(ys)) ** _ENTRY)
    return Panel(
        title=f"(e) Time for energy, weights {weights[0]:g} to {weights[-1]:g}",
        # One plan that takes many times the others' would squash them on any other axis.
        x=fit_axis("time to target", time_unit(float(np.median(xs))), xs, log=True),
        y=fit_axis("energy to target", energy_unit(float(np.median(ys))), ys, log=True),
        parts=(*lines, *named),
        own_legend=True,
    )


def _cost_line(name: str, look: Look, cells: Sequence[Cell]) -> Line:
    errors = np.array([0.0 if math.isnan(cell.cost_error) else cell.cost_error for cell in cells])
    return line_with_spread(
        name,
        replace(look, size=5.0),
        np.array([cell.local_steps for cell in cells], dtype=np.float64),
        np.array([cell.cost for cell in cells]),
        errors if errors.any() else None,
    )


def _weight_line(method: str, found: Sequence[Priced]) -> Line:
    return line_with_spread(
        method,
        LOOKS[method],
        np.array([one.energy_weight for one in found]),
        _finite([one.relative_cost for one in found]),
        np.array([_relative_error(one) for one in found]),
    )


def _relative_error(one: Priced) -> float:
    """Standard error of the relative cost; 0 of a single seed, which has none."""
    ratio = one.error * one.relative_cost / one.cost if one.cost else 0.0
    return ratio if math.isfinite(ratio) else 0.0


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    """Values as a figure takes them, which has no place for what is infinite."""
    return np.array([value if math.isfinite(value) else math.nan for value in values])


def _figure(title: str, panels: Sequence[Panel], note: str) -> Figure:
    rows = (tuple(panels[:3]), tuple(panels[3:]))
    shown = tuple(row for row in rows if row)
    wide = max(map(len, shown))
    return Figure(title=title, rows=shown, size=(_WIDTH * wide, _HEIGHT * len(shown)), note=note)
