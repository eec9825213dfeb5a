"""The page's files, under names that hold a hash of their content: a browser loads each once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from fedplan.figures.save import plotly_script

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_PAGE = "index.html"
# Before plotly's own first line: a browser that knows this comment compiles the whole script beside
# the page while it loads, which otherwise keeps the page itself busy for half a second.
_COMPILE_AHEAD = b"//# allFunctionsCalledOnLoad\n"


@dataclass(frozen=True, slots=True)
class File:
    """A file's type and content, and how long a browser may keep it."""

    kind: str
    content: bytes
    caching: str = "public, max-age=31536000, immutable"

    @property
    def tag(self) -> str:
        """The entity tag."""
        return f'"{_hash(self.content)}"'


def load_files() -> tuple[File, dict[str, File]]:
    """The page, and every other file by its path below /static/.

    Modules import each other by relative names, so all of the page's own share one folder whose
    name is the hash of them all; plotly, which changes seldom, has one of its own.
    """
    folder = files("fedplan.web") / "static"
    own = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}
    page = own.pop(_PAGE).decode()
    plotly = _COMPILE_AHEAD + plotly_script().read_bytes()
    release = _hash(b"".join(own[name] for name in sorted(own)))
    script = f"{_hash(plotly)}/plotly.js"
    page = page.replace("{release}", f"/static/{release}").replace("{plotly}", f"/static/{script}")
    found = {
        f"{release}/{name}": File(_TYPES[name.rpartition(".")[2]], content)
        for name, content in own.items()
    }
    found[script] = File(_TYPES["js"], plotly)
    return File(_TYPES["html"], page.encode(), "no-cache"), found


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
