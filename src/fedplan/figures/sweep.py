"""The sweep figure: a heat map of costs over (K, E), relative to the best."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedplan.core.fleet import FloatArray
from fedplan.errors import InputError
from fedplan.figures.axes import Axis
from fedplan.figures.spec import Boxes, Categories, Figure, Panel, Part, Texts, scale_panel
from fedplan.figures.style import BLACK, DARK_FROM, HEAT, INK, VERMILLION, between
from fedplan.words import NO_UNIT, counted, ratio_label

_MOST_LABELS = 16  # values along an axis up to which there is room for numbers in the cells
_HIGHEST = 10.0  # times the best, from which on all is equally dark
_SHADES = 60  # of the scale
_MISSED, _NAME = "a seed did not reach the target", "not every seed arrived"
_INSET = 0.03  # of a cell: its frame is not cut off at the edge of the panel


def sweep_figure_data(
    costs: Mapping[tuple[int, int], float],
    *,
    best: tuple[int, int] | None,
    name: str,
    reached: Mapping[tuple[int, int], str] | None = None,
    by_groups: bool = False,
    note: str = "",
) -> Figure:
    """Data of the sweep figure.

    costs : of each (K, E); infinite if a seed did not reach the target.
    best : the (K, E) that the others are compared with; None if none reached the target.
    reached : what to write in a cell that did not, such as "7/10".
    by_groups : whether K is the number of groups that take turns.
    name : what was swept, for the title.

    >>> data = sweep_figure_data({(1, 5): 3.0, (1, 9): 2.0, (4, 5): math.inf}, best=(1, 9),
    ...     name="demo", reached={(4, 5): "1/2"})
    >>> [part.texts for part in data.panels[0].parts[2:4]]
    [('1/2',), ('+50%', 'best')]
    """
    if not costs:
        raise InputError("a figure of a sweep needs at least one cell, but got none.")
    clients, steps = sorted({k for k, _ in costs}), sorted({e for _, e in costs})
    ratio = np.array([*costs.values()]) / (1.0 if best is None else costs[best])
    places = np.array([(steps.index(e), clients.index(k)) for k, e in costs], dtype=np.float64)
    arrived = np.isfinite(ratio)
    top = float(np.clip(ratio[arrived].max(initial=2.0), 2.0, _HIGHEST))
    with np.errstate(divide="ignore"):  # what costs nothing is as light as the best
        shades = np.clip(np.log(ratio) / math.log(top), 0.0, 1.0)
    words = [ratio_label(one) if math.isfinite(one) else _MISSED for one in ratio.tolist()]
    who = [counted(k, "group") if by_groups else f"K={k:,}" for k, _ in costs]
    hovers = [f"{a}, E={e:,}\n{b}" for a, (_, e), b in zip(who, costs, words, strict=True)]
    parts: list[Part] = [*_coloured(places, arrived, shades, hovers)]
    if max(len(clients), len(steps)) <= _MOST_LABELS:
        texts = [
            "best" if setting == best else (reached or {}).get(setting, "") if at == _MISSED else at
            for setting, at in zip(costs, words, strict=True)
        ]
        parts += _labels(places, texts, arrived, shades > DARK_FROM)
    if best is not None:
        frame = places[[*costs].index(best)][None]
        parts.append(_boxes(frame, _INSET, colours="", edge=VERMILLION, edge_width=2.4, layer=1))
    panel = Panel(
        x=_values("local steps E", steps),
        y=_values("groups that take turns" if by_groups else "clients per round K", clients),
        parts=tuple(parts),
    )
    scale = Axis(label="cost / the best", unit=NO_UNIT, log=True, low=1.0, high=top)
    strip = scale_panel(scale, [between(HEAT, share) for share in np.linspace(0, 1, _SHADES)])
    width, height = 2.8 + 0.72 * len(steps), 2.0 + 0.46 * len(clients)
    return Figure(
        title=f"{name}: mean cost against the best",
        rows=((panel,) if best is None else (panel, strip),),
        size=(min(max(width, 6.5), 13.0), min(max(height, 3.6), 9.5)),
        note=note,
    )


def _coloured(
    places: FloatArray, arrived: NDArray[np.bool_], shades: FloatArray, hovers: Sequence[str]
) -> Iterator[Boxes]:
    """The cells, those that did not arrive hatched."""
    colours = tuple(between(HEAT, shade) for shade in shades[arrived])
    hover = tuple(compress(hovers, arrived))
    yield _boxes(places[arrived], colours=colours, edge="white", hover=hover)
    if not arrived.all():
        style: dict[str, Any] = {"colours": "white", "hatched": True, "name": _NAME}
        yield _boxes(places[~arrived], **style, hover=tuple(compress(hovers, ~arrived)))


def _labels(
    places: FloatArray, texts: Sequence[str], arrived: NDArray[np.bool_], dark: NDArray[np.bool_]
) -> Iterator[Texts]:
    """The texts of all cells, each in a colour that can be read there."""
    # In print a rim of white is around ink alone: hatching needs it, and colours do not.
    inks = ((~arrived, INK), (arrived & ~dark, BLACK), (arrived & dark, "white"))
    for chosen, colour in inks:
        x, y = places[chosen].T
        said = tuple(compress(texts, chosen))
        yield Texts(x=x, y=y, texts=said, side=(0, 0), colour=colour, layer=2)


def _values(label: str, values: Sequence[int]) -> Categories:
    return Categories(names=tuple(f"{value:,}" for value in values), label=label, upward=True)


def _boxes(places: FloatArray, inset: float = 0.0, **style: Any) -> Boxes:
    columns, rows = places.T
    half = 0.5 - inset
    return Boxes(
        left=columns - half, right=columns + half, bottom=rows - half, top=rows + half, **style
    )
