"""The check half of the suite: tasks of other kinds and origins than the development half."""

from __future__ import annotations

from suite.task import Task


def check() -> list[Task]:
    """Tasks that methods are judged on, and that none is tuned on."""
    return []
