"""Figures within a page: a drawing for print, one for the screen, and the script that shows it."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fedplan.figures.for_screen import traces_and_layout
from fedplan.figures.save import draw_screen, rendered

if TYPE_CHECKING:
    from fedplan.figures.spec import Figure

_PER_INCH = 75.0  # pixels of a page's figure for an inch of print: it is one of many there


def still_image(data: Figure) -> str:
    """The figure for print as the address of an image that holds it all: an SVG.

    The figure's title and note are left out: a page has them in words.
    """
    drawn = rendered(_bare(data), ".svg")
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"


def screen_json(data: Figure) -> str:
    """The figure for the screen as plotly's JSON, fit to stand in a script element of a page."""
    drawn: str = draw_screen(_bare(data)).to_json()
    return drawn.replace("<", "\\u003c")  # no text in it ends the element


def screen_data(data: Figure) -> dict[str, Any]:
    """The figure for the screen as lists and numbers, for a page that has plotly.js already.

    Panels have no titles: the page has them in words.
    """
    rows = tuple(tuple(replace(panel, title="") for panel in row) for row in data.rows)
    bare = replace(data, title="", note="", rows=rows)
    drawn: dict[str, Any] = _plain(traces_and_layout(bare, per_inch=_PER_INCH))
    return drawn


def screen_script() -> str:
    """The library that draws `screen_json`: plotly.js as installed, about 5 MB."""
    from plotly.offline import get_plotlyjs

    return cast("str", get_plotlyjs())


def _bare(data: Figure) -> Figure:
    rows = data.rows
    if len(data.panels) == 1:  # then its title is the figure's
        rows = ((replace(data.panels[0], title=""),),)
    return replace(data, title="", note="", rows=rows)


def _plain(value: Any) -> Any:
    """Arrays as lists of few digits, with nothing where there is no number."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return [None if np.isnan(each) else float(f"{each:.5g}") for each in value.tolist()]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
