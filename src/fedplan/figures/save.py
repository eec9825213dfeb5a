"""Drawing figures for print or screen, and saving them to files."""

from __future__ import annotations

import base64
import html
import io
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedplan.atomic import check_target, draft_of
from fedplan.errors import FedplanError
from fedplan.figures.for_screen import traces_and_layout
from fedplan.figures.spec import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Paper

SUFFIXES = (".png", ".svg", ".html")
_DPI = 160


def draw_print(data: Figure) -> Paper:
    """The figure for print, as a matplotlib figure."""
    from fedplan.figures import for_print

    with for_print.print_style():
        return for_print.draw(data)


def draw_screen(data: Figure) -> Any:
    """The figure for the screen, as a plotly figure."""
    from plotly.graph_objects import Figure as Screen

    return Screen(traces_and_layout(data))


def save_figure(data: Figure, path: str | os.PathLike[str]) -> None:
    """Draw a figure into a .png, .svg or .html file; a failure leaves an old file unchanged.

    The same data gives the same file. An .html is self-contained: it works offline.
    """
    check_target(path, SUFFIXES)
    suffix = Path(path).suffix.lower()
    content = _html(data) if suffix == ".html" else _printed(data, suffix)
    with draft_of(path, SUFFIXES) as draft:
        draft.write_bytes(content)


def still_image(data: Figure) -> str:
    """The figure for print as a data URL of an SVG."""
    drawn = _printed(_bare(data), ".svg")
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"


def page_figure(data: Figure) -> dict[str, Any]:
    """The figure for the screen as lists and numbers, for a page that has plotly.js."""
    return traces_and_layout(_bare(data), compact=True)


def plotly_script() -> Path:
    """Where plotly's own JavaScript is: it comes with the package, and nothing is fetched."""
    spec = find_spec("plotly")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "package_data" / "plotly.min.js"
        if path.is_file():
            return path
    raise FedplanError("plotly's plotly.min.js is not there. Type: pip install --force plotly")


def _printed(data: Figure, suffix: str) -> bytes:
    from fedplan.figures import for_print

    buffer = io.BytesIO()
    with for_print.print_style():
        figure = for_print.draw(data)
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(buffer, format=suffix[1:], dpi=_DPI, metadata=metadata)
    return buffer.getvalue()


def _html(data: Figure) -> bytes:
    page: str = draw_screen(data).to_html(
        include_plotlyjs=True,  # the whole library: no network needed
        div_id="fedplan-figure",  # otherwise random
        config={"displaylogo": False, "responsive": True},
    )
    head = f"<head><title>fedplan: {html.escape(data.title)}</title>"
    return page.replace("<head>", head, 1).encode()


def _bare(data: Figure) -> Figure:
    """Without titles and note, which a page has in words, and with a legend below all."""
    rows = tuple(
        tuple(replace(panel, title="", own_legend=False) for panel in row) for row in data.rows
    )
    return replace(data, title="", note="", rows=rows)
