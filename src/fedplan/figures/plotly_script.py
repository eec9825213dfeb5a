"""Where plotly's own JavaScript is: it comes with the package, and nothing is fetched."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fedplan.errors import FedplanError


def plotly_script() -> Path:
    """The file; plotly itself is not imported."""
    spec = find_spec("plotly")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "package_data" / "plotly.min.js"
        if path.is_file():
            return path
    raise FedplanError("plotly's plotly.min.js is not there. Type: pip install --force plotly")
