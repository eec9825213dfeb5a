"""The report as one self-contained HTML file."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import NamedTuple

from fedplan.figures import Figure
from fedplan.figures.save import page_figure, plotly_script, still_image
from fedplan.markup import Markup, join, table, tag
from fedplan.strictjson import to_json
from fedplan.words import Table

_TONES = {"reached": "good", "swept": "good", "unfinished": "open", "stored": "open"}


class Picture(NamedTuple):
    """A figure, its title, and a description for those who cannot see it."""

    figure: Figure
    title: str
    words: str


class Facts(NamedTuple):
    """Names and what they are; as tiles, the numbers that people look for first."""

    facts: Mapping[str, str]
    as_tiles: bool = False


class Code(NamedTuple):
    """A command, or the content of a file."""

    text: str


Part = str | Picture | Table | Facts | Code | None  # a text is a paragraph
Sections = dict[str, Sequence[Part]]  # what stands under each heading


def page_html(name: str, status: str, message: str, sections: Sections) -> str:
    """The whole page. It loads nothing from anywhere, and its policy forbids that."""
    shown = {title: _shown(parts) for title, parts in sections.items()}
    scripts, tone = [_file("page.js")], _TONES.get(status, "bad")
    if any("data-plot" in content for content in shown.values()):
        scripts.insert(0, plotly_script().read_text(encoding="utf-8"))
    digests = (base64.b64encode(hashlib.sha256(each.encode()).digest()) for each in scripts)
    hashes = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return Template(_file("page.html")).substitute(
        policy="default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src {hashes}",
        title=tag("title", f"{name}: {status} - fedplan"),
        style=_file("page.css"),
        heading=tag("h1", name, " ", tag("span", status, class_=f"status {tone}")),
        message=tag("p", message, class_="lead"),
        contents=tag(
            "ul", [tag("li", tag("a", title, href=f"#{_anchor(title)}")) for title in shown]
        ),
        sections=join(
            tag("section", tag("h2", title), content, id=_anchor(title))
            for title, content in shown.items()
        ),
        scripts=Markup("\n".join(f"<script>{script}</script>" for script in scripts)),
    )


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z]+", "-", title.lower()).strip("-")


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _shown(parts: Sequence[Part]) -> Markup:
    """Parts one after the other; where all are tables of texts, in columns."""
    content = join(map(_html, parts))
    is_columns = all(isinstance(part, Table) and part.plain for part in parts)
    return tag("div", content, class_="tables") if is_columns else content


def _html(part: Part) -> Markup:
    match part:
        case None:
            return Markup("")
        case str():
            return tag("p", part)
        case Code(text):
            return tag("pre", tag("code", text), tabindex="0")
        case Facts(facts, as_tiles=True):
            tiles = [tag("p", tag("b", big), " ", name) for name, big in facts.items()]
            return tag("div", tiles, class_="tiles")
        case Facts(facts):
            pairs = [tag("div", tag("dt", name), tag("dd", text)) for name, text in facts.items()]
            return tag("dl", pairs)
        case Table(head, rows, title, plain=True):
            return table(title, head, rows, class_="plain")
        case Table(head, rows, title, note=note):
            # It scrolls by itself where the page is narrow.
            region = {"tabindex": "0", "role": "region", "aria_label": title}
            box = tag("div", table(title, head, rows), class_="scroll", **region)
            return join([box, tag("p", note)]) if note else box
        case Picture():
            return _figure(part)


def _figure(picture: Picture) -> Markup:
    """A figure: interactive if scripts run, otherwise and on paper an image."""
    data, title, words = picture
    drawn = to_json(page_figure(data)).replace("<", "\\u003c")  # no text in it ends the element
    spec = Markup(f'<script type="application/json">{drawn}</script>')
    return tag(
        "figure",
        tag("img", src=still_image(data), alt=f"{title}. {words}"),
        spec,
        tag("figcaption", tag("b", f"{title}."), f" {words}"),
        data_plot="",
    )
