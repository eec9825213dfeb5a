"""Where labels go so that they keep clear of what is drawn, in print and on the screen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedplan.figures.spec import Line, Points
from fedplan.figures.style import GREY
from fedplan.figures.units import Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from fedplan.core.fleet import FloatArray
    from fedplan.figures.spec import Panel

Place = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top, in pixels

_POINTS_PER_INCH = 72.0
_CLEAR = 5.0  # points of air around a label
# From a place to its label: points and degrees, the nearest and first of equally good ones.
_DISTANCES = (13.0, 20.0, 28.0, 36.0, 46.0, 58.0, 72.0, 90.0)
_DIRECTIONS = (45, 0, -45, 90, -90, 135, 180, -135, 22, 68, 112, 158, -22, -68, -112, -158)
_LINE_STEP = 5.0  # pixels between the points of a line that are kept clear of
_CLASH, _CROSSED = 1000.0, 300.0  # how many covered points another label hit, or crossed, is worth
_NEAR = 20.0  # points within which a label needs no line to its place


# Of a usual panel on the screen, and of a character there: width and height in pixels.
_CHARACTER, _PANEL = (8.0, 22.0), (450.0, 330.0)
_POSITIONS = (
    "middle right",
    "top right",
    "top center",
    "bottom left",
    "bottom center",
    "middle left",
    "top left",
    "bottom right",
)


@dataclass(kw_only=True)
class Labeller:
    """Puts labels at places of an axes that has been laid out; `drawn` are the pixels to avoid."""

    axes: Axes
    drawn: FloatArray
    _taken: list[Box] = field(default_factory=list)

    def add(self, text: str, place: Place, *, weight: str = "normal") -> None:
        """Label a place; where nothing is free, where the label covers least."""
        label = self.axes.annotate(
            text,
            place,
            xytext=(0, 0),
            textcoords="offset points",
            size=10,
            weight=weight,
            zorder=12,
            va="center",
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.8, "shrinkB": 5},
        )
        label.set_in_layout(False)  # the layout is settled, and labels stay inside the axes
        extent = label.get_window_extent()
        options = [
            self._option(extent.width, extent.height, place, angle, distance)
            for distance in _DISTANCES
            for angle in _DIRECTIONS
        ]
        _, box, offset, side = min(options, key=lambda option: option[0])
        label.set_position(offset)
        label.set_horizontalalignment(side)
        if label.arrow_patch is not None:
            label.arrow_patch.set_visible(math.hypot(*offset) > _NEAR)
        self._taken.append(box)

    def _option(
        self, width: float, height: float, place: Place, angle: float, distance: float
    ) -> tuple[float, Box, Place, Literal["left", "center", "right"]]:
        """One position: how bad it is, what it takes up, and how to put the label there."""
        scale = self.axes.figure.dpi / _POINTS_PER_INCH
        dx, dy = (distance * part(math.radians(angle)) for part in (math.cos, math.sin))
        side: Literal["left", "center", "right"] = "left" if dx > 1 else "right"
        if abs(dx) < 1:
            side = "center"
        x, y = self.axes.transData.transform(place)
        left = x + dx * scale - {"left": 0.0, "center": 0.5, "right": 1.0}[side] * width
        bottom = y + dy * scale - height / 2
        air = _CLEAR * scale
        box = (left - air, bottom - air, left + width + air, bottom + height + air)
        # The line from a place to its label must not cross other labels either.
        way = [(x + dx * scale * part, y + dy * scale * part) for part in (0.25, 0.5, 0.75, 1.0)]
        crossed = sum(
            taken[0] < at[0] < taken[2] and taken[1] < at[1] < taken[3]
            for at in way
            for taken in self._taken
        )
        return self._badness(box, air) + _CROSSED * crossed, box, (dx, dy), side

    def _badness(self, box: Box, air: float) -> float:
        left, bottom, right, top = box
        inside = self.axes.bbox.padded(air)  # air may be outside, text may not
        outside = (
            max(inside.x0 - left, 0.0)
            + max(right - inside.x1, 0.0)
            + max(inside.y0 - bottom, 0.0)
            + max(top - inside.y1, 0.0)
        )
        x, y = self.drawn.T
        covered = ((left <= x) & (x <= right) & (bottom <= y) & (y <= top)).sum()
        clashes = sum(
            left < taken[2] and taken[0] < right and bottom < taken[3] and taken[1] < top
            for taken in self._taken
        )
        return float(100.0 * outside + _CLASH * clashes + covered)


def pixels(axes: Axes, curves: Sequence[FloatArray], points: Sequence[FloatArray]) -> FloatArray:
    """Where curves, every few pixels, and points are drawn; each is an array of x and y."""
    found = [axes.transData.transform(places) for places in points if len(places)]
    for curve in curves:
        at = axes.transData.transform(curve)
        length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(at, axis=0).T))])
        along = np.linspace(0.0, length[-1], 1 + int(length[-1] / _LINE_STEP))
        found.append(np.column_stack([np.interp(along, length, part) for part in at.T]))
    return np.concatenate([np.empty((0, 2)), *found])


def screen_position(panel: Panel, part: Points) -> str:
    """Where plotly should put a label: where it covers least, by a guess at sizes.

    Plotly measures text only in the browser, so a panel of usual size is assumed.
    """
    lines = part.label.split("\n")
    width = max(map(len, lines)) * _CHARACTER[0] / _PANEL[0]
    height = len(lines) * _CHARACTER[1] / _PANEL[1]
    gap_x, gap_y = 12 / _PANEL[0], 16 / _PANEL[1]
    (across, up), *_ = _shares(panel, part)
    others = [
        place
        for other in panel.parts
        if isinstance(other, Points | Line) and other is not part
        for place in _shares(panel, other)
    ]

    def covered(position: str) -> float:
        vertical, side = position.split()
        left = across + {"right": gap_x, "center": -width / 2, "left": -gap_x - width}[side]
        bottom = up + {"top": gap_y, "middle": 0.0, "bottom": -gap_y}[vertical] - height / 2
        outside = max(-left, left + width - 1, -bottom, bottom + height - 1, 0.0)
        return 1000 * outside + sum(
            left - gap_x <= x <= left + width + gap_x and bottom <= y <= bottom + height
            for x, y in others
        )

    return min(_POSITIONS, key=covered)


def _shares(panel: Panel, part: Points | Line) -> list[tuple[float, float]]:
    """How far along both axes each point is."""
    if not (isinstance(panel.x, Axis) and isinstance(panel.y, Axis)):
        return [(0.5, 0.5)] * part.x.size
    places = zip(part.x.tolist(), part.y.tolist(), strict=True)
    return [(panel.x.share(x), panel.y.share(y)) for x, y in places]
