"""Figures as data: panels made of a few kinds of parts, which both renderers draw.

Numbers are in seconds and joules where an axis has a unit: the renderers show them in it. Parts are
drawn by rising layer; a legend explains those that have a name, in the order they are given.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedplan.core.fleet import FloatArray
from fedplan.errors import InputError
from fedplan.figures.axes import Axis
from fedplan.figures.style import BLUE, GREY, INK, Dash, Look
from fedplan.words import NO_UNIT, Unit

Side = tuple[int, int]  # steps from a place to its text: (1, 0) to the right, (0, 1) above

STEP = np.array([8.0, 6.0])  # points or pixels
_MARKERS = 10  # of a line with many points
_SMALL_MARKER = 6.0  # from which size on a marker has a rim
_MOST_NAMES = 24  # along an axis, before they run into each other


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """What all parts have.

    name : in the legend; empty for no entry. Parts of the same name share the first one's entry.
    hover : shown on screen under the pointer, "{x}" and "{y}" being the numbers there; one
        text, or one for each point.
    """

    name: str = ""
    layer: int = 0
    hover: str | tuple[str, ...] = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line(Part):
    """A line through points.

    look : of the markers on its points, or on every few of many points; None for no markers.
    low, high : the range of y: a bar where each point has a marker, else a band.
    """

    x: FloatArray
    y: FloatArray
    colour: str = BLUE
    width: float = 1.6
    dash: Dash = "solid"
    look: Look | None = None
    low: FloatArray = field(default_factory=lambda: np.empty(0))
    high: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def every(self) -> int:
        """Every how many points there is a marker."""
        return max(1, self.x.size // _MARKERS)

    @property
    def has_band(self) -> bool:
        """Whether the range of y is drawn as a band."""
        return self.low.size > 0 and (self.look is None or self.every > 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points(Part):
    """Markers, drawn whole at the edge of a panel too; `keys` tell a page which one was clicked."""

    x: FloatArray
    y: FloatArray
    look: Look
    hollow: bool = False
    keys: tuple[tuple[int, ...], ...] = ()

    @property
    def rim(self) -> str:
        """The colour around each: white sets a filled one off from what is behind it."""
        is_full = not self.hollow and not self.look.is_stroke and self.look.size >= _SMALL_MARKER
        return "white" if is_full else self.look.colour


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boxes(Part):
    """Rectangles: bars, rounds, cells; `colours` is one for all or one for each, "" for none."""

    left: FloatArray
    right: FloatArray
    bottom: FloatArray
    top: FloatArray
    colours: str | tuple[str, ...] = BLUE
    edge: str = ""
    edge_width: float = 1.2
    hatched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texts(Part):
    """A text at each place."""

    x: FloatArray
    y: FloatArray
    texts: tuple[str, ...]
    side: Side = (1, 0)
    colour: str = INK
    bold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Map(Part):
    """A map of a quantity over x and y, one row for each y.

    steps : the quantity on a scale where level i is i: `colours` are those between the levels.
    values : what it is, as a share: the screen says it under the pointer.
    """

    x: FloatArray
    y: FloatArray
    steps: FloatArray
    values: FloatArray
    colours: tuple[str, ...]
    quantity: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shaded(Part):
    """The part of a map where something holds, one row for each y."""

    x: FloatArray
    y: FloatArray
    inside: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Categories:
    """An axis of names, evenly spaced from 0 on; from the top down if it is the vertical one."""

    unit: ClassVar[Unit] = NO_UNIT  # a place is the number of a name

    names: tuple[str, ...]
    label: str = ""
    upward: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The lower or left end, and the other."""
        low, high = -0.5, max(len(self.names), 2) - 0.5
        return (low, high) if self.upward else (high, low)

    @property
    def ticks(self) -> list[tuple[int, str]]:
        """Places with their names, no more than fit beside each other."""
        every = -(-len(self.names) // _MOST_NAMES)
        return list(enumerate(self.names))[::every]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """Parts on two axes.

    own_legend : whether names are explained within this panel, not below all of them.
    shares_y : whether y is that of the panel to the left, and not written again.
    y_at_right : whether y is written to the right of the panel.
    width, height : relative to the other panels; the height is in inches if it stands alone.
    name : by which a page finds it.
    words : a description for those who cannot see it.
    """

    x: Axis | Categories
    y: Axis | Categories
    parts: tuple[Part, ...]
    title: str = ""
    own_legend: bool = False
    shares_y: bool = False
    y_at_right: bool = False
    width: float = 1.0
    height: float = 4.2
    name: str = ""
    words: str = ""


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


def bars(
    rows: ArrayLike, end: FloatArray, start: ArrayLike = 0.0, thickness: float = 0.55, **style: Any
) -> Boxes:
    """Bars along x at rows of y."""
    at = np.asarray(rows, dtype=np.float64)
    left = np.broadcast_to(np.asarray(start, dtype=np.float64), end.shape)
    half = thickness / 2
    return Boxes(left=left, right=end, bottom=at - half, top=at + half, **style)


def rule(
    x: float | Axis | Categories, y: float | Axis | Categories, name: str = "", dash: Dash = "dot"
) -> Line:
    """A straight line across a panel, along the one of x and y that is an axis."""
    xs, ys = (
        np.full(2, place) if isinstance(place, (int, float)) else np.array(place.ends)
        for place in (x, y)
    )
    return Line(x=xs, y=ys, colour=GREY, width=1.4, dash=dash, name=name, layer=-1)


def interval(
    low: float,
    high: float,
    at: float,
    colour: str = BLUE,
    *,
    width: float = 2.2,
    goes_on: bool = False,
    **words: Any,
) -> tuple[Part, ...]:
    """A line from `low` to `high` along x at a place of y; with an arrow if it goes on."""
    x, y = np.array([low, high]), np.full(2, at)
    cap, arrow = (
        Look(colour=colour, symbol=one, size=9.0) for one in ("line-ns", "triangle-right")
    )
    line, caps = Line(x=x, y=y, colour=colour, width=width, **words), slice(1 if goes_on else 2)
    ends = Points(x=x[caps], y=y[caps], look=cap, **words)
    beyond = Points(x=x[1:], y=y[1:], look=arrow, **words)
    return (line, ends, beyond) if goes_on else (line, ends)


def scale_panel(axis: Axis | Categories, colours: Sequence[str]) -> Panel:
    """The strip beside a map that says what its colours mean.

    On an axis of names each one stands where a colour ends and the next begins; on a logarithmic
    one the colours are evenly spread from its lower end to its upper one.
    """
    if isinstance(axis, Categories):
        edges = np.arange(-1.0, len(colours))
    else:
        edges = np.geomspace(*axis.ends, len(colours) + 1)
    nowhere = Categories(names=("",), upward=True)
    ends = np.tile(nowhere.ends, (len(colours), 1)).T
    strip = Boxes(
        left=ends[0], right=ends[1], bottom=edges[:-1], top=edges[1:], colours=tuple(colours)
    )
    return Panel(x=nowhere, y=axis, parts=(strip,), width=0.06, y_at_right=True)


def alone(*panels: Panel) -> Figure:
    """One panel as a figure of its own; or several, one below the other."""
    rows = tuple((replace(panel, title="", shares_y=False),) for panel in panels)
    size = (7.4, sum(panel.height for panel in panels))
    return Figure(title=panels[0].title, rows=rows, size=size)


def line_with_spread(
    name: str, look: Look, x: FloatArray, y: FloatArray, around: FloatArray | None = None
) -> Line:
    """A line; `around` is the spread of y to either side, if known."""
    hover = f"{name}: {{x}}, {{y}}"
    line = Line(name=name, x=x, y=y, colour=look.colour, look=look, layer=look.layer, hover=hover)
    return line if around is None else replace(line, low=y - around, high=y + around)


def known(lines: Sequence[Line]) -> tuple[list[float], list[float]]:
    """Every x, and every y with its spread, that is a number: what the axes must show."""
    xs = np.concatenate([line.x for line in lines])
    ys = np.concatenate([part for line in lines for part in (line.y, line.low, line.high)])
    xs, ys = xs[np.isfinite(xs)], ys[np.isfinite(ys)]
    if not xs.size or not ys.size:
        raise InputError("a figure of lines needs at least one number to draw, but got none.")
    return xs.tolist(), ys.tolist()
