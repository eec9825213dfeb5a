"""Colours and markers of all figures."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Literal, TypeVar

Dash = Literal["solid", "dash", "dot"]
Key = TypeVar("Key")

# Okabe and Ito's palette, which can be told apart with every kind of colour vision.
BLUE, SKY, GREEN, ORANGE = "#0072B2", "#56B4E9", "#009E73", "#E69F00"
VERMILLION, PURPLE, BLACK = "#D55E00", "#CC79A7", "#000000"
BAND_OPACITY = 0.16
PALE, GREY, GRID, INK = "#8FBCDB", "#767676", "#E3E3E3", "#222222"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a marker looks; shape and colour both differ, so that either tells markers apart."""

    colour: str
    symbol: str
    size: float
    layer: int = 6

    @property
    def is_stroke(self) -> bool:
        """Whether it is no more than its outline."""
        return self.symbol == "line-ns"


BY_ROLE = {
    "chosen": Look(colour=VERMILLION, symbol="star", size=17.0, layer=7),
    "paper": Look(colour=PURPLE, symbol="square", size=8.5),
    "current": Look(colour=GREEN, symbol="x", size=9.0, layer=7),
}
OTHERS = (
    Look(colour=ORANGE, symbol="triangle-up", size=9.0),
    Look(colour=GREEN, symbol="diamond", size=8.0),
    Look(colour=SKY, symbol="triangle-down", size=9.0),
    Look(colour=BLACK, symbol="cross", size=8.5),
)

# Viridis without its yellow, which is lost on white: for an ordered series, such as K.
_SERIES = ("#440154", "#414487", "#2A788E", "#22A884", "#7AD151")
_UNORDERED = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down")

# Contours of extra cost. Negative ones show only where the plan is not the cheapest setting:
# the robust choice gives up a little, the paper's more.
LEVELS = (-0.5, -0.2, -0.05, -0.01, 0.01, 0.05, 0.2, 1.0)
# The band above each level of extra cost; the first colour is below them all. Light is cheap.
_BANDS = (
    *("#F3F8E4", "#EAF3D3", "#DDEDC8", "#D3E8C6", "#FFFFFF"),
    *("#DCEAF5", "#B3D2E8", "#85B4D6", "#5A92BF"),
)

# Cells of a heat map, cheap to dear, and the share of the way from which on a text is white.
HEAT = ("#F3F8E4", "#CFE5E4", "#85B4D6", "#3E78AC", "#173A5E")
DARK_FROM = 0.6


def series_looks(ordered: Collection[Key]) -> dict[Key, Look]:
    """A look for each of a series, dark to bright.

    >>> series_looks([3, 20])[3].colour
    '#440154'
    """
    return {
        key: Look(
            colour=between(_SERIES, place / max(len(ordered) - 1, 1)),
            symbol=_SHAPES[place % len(_SHAPES)],
            size=8.5,
        )
        for place, key in enumerate(ordered)
    }


def group_colours(count: int) -> list[str]:
    """A colour for each of so many groups, from bright, the fastest, to dark."""
    return [look.colour for look in reversed(series_looks(range(count)).values())]


def run_looks() -> Iterator[tuple[str, Dash]]:
    """A colour and a dash for each of some lines that have no order, over and over."""
    dashes: tuple[Dash, ...] = ("solid", "dash", "dot")
    return cycle((colour, dash) for dash in dashes for colour in _UNORDERED)


def between(colours: Sequence[str], share: float) -> str:
    """The colour at a share, 0 to 1, of the way through some.

    >>> between(["#000000", "#FF0000", "#FFFFFF"], 0.75)
    '#FF8080'
    """
    position = share * (len(colours) - 1)
    low = min(int(position), len(colours) - 2)
    ends = ([int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours[low : low + 2])
    mixed = (round(a + (b - a) * (position - low)) for a, b in zip(*ends, strict=True))
    return "#" + "".join(f"{part:02X}" for part in mixed)


def band_colours(levels: Sequence[float]) -> list[str]:
    """The colours between and around consecutive ones of `LEVELS`: one more than levels.

    >>> len(band_colours([0.01, 0.05])), band_colours([0.01, 0.05])[1:] == band_colours([0.05])
    (3, True)
    """
    first = LEVELS.index(levels[0]) if levels else sum(level < 0 for level in LEVELS)
    return list(_BANDS[first : first + len(levels) + 1])
