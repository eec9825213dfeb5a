"""The sweep figure's data: what every (K, E) of a grid cost, against the best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.units import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedplan.theory.fleet import FloatArray

_TICKS = (1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
_BETWEEN_TICKS = 0.07  # of the bar of shades, or the texts beside it overlap
_MOST_LABELS = 16  # values along an axis up to which there is room for numbers in the cells


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepFigure:
    """A grid of cells, ready to be drawn; both axes are lists of values, evenly spaced.

    ratio : cost over that of the best, a row a K, a column an E; infinite where a seed did not
        reach the target, NaN where nothing was tried.
    labels : what each cell says; empty texts where there is no room.
    best : the row and column of the best; None where there is none.
    top : the ratio from which on all is equally dark.
    """

    title: str
    clients_per_round: tuple[int, ...]
    local_steps: tuple[int, ...]
    ratio: FloatArray
    labels: tuple[tuple[str, ...], ...]
    best: tuple[int, int] | None
    top: float
    note: str

    @property
    def shade(self) -> FloatArray:
        """How dark each cell is, 0 (as cheap as the best) to 1, by the log of the ratio; or NaN."""
        with np.errstate(invalid="ignore"):
            shade = np.clip(np.log(self.ratio) / math.log(self.top), 0.0, 1.0)
        return np.where(np.isfinite(self.ratio), shade, np.nan)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Shades with what they stand for."""
        top = f"{ratio_label(self.top)} or more" if self._has_above else ratio_label(self.top)
        found = [(0.0, "same cost")]
        for ratio in _TICKS:
            shade = math.log(ratio) / math.log(self.top)
            if found[-1][0] + _BETWEEN_TICKS <= shade <= 1 - _BETWEEN_TICKS:
                found.append((shade, ratio_label(ratio)))
        return [*found, (1.0, top)]

    @property
    def _has_above(self) -> bool:
        return bool((self.ratio[np.isfinite(self.ratio)] > self.top).any())

    @property
    def has_missed(self) -> bool:
        """Whether some cell did not reach the target with every seed."""
        return bool(np.isinf(self.ratio).any())


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
    note: str = "",
) -> SweepFigure:
    """Data of the sweep figure.

    costs : of each (K, E); infinite where a seed did not reach the target.
    best : the (K, E) that the others are compared with; None where none reached the target.
    reached : what to write in a cell that did not, such as "7/10".
    name : what was swept, for the title.

    >>> data = sweep_figure_data({(1, 5): 3.0, (1, 9): 2.0, (4, 5): math.inf}, best=(1, 9),
    ...     name="demo", reached={(4, 5): "1/2"})
    >>> data.labels, data.best
    ((('+50%', 'best'), ('1/2', '')), (0, 1))
    """
    if not costs:
        raise InputError("a figure of a sweep needs at least one cell, but got none.")
    clients = sorted({k for k, _ in costs})
    steps = sorted({e for _, e in costs})
    unit = 1.0 if best is None else costs[best]
    ratio = np.full((len(clients), len(steps)), np.nan)
    for (k, e), cost in costs.items():
        ratio[clients.index(k), steps.index(e)] = cost / unit
    place = None if best is None else (clients.index(best[0]), steps.index(best[1]))
    finite = ratio[np.isfinite(ratio)]
    roomy = max(len(clients), len(steps)) <= _MOST_LABELS

    def label(row: int, column: int) -> str:
        value = float(ratio[row, column])
        if not roomy or math.isnan(value):
            return ""
        if math.isinf(value):
            return (reached or {}).get((clients[row], steps[column]), "")
        return "best" if (row, column) == place else ratio_label(value)

    return SweepFigure(
        title=f"{name}: mean cost against the best",
        clients_per_round=tuple(clients),
        local_steps=tuple(steps),
        ratio=ratio,
        labels=tuple(tuple(label(r, c) for c in range(len(steps))) for r in range(len(clients))),
        best=place,
        top=float(np.clip(finite.max(initial=2.0), 2.0, 10.0)),
        note=note,
    )
