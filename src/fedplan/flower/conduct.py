"""Conduct: how reliably clients have answered lately, and so which to ask and wait for.

Everything follows from the observations of rounds: hearing them again leads to the same state.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable

from fedplan.core.records import Observation
from fedplan.flower.exchange import SLACK_S

AWAY = "it is not there"
RESTS = "it has failed several times in a row, and is asked less often"
# A client that has failed f times in a row sits out 2^(f-1) - 1 of its turns, but no
# more than this: one that always fails costs little, and one that is repaired is back soon.
MOST_TURNS = 15
# A round waits `LATE` times as long as its slowest client has lately taken, and `SLACK_S`. A late
# client is given twice as long the next time, since it may have become slower rather than broken,
# and four times as long at most: with the turns it sits out, one that never answers then costs the
# others less than a round each.
LATE = 3.0
MOST_PATIENCE = 4.0
SPREAD = 10.0  # before any client is known: one that takes this many times as long as most is late
RECENT = 8  # answers that tell how long a client takes


class Conduct:
    """Hears of every observation, in order."""

    def __init__(self) -> None:
        self._failures: Counter[int] = Counter()  # in a row
        self._late: Counter[int] = Counter()  # of them, those without any answer
        self._sat_out: Counter[int] = Counter()  # since the last of them
        self._recent: dict[int, deque[Observation]] = {}  # of those that answered
        self._answers: Counter[int] = Counter()

    def hear(self, observations: Iterable[Observation]) -> None:
        """Hear what came of a round."""
        for one in observations:
            if one.problem == RESTS:
                self._sat_out[one.client] += 1
            elif one.problem and one.problem != AWAY:
                self._failures[one.client] += 1
                self._late[one.client] += one.round_trip_seconds is None
                self._sat_out[one.client] = 0
            elif not one.problem:
                for counted in (self._failures, self._late, self._sat_out):
                    counted[one.client] = 0
                self._answers[one.client] += 1
                self._recent.setdefault(one.client, deque(maxlen=RECENT)).append(one)

    def rests(self, client: int) -> bool:
        """Whether a client is to sit out its turn."""
        failures = self._failures[client]
        turns = 2 ** min(failures - 1, MOST_TURNS.bit_length()) - 1 if failures else 0
        return self._sat_out[client] < min(turns, MOST_TURNS)

    def halves(self, clients: Iterable[int]) -> bool:
        """Whether these clients are to make half of the steps: in their first, third, ... round."""
        return max((self._answers[client] for client in clients), default=0) % 2 == 0

    def deadline_s(self, clients: Iterable[int], local_steps: int, most: float) -> float:
        """How long to wait for these clients: `most` at most, and if none was ever heard of.

        One that was never heard of counts as the slowest of those that were.
        """
        if not self._recent:
            return most
        slowest = max(self._usual_s(client, local_steps) for client in self._recent)
        patience = [
            (LATE * (self._usual_s(client, local_steps) or slowest) + SLACK_S)
            * min(2.0 ** self._late[client], MOST_PATIENCE)
            for client in clients
        ]
        return min(most, max(patience, default=most))

    @property
    def spread(self) -> float:
        """How many times as long as most a client may take; infinite once clients are known."""
        return math.inf if self._recent else SPREAD

    def _usual_s(self, client: int, local_steps: int) -> float:
        """The longest a client has lately taken; more steps make training longer. 0 if unknown."""
        recent = self._recent.get(client, ())
        more = max(0.0, local_steps / max((one.local_steps for one in recent), default=1) - 1.0)
        trips = [(one.round_trip_seconds or 0.0, one.train_seconds) for one in recent]
        return max((trip + more * (trained or trip) for trip, trained in trips), default=0.0)
