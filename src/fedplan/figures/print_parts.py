"""Parts of every drawing for print: the style, an empty figure, axes and marks."""

from __future__ import annotations

import textwrap
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from fedplan.figures.style import GREY, GRID, INK, Look
from fedplan.figures.units import tick_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedplan.figures.units import Axis

_NOTE_CHARACTERS = 13.5  # of a note, that fit into an inch

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


def new_figure(width: float = 11.0, height: float = 4.6) -> Figure:
    """An empty figure of this many inches that lays itself out."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def settle_layout(figure: Figure) -> None:
    """Lay a figure out now and for good, so that what is placed by pixels stays in its place."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")


def set_up_axis(axes: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    """Label, scale, ends and ticks."""
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


def draw_mark(
    axes: Axes,
    x: float | list[float],
    y: float | list[float],
    look: Look,
    *,
    label: str = "",
    clip: bool = True,
) -> list[Artist]:
    """One setting, above everything else."""
    return [
        *axes.plot(
            x,
            y,
            look.marker,
            markersize=look.size,
            color=look.colour,
            markeredgecolor="white",
            label=label,
            clip_on=clip,
            zorder=look.layer,
        )
    ]


def in_rows(handles: Sequence[Artist], columns: int) -> list[Artist]:
    """The entries of a legend so that they read row by row; matplotlib fills it by columns."""
    return [handle for first in range(columns) for handle in handles[first::columns]]


def add_legend(figure: Figure, handles: list[Artist], note: str, columns: int) -> None:
    """A legend below the panels, under a note if there is one."""
    wrapped = textwrap.fill(note, int(_NOTE_CHARACTERS * figure.get_figwidth()))
    legend = figure.legend(
        handles=in_rows(handles, columns),
        loc="outside lower left",
        ncols=columns,
        fontsize=9.2,
        title=wrapped or None,
        title_fontsize=9.2,
        alignment="left",
    )
    legend.get_title().set_color(GREY)


def add_note(figure: Figure, note: str) -> None:
    """A note below the panels, where each has a legend of its own."""
    if note:
        add_legend(figure, [], note, columns=1)
