"""Drawing and saving: one call for every figure, and files that are whole or not there."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedplan.atomic import check_target, draft_of

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure as Paper

    from fedplan.figures.spec import Figure

SUFFIXES = (".png", ".svg", ".html")
_DPI = 160


def draw_print(data: Figure) -> Paper:
    """The figure for print, as a matplotlib figure."""
    from fedplan.figures import for_print

    with for_print.print_style():
        return for_print.draw(data)


def draw_screen(data: Figure) -> Any:
    """The figure for the screen, as a plotly figure."""
    from fedplan.figures import for_screen

    return for_screen.draw(data)


def save_figure(data: Figure, path: str | os.PathLike[str]) -> None:
    """Draw a figure into a .png, .svg or .html file; a failure leaves an old file as it was.

    The same data gives the same file. An .html is complete in itself: it works offline.
    """
    check_path(path)
    content = rendered(data, Path(path).suffix.lower())
    with draft_of(path, SUFFIXES) as draft:
        draft.write_bytes(content)


def check_path(path: str | os.PathLike[str]) -> None:
    """Refuse a path that no figure can be saved to, as far as that shows before drawing."""
    check_target(path, SUFFIXES)


def rendered(data: Figure, suffix: str) -> bytes:
    """What a file of this ending holds."""
    if suffix == ".html":
        return _html(data)
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
