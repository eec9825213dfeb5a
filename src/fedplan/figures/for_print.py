"""Figures for print, with matplotlib: every kind of part, and how panels stand on paper."""

from __future__ import annotations

import textwrap
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedplan.figures.labels import Labeller, pixels
from fedplan.figures.print_parts import draw_part
from fedplan.figures.spec import Categories, Contours, Line, Points
from fedplan.figures.style import GREY, GRID, INK
from fedplan.figures.units import Axis, tick_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Paper

    from fedplan.figures.spec import Figure, Panel

_CHARACTERS = 13.5  # of a note or legend, that fit into an inch
_ENTRY = 7  # characters that the marker of an entry and the air around it take
_SMALL = 9.2

# Changing matplotlib's settings is visible to all threads; a lock keeps our own from mixing.
_SETTINGS = threading.RLock()


@contextmanager
def print_style() -> Iterator[None]:
    """Matplotlib's defaults with our settings, whatever the user's own are; undone afterwards."""
    import matplotlib.style

    ours = {
        "font.size": 10.5,
        "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
        "axes.titlesize": 11.5,
        "axes.titlelocation": "left",
        "axes.edgecolor": GREY,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "legend.frameon": False,
        "hatch.color": INK,  # to be seen on the darkest band too
        "hatch.linewidth": 0.6,
        "svg.hashsalt": "fedplan",  # the same figure is the same file
    }
    with _SETTINGS, matplotlib.style.context(["default", ours]):
        yield


def draw(data: Figure) -> Paper:
    """The figure; to be called, and to be saved, within `print_style`."""
    from matplotlib.figure import Figure as Paper

    paper = Paper(figsize=data.size, layout="constrained")
    if data.title:
        paper.suptitle(data.title, x=0.01, ha="left", weight="bold", size=13)
    paper.get_layout_engine().set(wspace=0.05)  # type: ignore[union-attr, call-arg]
    shared: dict[str, Artist] = {}
    drawn: list[tuple[Axes, Panel]] = []
    for strip, row in zip(_strips(paper, data), data.rows, strict=True):
        widths = [panel.width for panel in row]
        grid = strip.subplots(1, len(row), width_ratios=widths, squeeze=False)[0]
        for axes, panel in zip(grid, row, strict=True):
            handles = _draw_panel(strip, axes, panel, is_titled=panel.title != data.title)
            if panel.shares_y:
                axes.sharey(grid[0])
                axes.tick_params(labelleft=False)
                axes.set_ylabel("")
            if panel.legend == "shared":
                shared |= {name: handles[name] for name in handles if name not in shared}
            else:
                room = data.size[0] * panel.width / sum(widths)
                _add_legend(axes, panel, [*handles.values()], room)
            drawn.append((axes, panel))
    for name in _labelled(data):
        shared.pop(name, None)
    _add_shared_legend(paper, [*shared.values()], data.note)
    _add_labels(paper, drawn)
    return paper


def _labelled(data: Figure) -> set[str]:
    """Names that are written where their points stand, and need no legend."""
    parts = [part for panel in data.panels for part in panel.parts]
    return {part.name for part in parts if isinstance(part, Points) and part.label == part.name}


def _strips(paper: Paper, data: Figure) -> Sequence[Any]:
    """What each row of panels stands on."""
    if len(data.rows) == 1:
        return [paper]
    heights = [max(panel.height for panel in row) for row in data.rows]
    # Rows are laid out apart: what stands beside a panel takes no room from those above it.
    return list(paper.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])


def _draw_panel(strip: Any, axes: Axes, panel: Panel, *, is_titled: bool) -> dict[str, Artist]:
    """Draw all of a panel but its labels; returns what a legend should explain."""
    axes.set_title(panel.title if is_titled else "")
    _set_up(axes, "x", panel.x)
    _set_up(axes, "y", panel.y)
    if any(isinstance(part, Contours) for part in panel.parts):
        axes.grid(visible=False)
    handles: dict[str, Artist] = {}
    for part in panel.parts:
        handle = draw_part(strip, axes, panel, part)
        if handle is not None and part.name:
            handles.setdefault(part.name, handle)
    return handles


