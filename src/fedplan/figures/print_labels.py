"""Labels for print that keep clear of what is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedplan.figures.style import GREY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedplan.theory.fleet import FloatArray

Place = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top, in pixels

_POINTS_PER_INCH = 72.0
_CLEAR = 5.0  # points of air around a label
# From a place to its label: points and degrees, the nearest and first of equally good ones.
_DISTANCES = (13.0, 20.0, 28.0, 36.0, 46.0, 58.0, 72.0, 90.0)
_DIRECTIONS = (45, 0, -45, 90, -90, 135, 180, -135, 22, 68, 112, 158, -22, -68, -112, -158)
_LINE_STEP = 5.0  # pixels between the points of a line that are kept clear of
_CLASH, _CROSSED = 1000.0, 300.0  # how many covered marks another label hit, or crossed, is worth
_NEAR = 20.0  # points within which a label needs no line to its place


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """One position of a label: how bad it is, what it takes up, and how to put it there."""

    badness: float
    box: Box
    offset: Place
    side: Literal["left", "center", "right"]


@dataclass
class Labeller:
    """Puts labels at places of an axes so that they cover neither `marks` nor `line`.

    Both are in data units; the axes must have been laid out, as free space is in pixels.
    """

    figure: Figure
    axes: Axes
    marks: Sequence[Place]
    line: Sequence[Place]
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
            zorder=8,
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
        best = min(options, key=lambda option: option.badness)
        label.set_position(best.offset)
        label.set_horizontalalignment(best.side)
        if label.arrow_patch is not None:
            label.arrow_patch.set_visible(math.hypot(*best.offset) > _NEAR)
        self._taken.append(best.box)

    def _option(
        self, width: float, height: float, place: Place, angle: float, distance: float
    ) -> _Option:
        scale = self._scale
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
        crossed = sum(_inside(point, taken) for point in way for taken in self._taken)
        badness = self._badness(box) + _CROSSED * crossed
        return _Option(badness=badness, box=box, offset=(dx, dy), side=side)

    @cached_property
    def _obstacles(self) -> tuple[FloatArray, FloatArray]:
        """Pixels to keep clear of: the marks, and the line every few pixels."""
        marks = self.axes.transData.transform(self.marks)
        if not self.line:
            return marks[:, 0], marks[:, 1]
        line = self.axes.transData.transform(self.line)
        length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
        along = np.linspace(0.0, length[-1], 1 + int(length[-1] / _LINE_STEP))
        x, y = (np.interp(along, length, line[:, axis]) for axis in (0, 1))
        return np.append(x, marks[:, 0]), np.append(y, marks[:, 1])

    @cached_property
    def _scale(self) -> float:
        """Pixels a point."""
        return self.figure.dpi / _POINTS_PER_INCH

    def _badness(self, box: Box) -> float:
        left, bottom, right, top = box
        inside = self.axes.bbox.padded(self._scale * _CLEAR)  # air may be outside, text may not
        outside = (
            max(inside.x0 - left, 0.0)
            + max(right - inside.x1, 0.0)
            + max(inside.y0 - bottom, 0.0)
            + max(top - inside.y1, 0.0)
        )
        x, y = self._obstacles
        covered = ((left <= x) & (x <= right) & (bottom <= y) & (y <= top)).sum()
        clashes = sum(
            left < taken[2] and taken[0] < right and bottom < taken[3] and taken[1] < top
            for taken in self._taken
        )
        return float(100.0 * outside + _CLASH * clashes + covered)


def _inside(point: Place, box: Box) -> bool:
    return box[0] < point[0] < box[2] and box[1] < point[1] < box[3]
