"""Progress shown on standard error while a command works."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress

    from fedplan.core.records import RoundRecord
    from fedplan.simulation import Job

_NOTICE_AFTER_S = 1.0
_BETWEEN_UPDATES_S = 0.1


@contextmanager
def notice(text: str, *, quiet: bool) -> Iterator[None]:
    """Say why it takes a while, if it does."""
    timer = threading.Timer(_NOTICE_AFTER_S, lambda: click.echo(text, err=True))
    timer.daemon = True
    if not quiet:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Lines(logging.Handler):
    """Writes to what is standard error at that moment: a progress bar replaces it."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


def show_log(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Show what the package logs until the command ends."""
    if wanted:
        logger, lines = logging.getLogger("fedplan"), _Lines()
        logger.addHandler(lines)
        logger.setLevel(logging.INFO)
        context.call_on_close(lambda: logger.removeHandler(lines))


@contextmanager
def _bar(*columns: str, quiet: bool) -> Iterator[Progress | None]:
    """A bar on standard error; None without a terminal, with NO_COLOR, or where quiet.

    columns : the names of rich's columns, such as "Spinner"; any other is text.
    """
    if quiet or not sys.stderr.isatty() or "NO_COLOR" in os.environ:
        yield None
        return
    from rich import progress
    from rich.console import Console

    kinds = {name: getattr(progress, f"{name}Column", None) for name in columns}
    shown = (kind() if kind else progress.TextColumn(name) for name, kind in kinds.items())
    with progress.Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        yield bar


Count = Callable[[int, int], None]  # (done, total)


@contextmanager
def _count_bar(*columns: str, quiet: bool) -> Iterator[Count | None]:
    with _bar(*columns, quiet=quiet) as bar:
        if bar is None:
            yield None
            return
        task = bar.add_task("", total=None)

        def count(done: int, total: int) -> None:
            if bar.tasks[task].total is None:
                # What was done before must not count towards the speed.
                bar.reset(task, completed=done, total=total)
            bar.update(task, completed=done, total=total)

        yield count


def byte_bar(title: str, *, quiet: bool) -> AbstractContextManager[Count | None]:
    """A bar over bytes; None if there are no bars."""
    return _count_bar(title, "Bar", "Download", "TimeRemaining", quiet=quiet)


def job_bar(*, quiet: bool) -> AbstractContextManager[Count | None]:
    """A bar over runs; None if there are no bars."""
    return _count_bar("runs", "MofNComplete", "Bar", "TimeRemaining", " left", quiet=quiet)


def progress_text(step: str, job: Job, record: RoundRecord, place: str = "") -> str:
    """Where a run is: its round and loss, and the setting of this round.

    >>> from types import SimpleNamespace
    >>> setting = SimpleNamespace(label="12 groups, E=31")
    >>> record = SimpleNamespace(round=12, loss=0.83, setting=setting)
    >>> progress_text("training", SimpleNamespace(setting=setting), record)
    'training: round 12, loss 0.83, 12 groups, E=31'
    """
    setting = record.setting or job.setting
    loss = "-" if record.loss is None else f"{record.loss:.4g}"
    return f"{step}: round {place or f'{record.round:,}'}, loss {loss}, {setting.label}"


@contextmanager
def step_bar(
    *, quiet: bool, rounds: int | None = None
) -> Iterator[Callable[[str, Job, RoundRecord], None] | None]:
    """A bar with a study's step, round, loss and setting; None if there are no bars.

    rounds : the most that all runs together can take; if given, the bar shows how many are done.
    """
    with _bar("Spinner", "{task.description}", "TimeElapsed", quiet=quiet) as bar:
        if bar is None:
            yield None
            return
        task = bar.add_task("", total=None)
        shown_at = 0.0
        done: dict[int, int] = {}  # rounds by seed

        def report(step: str, job: Job, record: RoundRecord) -> None:
            nonlocal shown_at
            done[job.seed] = record.round
            now = time.monotonic()
            if now - shown_at >= _BETWEEN_UPDATES_S and record.loss is not None:
                shown_at = now
                place = f"{sum(done.values()):,} of {rounds:,}" if rounds else ""
                bar.update(task, description=progress_text(step, job, record, place))

        yield report