def _set_up(axes: Axes, which: Literal["x", "y"], axis: Axis | Categories) -> None:
    """Label, scale, ends and ticks."""
    if isinstance(axis, Categories):
        _set_up_names(axes, which, axis)
        return
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullFormatter,
        NullLocator,
    )

    ticks = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}label": axis.label})
    if axis.log:
        axes.set(**{f"{which}scale": "log"})
        ticks.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0) if axis.has_few_decades else (1.0,))
        )
        ticks.set_minor_formatter(NullFormatter())
        if axis.ticks is not None:
            ticks.set_major_locator(FixedLocator(axis.ticks))
            ticks.set_minor_locator(NullLocator())
    else:
        steps = [1, 2, 2.5, 5, 10]
        ticks.set_major_locator(MaxNLocator(nbins=6, steps=steps, integer=axis.counts))
    axes.set(**{f"{which}lim": (axis.low, axis.high)})
    ticks.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    if axis.all_zero:
        ticks.set_ticks([0.0])


def _set_up_names(axes: Axes, which: Literal["x", "y"], axis: Categories) -> None:
    places = axis.few if which == "x" else [*enumerate(axis.names)]
    ticks = axes.xaxis if which == "x" else axes.yaxis
    ticks.set_ticks([place for place, _ in places], [name for _, name in places])
    axes.set(**{f"{which}label": axis.label, f"{which}lim": axis.ends})
    axes.tick_params(axis=which, length=0)
    axes.grid(visible=False, axis=which)


def _columns(handles: Sequence[Artist], room: float) -> int:
    """Into how many columns a legend goes that may be so many inches wide."""
    lengths = [len(str(handle.get_label())) + _ENTRY for handle in handles]
    for count in range(len(lengths), 1, -1):
        if sum(max(column) for column in np.array_split(lengths, count)) <= _CHARACTERS * room:
            return count
    return 1


def _add_legend(axes: Axes, panel: Panel, handles: Sequence[Artist], room: float) -> None:
    if panel.legend == "inside":
        # Losses fall, so the upper right is free, but for runs of a round or two.
        legend = axes.legend(handles=handles, loc="upper right", fontsize=9.0, frameon=True)
        legend.get_frame().set(facecolor="white", alpha=0.75, linewidth=0)
        return
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(-0.02, -0.16),
        ncols=_columns(handles, (0.7 if panel.has_scale else 0.9) * room),
        fontsize=9.0,
        columnspacing=1.2,
    )


def _add_shared_legend(paper: Paper, handles: Sequence[Artist], note: str) -> None:
    """Below all panels, under a note if there is one."""
    if not handles and not note:
        return
    legend = paper.legend(
        handles=handles,
        loc="outside lower left",
        ncols=_columns(handles, paper.get_figwidth()),
        fontsize=_SMALL,
        title=textwrap.fill(note, int(_CHARACTERS * paper.get_figwidth())) or None,
        title_fontsize=_SMALL,
        alignment="left",
    )
    legend.get_title().set_color(GREY)


def _add_labels(paper: Paper, drawn: Sequence[tuple[Axes, Panel]]) -> None:
    """Write labels beside their points, once nothing else will move."""
    if not any(isinstance(part, Points) and part.label for _, p in drawn for part in p.parts):
        return
    engine = paper.get_layout_engine()
    if engine is not None:
        engine.execute(paper)
    paper.set_layout_engine("none")
    for axes, panel in drawn:
        size = np.array([panel.x.unit.size, panel.y.unit.size])
        lines = [part for part in panel.parts if isinstance(part, Line)]
        points = [part for part in panel.parts if isinstance(part, Points)]
        curves = [np.column_stack([part.x, part.y]) / size for part in lines if part.x.size]
        places = [np.column_stack([part.x, part.y]) / size for part in points]
        labeller = Labeller(axes=axes, drawn=pixels(axes, curves, places))
        labels: dict[tuple[float, float], list[Points]] = {}  # those at one place share one
        for part, place in zip(points, places, strict=True):
            if part.label:
                labels.setdefault((place[0, 0], place[0, 1]), []).append(part)
        for at, parts in labels.items():
            weight = "bold" if any(part.bold for part in parts) else "normal"
            labeller.add("\n".join(part.label for part in parts), at, weight=weight)
