"""Figures of lines with their spread: the data that several of them share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedplan.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from fedplan.figures.units import Axis
    from fedplan.theory.fleet import FloatArray

Spread = Literal["band", "bars"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """One line, in seconds or joules where its axes are; not a number where nothing is known.

    spread : to either side of y, of the same shape; empty where none is known.
    ends : what is written at the first and at the last point, if anything.
    """

    name: str
    x: FloatArray
    y: FloatArray
    spread: FloatArray
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinePanel:
    """Lines on common axes; `level` is a value of y to draw across, with its name."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    level: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinesFigure:
    """Panels of lines, ready to be drawn, `columns` of them side by side.

    spread : drawn as a band along the line, or as a bar at each of its points.
    """

    title: str
    panels: tuple[LinePanel, ...]
    columns: int
    spread: Spread
    note: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The lines' names, each once."""
        return tuple(dict.fromkeys(line.name for panel in self.panels for line in panel.lines))

    @property
    def one_legend(self) -> bool:
        """Whether every panel shows the same lines, so that one legend explains all."""
        return all([line.name for line in panel.lines] == [*self.names] for panel in self.panels)


def known(lines: Sequence[Line]) -> tuple[list[float], list[float]]:
    """Every x, and every y with its spread, that is a number: what the axes must show."""
    xs = [float(x) for line in lines for x in line.x if math.isfinite(x)]
    ys = [
        float(y)
        for line in lines
        for side in ((0.0,) if not line.spread.size else (-line.spread, line.spread))
        for y in np.ravel(line.y + side)
        if math.isfinite(y)
    ]
    if not xs or not ys:
        raise InputError("a figure of lines needs at least one number to draw, but got none.")
    return xs, ys


def numbers(values: ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    """Values as an array; its shape must be the one named."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InputError(f"{name} must have shape {shape}, but got {array.shape}.")
    return array
