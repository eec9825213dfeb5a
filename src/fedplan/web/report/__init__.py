"""The report: a study and its outcome, as a page or as Markdown."""

import os
from collections.abc import Iterator, Sequence

from fedplan.atomic import draft_of
from fedplan.studies.stored import Recalled
from fedplan.web.report.origin import origin_sections
from fedplan.web.report.outcome import outcome_sections
from fedplan.web.report.page import Code, Facts, Part, Sections, page_html
from fedplan.web.report.runs import runs_sections, sweep_sections
from fedplan.words import Table

SUFFIXES = (".html", ".md")

__all__ = ["SUFFIXES", "write_report"]


def write_report(
    found: Recalled, path: str | os.PathLike[str], *, picture: str | None = None
) -> None:
    """Write a page, or Markdown, by the file's ending; a failure leaves an old file as it was.

    picture : a file of the study's figure, for Markdown; a page has figures of its own.
    """
    if found.question is not None and found.outcome is not None:
        status, message, sections = outcome_sections(found, found.question, found.outcome)
    elif found.experiment is not None and found.sweep is not None:
        status, message, sections = sweep_sections(found, found.experiment, found.sweep)
    else:
        status, message, sections = runs_sections(found)
    sections |= origin_sections(found)
    if os.fspath(path).lower().endswith(".html"):
        text = page_html(found.entry.name, status, message, sections)
    else:
        drawn = [f"![Losses, decisions, turns and the bill]({picture})"] if picture else []
        texts = [f"# {found.entry.name}: {status}", message, *drawn, *_markdown(sections)]
        text = "\n\n".join(texts) + "\n"
    with draft_of(path, SUFFIXES) as draft:
        draft.write_text(text, encoding="utf-8")


def _markdown(sections: Sections) -> Iterator[str]:
    for title, parts in sections.items():
        yield f"## {title}"
        for part in parts:
            yield from _texts(part)


def _texts(part: Part) -> Iterator[str]:
    match part:
        case str():
            yield part
        case Code(text):
            yield f"```\n{text.rstrip()}\n```"
        case Facts(facts):
            yield "\n".join(f"- {name}: {text}" for name, text in facts.items())
        case Table(head, rows, title):
            lines: list[Sequence[str]] = [head, ["---"] * len(head), *rows]
            cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
            yield f"**{title}**"
            yield "\n".join(f"| {' | '.join(line)} |" for line in cells)
            if part.note:
                yield part.note
