"""What a figure is: panels of a few kinds of parts, plain data that both renderers draw.

Numbers are in seconds and joules where an axis has a unit: the renderers show them in it. Parts are
drawn by rising layer; a legend explains those that have a name, in the order they are given.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedplan.figures.style import BLUE, GREY, INK, Look
from fedplan.figures.units import NO_UNIT, Axis, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fedplan.core.fleet import FloatArray

Dash = Literal["solid", "dash", "dot"]
Legend = Literal["shared", "inside", "below"]
Side = Literal["right", "above", "center"]

_MOST_NAMES = 16  # along x, before they run into each other


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """What all parts have.

    name : what a legend calls it; nothing there where it is empty, and one entry for equal names.
    group : the name of another part that is switched on and off along with it.
    hover : what the screen says under the pointer, "{x}" and "{y}" being the numbers there; one
        text, or one for each point.
    """

    name: str = ""
    group: str = ""
    layer: int = 0
    hover: str | tuple[str, ...] = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line(Part):
    """A line through points.

    look : of the markers on every few of its points, if any.
    low, high : what y may be instead, drawn as a band along the line or as a bar at each point.
    """

    x: FloatArray
    y: FloatArray
    colour: str = BLUE
    width: float = 1.6
    dash: Dash = "solid"
    look: Look | None = None
    every: int = 1
    low: FloatArray = field(default_factory=lambda: np.empty(0))
    high: FloatArray = field(default_factory=lambda: np.empty(0))
    spread: Literal["band", "bars"] = "band"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points(Part):
    """Markers, drawn whole at the edge of a panel too; `label` is written beside the first.

    A label that is the name makes a legend needless; another one goes with the name.
    """

    x: FloatArray
    y: FloatArray
    look: Look
    hollow: bool = False
    label: str = ""
    bold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interval(Part):
    """From `low` to `high` along x at a place of y; an arrow where it goes on beyond."""

    low: float
    high: float
    at: float
    colour: str = BLUE
    width: float = 2.2
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bars(Part):
    """Bars along x, each from its start to its end, at rows of y."""

    at: FloatArray
    start: FloatArray
    end: FloatArray
    colour: str = BLUE
    edge: str = ""
    hatched: bool = False
    thickness: float = 0.55


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texts(Part):
    """A text at each place."""

    x: FloatArray
    y: FloatArray
    texts: tuple[str, ...]
    side: Side = "right"
    colour: str = INK
    bold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contours(Part):
    """A map of what a number is over x and y, one row for each y.

    steps : the number on a scale where level i is i; there is a colour between and around levels.
    texts : what the number is, at every place.
    """

    x: FloatArray
    y: FloatArray
    steps: FloatArray
    texts: tuple[tuple[str, ...], ...]
    levels: tuple[str, ...]
    colours: tuple[str, ...]
    quantity: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shaded(Part):
    """The part of a map where something holds, one row for each y."""

    x: FloatArray
    y: FloatArray
    inside: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells(Part):
    """A heat map of cells between categories, one row for each of y's.

    shades : 0 (light) to 1 (dark), or NaN where there is none.
    hatched : which cells are; `name` explains them.
    framed : the row and column of the cell to look at first.
    scale : some shades, with what they stand for.
    """

    shades: FloatArray
    texts: tuple[tuple[str, ...], ...]
    hovers: tuple[tuple[str, ...], ...]
    hatched: NDArray[np.bool_]
    framed: tuple[int, int] | None
    scale: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Categories:
    """An axis of names, evenly spaced from 0 on; from the top down if it is the vertical one."""

    names: tuple[str, ...]
    label: str = ""
    upward: bool = False

    @property
    def unit(self) -> Unit:
        """There is none: a place is the number of a name."""
        return NO_UNIT

    @property
    def ends(self) -> tuple[float, float]:
        """The lower or left end, and the other."""
        low, high = -0.5, max(len(self.names), 2) - 0.5
        return (low, high) if self.upward else (high, low)

    @property
    def few(self) -> list[tuple[int, str]]:
        """Places with their names, no more than fit side by side."""
        every = -(-len(self.names) // _MOST_NAMES)
        return list(enumerate(self.names))[::every]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """Parts on two axes.

    legend : whether names are explained below all panels, within this one, or below it.
    shares_y : whether y is that of the panel to the left, and not written again.
    width, height : relative to the other panels; the height is in inches where it stands alone.
    name : by which a page finds it.
    words : what there is to see, for those who cannot.
    """

    x: Axis | Categories
    y: Axis | Categories
    parts: tuple[Part, ...]
    title: str = ""
    legend: Legend = "shared"
    shares_y: bool = False
    width: float = 1.0
    height: float = 4.2
    name: str = ""
    words: str = ""

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines that have a name."""
        return tuple(part for part in self.parts if isinstance(part, Line) and part.name)

    @property
    def has_scale(self) -> bool:
        """Whether a bar of colours stands beside it."""
        return any(
            (isinstance(part, Contours) and part.levels) or (isinstance(part, Cells) and part.scale)
            for part in self.parts
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figure:
    """Rows of panels under a title; `size` is width and height in inches of print."""

    title: str
    rows: tuple[tuple[Panel, ...], ...]
    size: tuple[float, float]
    note: str = ""

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels, row by row."""
        return tuple(panel for row in self.rows for panel in row)


def spot(x: float, y: float, look: Look, **words: Any) -> Points:
    """One marker, on the layer of its look."""
    return Points(x=np.array([x]), y=np.array([y]), look=look, layer=look.layer, **words)


def bar(row: int, end: float, colour: str, **style: Any) -> Bars:
    """One bar from 0 on."""
    at, start = np.array([float(row)]), np.zeros(1)
    return Bars(at=at, start=start, end=np.array([float(end)]), colour=colour, **style)


def alone(panel: Panel) -> Figure:
    """One panel as a figure of its own."""
    shown = replace(panel, shares_y=False)
    return Figure(title=panel.title, rows=((shown,),), size=(7.4, panel.height))


def rule(
    x: float | Axis | Categories, y: float | Axis | Categories, name: str = "", dash: Dash = "dot"
) -> Line:
    """A straight line across a panel, along the one of x and y that is an axis."""
    xs, ys = (
        np.full(2, place) if isinstance(place, (int, float)) else np.array(place.ends)
        for place in (x, y)
    )
    return Line(x=xs, y=ys, colour=GREY, width=1.4, dash=dash, name=name, layer=-1)
