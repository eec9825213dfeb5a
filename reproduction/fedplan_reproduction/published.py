"""Published: the numbers the paper prints, and nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedplan import Pilot, read_pilots

_TABLE_1 = Path(__file__).parent / "published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What the captions of Figures 3 to 5 say.

    time_s, best_time_s : to the target, with the paper's plan and with the best of its search.
    test_accuracy : that is reached about when the target is.
    """

    number: int
    target_loss: float
    time_s: float | None = None
    best_time_s: float | None = None
    test_accuracy: float | None = None


FIGURES = {
    "setup1": Figure(
        number=3, target_loss=0.365, time_s=145.2, best_time_s=141.5, test_accuracy=0.894
    ),
    "setup2": Figure(
        number=4, target_loss=0.06, time_s=856.8, best_time_s=789.0, test_accuracy=0.982
    ),
    "setup3": Figure(number=5, target_loss=1.05),
}


def published_pilots(setup: str) -> list[Pilot]:
    """A setup's rows of Table I.

    >>> first = published_pilots("setup1")[0]
    >>> first.clients_per_round, first.local_steps, first.rounds_to_upper, first.rounds_to_lower
    (10, 50, 48.0, 82.0)
    """
    return read_pilots(_TABLE_1 / f"{setup}.csv")
