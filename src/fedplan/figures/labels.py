"""Where labels stand so that they cover little of what is drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.spec import STEP, Line, Points, Side, Texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fedplan.core.fleet import FloatArray
    from fedplan.figures.axes import Axis
    from fedplan.figures.spec import Part

Place = tuple[float, float]

# Of a usual panel, in points of print: only a renderer knows its own, and it is too late then.
_PANEL, _CHARACTER, _AIR = np.array([300.0, 190.0]), np.array([5.8, 13.0]), 4.0
# The nearest first, of which the first of equally good ones is taken.
_SIDES: tuple[Side, ...] = tuple(
    (right, far * above)
    for far in (1, 3, 5, 8)
    for right, above in ((1, 0), (1, 1), (0, 1), (-1, -1), (0, -1), (-1, 0), (-1, 1), (1, -1))
)
_OUTSIDE, _CLASH = 10.0, 100.0  # covered places that a point outside, or a label, is worth
_LINE_STEP = 4.0  # points between the points of a line that are kept clear of


def labels_beside(
    x: Axis, y: Axis, parts: Sequence[Part], labels: Mapping[Place, str], bold: Sequence[Place] = ()
) -> list[Texts]:
    """A label at each place, on the side where it covers least of the parts and other labels."""
    drawn = np.concatenate(
        [np.empty((0, 2)), *(_drawn(x, y, p) for p in parts if isinstance(p, Line | Points))]
    )
    taken: list[FloatArray] = []
    found = []
    for place, text in labels.items():
        at = _PANEL * (*x.shares(place[:1]), *y.shares(place[1:]))
        lines = text.split("\n")
        size = _CHARACTER * (max(map(len, lines)), len(lines))
        side, box = _best_side(at, size, drawn, taken)
        taken.append(box)
        found.append(
            Texts(
                x=np.array([place[0]]),
                y=np.array([place[1]]),
                texts=(text,),
                side=side,
                bold=place in bold,
                layer=10,
            )
        )
    return found


def _best_side(
    at: FloatArray, size: FloatArray, drawn: FloatArray, taken: Sequence[FloatArray]
) -> tuple[Side, FloatArray]:
    least, best = math.inf, (_SIDES[0], _box(at, size, _SIDES[0]))
    for side in _SIDES:
        box = _box(at, size, side)
        if (bad := _badness(box, drawn, taken)) < least:
            least, best = bad, (side, box)
        if not least:
            break
    return best


def _box(at: FloatArray, size: FloatArray, side: Side) -> FloatArray:
    """Lower left and upper right corner of a text."""
    corner = at + STEP * side - size * (1 - np.sign(side)) / 2
    return np.array([corner, corner + size])


def _badness(box: FloatArray, drawn: FloatArray, taken: Sequence[FloatArray]) -> float:
    outside = np.maximum(-box, 0.0).sum() + np.maximum(box - _PANEL, 0.0).sum()
    covered = ((box[0] - _AIR <= drawn) & (drawn <= box[1] + _AIR)).all(axis=1).sum()
    clashes = sum(bool((box[0] < other[1]).all() and (other[0] < box[1]).all()) for other in taken)
    return float(_OUTSIDE * outside + _CLASH * clashes + covered)


def _drawn(x: Axis, y: Axis, part: Line | Points) -> FloatArray:
    """Where a part is drawn: its points, or every few points of print along its line."""
    at: FloatArray = _PANEL * np.column_stack([x.shares(part.x), y.shares(part.y)])
    if isinstance(part, Points) or len(at) < 2:
        return at
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(at, axis=0).T))])
    along = np.linspace(0.0, length[-1], 1 + int(length[-1] / _LINE_STEP))
    return np.column_stack([np.interp(along, length, axis) for axis in at.T])
