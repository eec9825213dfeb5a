"""Parts of every report: pictures, tables, facts, code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fedplan.figures import Figure
from fedplan.words import Table


class Picture(NamedTuple):
    """A figure, its title, and what there is to see, for those who cannot, too."""

    figure: Figure
    title: str
    words: str


class Facts(NamedTuple):
    """Names and what they are; as tiles, the numbers that people look for first."""

    facts: Mapping[str, str]
    as_tiles: bool = False


class Code(NamedTuple):
    """What is typed, or stands in a file."""

    text: str


Part = str | Picture | Table | Facts | Code | None  # a text is a paragraph
Sections = dict[str, Sequence[Part]]  # what stands under each heading
