"""The sweep figure: what every (K, E) of a grid cost, against the best, as a heat map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.spec import Categories, Cells, Figure, Panel
from fedplan.figures.units import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fedplan.core.fleet import FloatArray

_TICKS = (1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
_BETWEEN_TICKS = 0.07  # of the bar of shades, or the texts beside it overlap
_MOST_LABELS = 16  # values along an axis up to which there is room for numbers in the cells


def ratio_label(ratio: float) -> str:
    """A cost ratio short enough for a cell.

    >>> ratio_label(1.262), ratio_label(0.97), ratio_label(3.44), ratio_label(12.43)
    ('+26%', '-3%', '3.4x', '12x')
    """
    if ratio >= 2:
        return f"{number(round(ratio, 0 if ratio >= 10 else 1))}x"
    return f"{round(100 * (ratio - 1)):+d}%"


def sweep_figure_data(
    costs: Mapping[tuple[int, int], float],
    *,
    best: tuple[int, int] | None,
    name: str,
    reached: Mapping[tuple[int, int], str] | None = None,
    by_groups: bool = False,
    note: str = "",
) -> Figure:
    """Data of the sweep figure.

    costs : of each (K, E); infinite where a seed did not reach the target.
    best : the (K, E) that the others are compared with; None where none reached the target.
    reached : what to write in a cell that did not, such as "7/10".
    by_groups : whether K is the number of groups that take turns.
    name : what was swept, for the title.

    >>> data = sweep_figure_data({(1, 5): 3.0, (1, 9): 2.0, (4, 5): math.inf}, best=(1, 9),
    ...     name="demo", reached={(4, 5): "1/2"})
    >>> data.panels[0].parts[0].texts
    (('+50%', 'best'), ('1/2', ''))
    """
    if not costs:
        raise InputError("a figure of a sweep needs at least one cell, but got none.")
    clients = sorted({k for k, _ in costs})
    steps = sorted({e for _, e in costs})
    unit = 1.0 if best is None else costs[best]
    ratio = np.full((len(clients), len(steps)), np.nan)
    texts = np.full(ratio.shape, "", dtype=object)
    hovers = np.full(ratio.shape, "not tried", dtype=object)
    roomy = max(ratio.shape) <= _MOST_LABELS
    for (k, e), cost in costs.items():
        at = clients.index(k), steps.index(e)
        ratio[at] = cost / unit
        has_missed = math.isinf(cost)
        label = (reached or {}).get((k, e), "") if has_missed else ratio_label(cost / unit)
        words = "a seed did not reach the target" if has_missed else ratio_label(cost / unit)
        who = f"{k:,} groups" if by_groups else f"K={k:,}"
        hovers[at] = f"{who}, E={e:,}\n{words}"
        texts[at] = ("best" if (k, e) == best else label) if roomy else ""
    top = float(np.clip(ratio[np.isfinite(ratio)].max(initial=2.0), 2.0, 10.0))
    cells = Cells(
        shades=_shades(ratio, top),
        texts=tuple(map(tuple, texts)),
        hovers=tuple(map(tuple, hovers)),
        hatched=np.isinf(ratio),
        framed=None if best is None else (clients.index(best[0]), steps.index(best[1])),
        scale=() if best is None else _scale(ratio, top),
        name="not every seed arrived",
    )
    rows, columns = ratio.shape
    panel = Panel(
        x=_values("local steps E", steps),
        y=_values("groups that take turns" if by_groups else "clients per round K", clients),
        parts=(cells,),
    )
    return Figure(
        title=f"{name}: mean cost against the best",
        rows=((panel,),),
        size=(min(max(2.8 + 0.72 * columns, 6.5), 13.0), min(max(2.0 + 0.46 * rows, 3.6), 9.5)),
        note=note,
    )


def _values(label: str, values: Sequence[int]) -> Categories:
    return Categories(names=tuple(f"{value:,}" for value in values), label=label, upward=True)


def _shades(ratio: FloatArray, top: float) -> FloatArray:
    """How dark each cell is, 0 (as cheap as the best) to 1, by the log of the ratio; or NaN."""
    with np.errstate(invalid="ignore"):
        shade = np.clip(np.log(ratio) / math.log(top), 0.0, 1.0)
    return np.where(np.isfinite(ratio), shade, np.nan)


def _scale(ratio: FloatArray, top: float) -> tuple[tuple[float, str], ...]:
    """Shades with what they stand for; from `top` on all is equally dark."""
    found = [(0.0, "same cost")]
    for tick in _TICKS:
        shade = math.log(tick) / math.log(top)
        if found[-1][0] + _BETWEEN_TICKS <= shade <= 1 - _BETWEEN_TICKS:
            found.append((shade, ratio_label(tick)))
    has_above = (ratio[np.isfinite(ratio)] > top).any()
    return (*found, (1.0, f"{ratio_label(top)} or more" if has_above else ratio_label(top)))
