"""Every task by its name."""

from __future__ import annotations

from suite.check import check
from suite.development import development, variants
from suite.setups import setups

TASKS = {task.name: task for task in (*development(), *variants(), *check())}
SETUPS = {task.name: task for task in setups()}
