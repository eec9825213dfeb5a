"""HTML that is safe by construction: every text is escaped."""

import html
from collections.abc import Iterable, Sequence


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *content: str | Iterable[str], **attributes: str | None) -> Markup:
    """An element; `class_` is its class, `data_x` its data-x, and None omits an attribute.

    >>> tag("p", "a < b & ", tag("b", "c"), class_="note")
    '<p class="note">a &lt; b &amp; <b>c</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ("img", "br", "meta"):
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{join(content)}</{name}>")


def join(parts: Iterable[str | Iterable[str]]) -> Markup:
    """Texts and elements one after the other."""
    return Markup(
        "".join(
            part
            if isinstance(part, Markup)
            else html.escape(part)
            if isinstance(part, str)
            else join(part)
            for part in parts
        )
    )


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], **attributes: str | None
) -> Markup:
    """A table with a caption; the first cell of a row is its heading.

    >>> table("Devices", ["", "count"], [["phone", "3"]])
    '<table><caption>Devices</caption><thead><tr><td></td><th scope="col">count</th></tr></thead>...
    """
    top = [tag("th", name, scope="col") if name else tag("td") for name in head]
    body = [
        tag("tr", tag("th", row[0], scope="row"), [tag("td", cell) for cell in row[1:]])
        for row in rows
    ]
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", top)),
        tag("tbody", body),
        **attributes,
    )
