"""Lines with their spread, shared by several figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.errors import InputError
from fedplan.figures.spec import NOTHING, Figure, Line, Panel
from fedplan.figures.style import Look

_MARKERS = 10  # of a line with a band at most


def line_with_spread(
    name: str,
    look: Look,
    x: FloatArray,
    y: FloatArray,
    around: FloatArray | None = None,
    spread: Literal["band", "bars"] = "bars",
) -> Line:
    """A line; `around` is what y may differ by to either side, where that is known."""
    return Line(
        name=name,
        x=x,
        y=y,
        colour=look.colour,
        look=look,
        every=max(1, x.size // _MARKERS) if spread == "band" else 1,
        low=NOTHING if around is None else y - around,
        high=NOTHING if around is None else y + around,
        spread=spread,
        layer=look.layer,
        hover=f"{name}: {{x}}, {{y}}",
    )


def lines_figure(title: str, panels: Sequence[Panel], columns: int, note: str) -> Figure:
    """Panels in rows; one legend below them all, or one in each where they show other lines."""
    names = [[line.name for line in panel.lines if line.look] for panel in panels]
    if any(other != names[0] for other in names):
        panels = [replace(panel, own_legend=True) for panel in panels]
    rows = [tuple(panels[first : first + columns]) for first in range(0, len(panels), columns)]
    size = (6.2 * columns, 0.9 + 3.5 * len(rows))
    return Figure(title=title, rows=tuple(rows), size=size, note=note)


def known(lines: Sequence[Line]) -> tuple[list[float], list[float]]:
    """Every x, and every y with its spread, that is a number: what the axes must show."""
    xs = np.concatenate([line.x for line in lines])
    ys = np.concatenate([part for line in lines for part in (line.y, line.low, line.high)])
    xs, ys = xs[np.isfinite(xs)], ys[np.isfinite(ys)]
    if not xs.size or not ys.size:
        raise InputError("a figure of lines needs at least one number to draw, but got none.")
    return xs.tolist(), ys.tolist()
