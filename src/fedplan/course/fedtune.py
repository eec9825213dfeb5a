"""FedTune: K and E move by one with every gain in accuracy.

Zhang et al., "FedTune: Automatic Tuning of Federated Learning Hyper-Parameters from System
Perspective" (2022). What a training takes is measured in four loads, each per gain in accuracy:
computing time t, transmission time q, computing load z and transmission load v. More clients are
good for the times and bad for the loads; more steps are good for transmission, bad for computing.

What differs from the paper: E counts local steps instead of passes over the data, so a round has
t = E, q = 1, z = K E and v = K. Accuracy is that of the training samples. The four preferences are
the parts that time and energy of computing and of transmission have in the bill of a round at the
start; the paper leaves them to the user. Where a load did not change before, its multiplier stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.core.records import RoundRecord
from fedplan.course.published import Published, Turning

START_CLIENTS = 20  # the paper begins with M = E = 20
GAIN = 0.01  # in accuracy, from one decision to the next
UNKNOWN = 1e9  # multipliers before anything was measured
PENALTY = 10.0  # for the multipliers of the other direction, where a move made things worse
TIME, SEND_TIME, LOAD, SEND_LOAD = range(4)  # t, q, z and v
CLIENTS_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])
STEPS_SIGNS = np.array([-1.0, 1.0, -1.0, 1.0])


@dataclass(frozen=True, kw_only=True, eq=False)
class FedTune(Published):
    """Begins with 20 clients and 20 steps, unless given otherwise.

    preferences : of t, q, z and v, adding up to 1; by default their parts of a round's bill.
    """

    name: ClassVar[str] = "fedtune"
    preferences: tuple[float, float, float, float] | None = None

    @property
    def usual_clients(self) -> int:
        """The paper's number, whatever the number of clients."""
        return START_CLIENTS

    @cached_property
    def weights(self) -> FloatArray:
        """The preferences; by default the part of each load in a round's bill."""
        if self.preferences is not None:
            return np.array(self.preferences)
        fleet, objective = self.problem.fleet, self.problem.objective
        clients, steps = self.setting.pair
        bill = np.array([
            objective.per_second * steps * fleet.mean("step_time_s"),
            objective.per_second * fleet.mean("comm_time_s"),
            objective.per_joule * clients * steps * fleet.mean("step_energy_j"),
            objective.per_joule * clients * fleet.mean("comm_energy_j")
            + objective.per_client_round * clients,
        ])  # fmt: skip
        return bill / bill.sum() if bill.sum() else np.full(4, 0.25)

    def begin(self) -> FedTuneSteering:
        """A new training."""
        return FedTuneSteering(self)


@dataclass(slots=True)
class _Stretch:
    """The rounds from one decision to the next: their setting, and loads per gain in accuracy."""

    clients: int = 0
    steps: int = 0
    loads: FloatArray = field(default_factory=lambda: np.zeros(4))


class FedTuneSteering(Turning):
    """Adds up loads until accuracy has gained enough, then moves K and E."""

    def __init__(self, course: FedTune) -> None:
        super().__init__(course.setting, "K and E to begin with.")
        self._course = course
        self._accuracy = 0.0
        self._now, self._last, self._before = self._stretch(), _Stretch(), _Stretch()
        self._decided = False
        self._for_clients, self._for_steps = np.full(4, UNKNOWN), np.full(4, UNKNOWN)

    def tell(self, record: RoundRecord) -> None:
        """Report a round; after each gain in accuracy but the first, K and E move."""
        if not record.round:
            self._accuracy = record.accuracy or 0.0
            return
        clients, steps = len(record.cohort), self._setting.local_steps
        self._now.loads += (steps, 1.0, clients * steps, clients)
        if record.accuracy is None or record.accuracy - self._accuracy <= GAIN:
            return
        self._now.loads /= record.accuracy - self._accuracy
        if self._decided:
            self._decide(record.round + 1)
        self._decided, self._accuracy = True, record.accuracy
        self._before, self._last, self._now = self._last, self._now, self._stretch()

    def _stretch(self) -> _Stretch:
        clients, steps = self._setting.pair
        return _Stretch(clients=clients, steps=steps)

    def _decide(self, round_: int) -> None:
        now, last, weights = self._now, self._last, self._course.weights
        change = (now.loads - last.loads) / np.where(now.loads > 0, now.loads, 1.0)
        worse = float(weights @ change) > 0
        good = (TIME, SEND_TIME) if now.clients > last.clients else (LOAD, SEND_LOAD)
        self._learn(self._for_clients, good, worse)
        good = (SEND_TIME, SEND_LOAD) if now.steps > last.steps else (TIME, LOAD)
        self._learn(self._for_steps, good, worse)
        more_clients = (CLIENTS_SIGNS * weights * self._for_clients) @ np.abs(change) > 0
        more_steps = (STEPS_SIGNS * weights * self._for_steps) @ np.abs(change) > 0
        setting = self._course.uniform(
            now.clients + (1 if more_clients else -1), now.steps + (1 if more_steps else -1)
        )
        self.turn_to(
            setting, round_, f"Accuracy has gained {GAIN:g}; loads per gain were compared."
        )

    def _learn(self, multipliers: FloatArray, good: tuple[int, int], worse: bool) -> None:
        """Measure the loads that the last move was good for; raise the others if it was bad."""
        for load in range(4):
            if load in good:
                before = abs(self._last.loads[load] - self._before.loads[load])
                if before:
                    moved = abs(self._now.loads[load] - self._last.loads[load])
                    multipliers[load] = moved / before
            elif worse:
                multipliers[load] *= PENALTY
