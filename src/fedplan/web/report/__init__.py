"""The report: what a study has come to, in one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from importlib.resources import files
from string import Template

from fedplan.atomic import draft_of
from fedplan.figures.save import plotly_script
from fedplan.markup import Markup, join, tag
from fedplan.studies.stored import Recalled
from fedplan.web.report.origin import origin_sections
from fedplan.web.report.outcome import outcome_sections
from fedplan.web.report.runs import runs_sections, sweep_sections

SUFFIXES = (".html",)

__all__ = ["SUFFIXES", "report_html", "write_report"]


def write_report(found: Recalled, path: str | os.PathLike[str]) -> None:
    """Write the report; a failure leaves an old file as it was."""
    page = report_html(found)
    with draft_of(path, SUFFIXES) as draft:
        draft.write_text(page, encoding="utf-8")


def report_html(found: Recalled) -> str:
    """The whole page. It asks for nothing from anywhere, and its policy lets it ask for nothing."""
    if found.experiment is not None and found.outcome is not None:
        status, message, sections = outcome_sections(found.experiment, found.outcome)
    elif found.experiment is not None and found.sweep is not None:
        status, message, sections = sweep_sections(found, found.experiment, found.sweep)
    else:
        status, message, sections = runs_sections(found)
    shown = {title: join(parts) for title, parts in (sections | origin_sections(found)).items()}
    scripts = [_file("page.js")]
    if any("data-plot" in content for content in shown.values()):
        scripts.insert(0, plotly_script().read_text(encoding="utf-8"))
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return Template(_file("page.html")).substitute(
        policy="default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src {hashes}",
        title=tag("title", f"{found.name}: {status} - fedplan"),
        style=_file("page.css"),
        heading=tag("h1", found.name, " ", tag("span", status, class_=f"status {_tone(status)}")),
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


def _tone(status: str) -> str:
    tones = {"reached": "good", "swept": "good", "unfinished": "open", "stored": "open"}
    return tones.get(status, "bad")


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
