"""The pages of the documentation, and the code blocks on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
CHANGES = "docs/decisions/0016-what-a-change-touches.md"
PLACES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/**/*.md",
    "examples/*/README.md",
    "benchmarks/README.md",
    "reproduction/*.md",
)
PAGES = sorted(page for place in PLACES for page in ROOT.glob(place))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A code block: what it is said to be, and the paragraph before it."""

    page: str
    line: int
    language: str
    text: str
    before: str

    @property
    def not_run(self) -> str | None:
        """The reason that the page gives, in italics before the block, for not running it."""
        found = re.search(r"\*Not run by the tests: ([^*]+)\.\*$", self.before)
        return found and found[1]

    @property
    def file(self) -> str | None:
        """The file that the reader is told to save it as: the last one named before it."""
        names = re.findall(r"[Ss]ave (?:this|it) as `([\w.-]+)`", self.before)
        return names[-1] if names else None

    @property
    def is_session(self) -> bool:
        """Whether it is Python as a prompt shows it, which doctest runs."""
        return self.language == "python" and self.text.startswith(">>> ")

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """Every code block of a page, fenced or indented, in order."""
    before = ""
    for token in MarkdownIt("commonmark").parse(page.read_text()):
        if token.type == "inline":
            before = token.content.replace("\n", " ")
        elif token.type in ("fence", "code_block"):
            assert token.map is not None
            yield Block(
                page=str(page.relative_to(ROOT)),
                line=token.map[0] + 1,
                language=token.info,
                text=token.content,
                before=before,
            )
            before = ""


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
