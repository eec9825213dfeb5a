"""AdaComm: fewer local steps as the loss falls.

Wang and Joshi, "Adaptive Communication Strategies to Achieve the Best Error-Runtime Trade-off in
Local-Update SGD" (2019). With F0 and eta0 the loss and the rate at the start,

    tau = ceil(sqrt(F / F0 * eta0 / eta) * tau0),

and half as many as before where the loss has not fallen enough to make tau smaller.

What differs from the paper: it looks every ten rounds instead of every 60 seconds, since seconds
here depend on the devices. Stalling is judged by the loss alone, without the rate: otherwise rates
that fall in every round would look like a stall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from fedplan.core.records import RoundRecord
from fedplan.course.published import Published, Turning

SHRINK = 0.5  # the paper's gamma


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaComm(Published):
    """Begins with 20 steps and all clients, as in the paper, unless given otherwise.

    interval : rounds between two updates.
    """

    name: ClassVar[str] = "adacomm"
    usual_share: ClassVar[float] = 1.0
    interval: int = 10

    def begin(self) -> AdaCommSteering:
        """A new training."""
        return AdaCommSteering(self)


class AdaCommSteering(Turning):
    """Looks at the loss every few rounds."""

    def __init__(self, course: AdaComm) -> None:
        super().__init__(course.setting, "Local steps to begin with, tau0.")
        self._course = course
        self._first_loss: float | None = None
        self._by_loss = float(course.setting.local_steps)
        self._next_look = course.interval

    def tell(self, record: RoundRecord) -> None:
        """Report a round; its loss decides if it was evaluated and an update is due."""
        if record.loss is None:
            return
        if self._first_loss is None:
            self._first_loss = record.loss
        if record.round < self._next_look:
            return
        self._next_look = record.round + self._course.interval
        self._look(record.round, record.loss)

    def _look(self, round_: int, loss: float) -> None:
        course = self._course
        clients, start = course.setting.pair
        first = max(self._first_loss or 0.0, 0.0)
        wanted = math.sqrt(max(loss, 0.0) / first) * start if first else 0.0
        stalls = math.ceil(wanted) >= math.ceil(self._by_loss)
        self._by_loss = SHRINK * self._by_loss if stalls else wanted
        rate = course.problem.learning_rate
        now = rate.at(round_) if rate else 0.0
        slower = math.sqrt(rate.at(0) / now) if rate and now > 0 else 1.0
        why = "The loss stalls." if stalls else f"The loss has come to {loss:.4g}."
        self.turn_to(course.uniform(clients, math.ceil(self._by_loss * slower)), round_ + 1, why)
