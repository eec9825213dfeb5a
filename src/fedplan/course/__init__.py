"""What to do next: one file for each course."""

from __future__ import annotations

from fedplan.course.online import Online

__all__ = ["Online"]
