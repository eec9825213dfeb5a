"""Every task by its name."""

from __future__ import annotations

from suite.check import check
from suite.development import development, variants

TASKS = {task.name: task for task in (*development(), *variants(), *check())}
