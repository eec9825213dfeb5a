"""The view of cost: what every other (K, E) costs, on axes that suit it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.spec import Contours, Line, Panel, Part, Shaded, spot
from fedplan.figures.style import BLUE, LEVELS, Look, band_colours, level_label, looks
from fedplan.figures.units import NO_UNIT, Axis, fit_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fedplan.core.fleet import FloatArray, IntArray
    from fedplan.figures.frontier import Mark

_BELOW, _ABOVE = -0.8, 4.0  # what the next levels would be
_FINE = 110  # points along each axis of the drawn map


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostView:
    """Extra cost over (K, E), on axes that suit it.

    extra_cost : cost / planned (or lowest) cost - 1, one row for each K and one column for each E.
    allowed : where the limits on time, energy and rounds hold, of the same shape.
    scale, levels : the contours there may be, and of them those that the costs cross.
    marks : the plan and other settings; `has` says whether one is within the grid.
    """

    title: str
    quantity: str
    clients: Axis
    steps: Axis
    clients_per_round: IntArray
    local_steps: IntArray
    extra_cost: FloatArray
    allowed: NDArray[np.bool_]
    levels: tuple[float, ...]
    marks: tuple[Mark, ...]
    scale: tuple[float, ...] = LEVELS
    reference: str = "the plan's"  # whose cost is 1

    @property
    def is_map(self) -> bool:
        """Whether both K and E have more than one value; else there is only a curve to draw."""
        return self.clients_per_round.size > 1 and self.local_steps.size > 1

    def has(self, mark: Mark) -> bool:
        """Whether a mark's K and E are within the grid."""
        return self.clients.has(mark.clients_per_round) and self.steps.has(mark.local_steps)

    def panel(self) -> Panel:
        """The panel: a map over (K, E), or a curve where one of them is fixed."""
        names = [_explained(mark) for mark in self.marks]
        words = "What every K and E would cost by the likeliest fit"
        if levels := ", ".join(map(level_label, self.levels)):
            words += f", with contours at {levels}"
        panel = self._map() if self.is_map else self._curve()
        return replace(
            panel,
            name="cost",
            title=self.title,
            legend="below",
            words=f"{words}. Marked: {'; '.join(dict.fromkeys(names))}.",
        )

    def _map(self) -> Panel:
        clients, steps, extra_cost = self.smooth(_FINE)
        contours = Contours(
            x=steps,
            y=clients,
            steps=self.bands(extra_cost),
            texts=tuple(
                tuple(f"{self.quantity} {value:+.1%}" for value in row) for row in extra_cost
            ),
            levels=tuple(map(level_label, self.levels)),
            colours=tuple(band_colours(self.levels, self.scale)),
            quantity=self.quantity,
            hover="K={y}, E={x}",
        )
        over = Shaded(
            x=self.local_steps.astype(float),
            y=self.clients_per_round.astype(float),
            inside=~self.allowed,
            name="over a limit",
        )
        places = [(mark.local_steps, mark.clients_per_round) for mark in self.marks]
        forbidden = [] if self.allowed.all() else [over]
        parts = (contours, *self._mark_parts(places), *forbidden)
        return Panel(x=self.steps, y=self.clients, parts=parts)

    def _curve(self) -> Panel:
        over_steps = self.extra_cost.shape[0] == 1
        values = (self.local_steps if over_steps else self.clients_per_round).astype(float)
        ratio = self.extra_cost.ravel() + 1.0
        label = f"{self.quantity.removeprefix('extra ')} / {self.reference}"
        dots = Look(colour=BLUE, symbol="circle", size=4.0)
        line = Line(x=values, y=ratio, width=1.2, look=dots, hover="{x}: {y}")
        at = [mark.local_steps if over_steps else mark.clients_per_round for mark in self.marks]
        places = [(place, float(np.interp(place, values, ratio))) for place in at]
        return Panel(
            x=self.steps if over_steps else self.clients,
            y=fit_axis(label, NO_UNIT, ratio.tolist()),
            parts=(line, *self._mark_parts(places)),
        )

    def _mark_parts(self, places: Sequence[tuple[float, float]]) -> list[Part]:
        return [
            spot(*place, look, name=_explained(mark), hover=f"<b>{mark.legend}</b>")
            for mark, place, look in zip(self.marks, places, looks(self.marks), strict=True)
            if self.has(mark)
        ]

    def bands(self, extra_cost: FloatArray) -> FloatArray:
        """Extra cost on a scale where `levels[i]` is i, from -1 to len(levels).

        Its contours are evenly spaced, the only ones plotly draws. It has neither kinks nor steep
        parts, which would show as ragged contours.
        """
        from scipy.interpolate import PchipInterpolator

        if not self.levels:
            return np.full(extra_cost.shape, -0.5)
        around = (_BELOW, *self.scale, _ABOVE)
        first, last = around.index(self.levels[0]), around.index(self.levels[-1])
        low = min(around[first - 1], float(extra_cost.min()))
        high = max(around[last + 1], float(extra_cost.max()))
        knots = np.log1p([low, *self.levels, high])
        scale = PchipInterpolator(knots, np.arange(knots.size) - 1.0)
        return np.asarray(scale(np.log1p(extra_cost)))

    def smooth(self, points: int = 200) -> tuple[FloatArray, FloatArray, FloatArray]:
        """K, E and extra cost on a fine grid, by splines: round contours from a coarse grid.

        The inverse of cost is smooth over the logarithms of K and E, even where cost rises without
        an end, and the splines go through every point.
        """
        from scipy.interpolate import RectBivariateSpline

        ks, es = np.log(self.clients_per_round), np.log(self.local_steps)
        spline = RectBivariateSpline(
            ks, es, 1.0 / (1.0 + self.extra_cost), kx=min(3, ks.size - 1), ky=min(3, es.size - 1)
        )
        fine_k, fine_e = (np.linspace(axis[0], axis[-1], points) for axis in (ks, es))
        inverse = np.maximum(spline(fine_k, fine_e), 0.5 / (1.0 + self.extra_cost.max()))
        return np.exp(fine_k), np.exp(fine_e), 1.0 / inverse - 1.0


def _explained(mark: Mark) -> str:
    """What a legend calls a mark; all pilots are called the same."""
    return "pilots" if mark.role == "pilot" else mark.legend
