"""Conduct: how reliably clients have answered lately, and so which to ask and wait for.

Everything follows from the observations of rounds: told of them again, it comes to the same.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from fedplan.core.records import Observation

AWAY = "it is not there"
RESTS = "it has failed several times in a row, and is asked less often"
# A client that has failed f times in a row sits out 2^(f-1) - 1 of its turns, at most so many: one
# that always fails costs little, and one that is repaired is back before long.
MOST_TURNS = 15
# A round waits so many times as long as its slowest client has lately taken, and so many seconds
# more: starting a process takes seconds on a busy machine. Who is late is given twice as long the
# next time, for it may have become slower rather than broken.
LATE, SLACK_S = 3.0, 30.0
RECENT = 8  # answers that tell how long a client takes


class Conduct:
    """Hears of every observation, in order."""

    def __init__(self) -> None:
        self._failures: Counter[int] = Counter()  # in a row
        self._sat_out: Counter[int] = Counter()  # since the last of them
        self._trips: dict[int, deque[tuple[int, float]]] = {}  # local steps and seconds
        self._answers: Counter[int] = Counter()

    def hear(self, observations: Iterable[Observation]) -> None:
        """What came of asking some clients."""
        for one in observations:
            if one.problem == RESTS:
                self._sat_out[one.client] += 1
            elif one.problem and one.problem != AWAY:
                self._failures[one.client] += 1
                self._sat_out[one.client] = 0
            elif not one.problem:
                self._failures[one.client] = self._sat_out[one.client] = 0
                self._answers[one.client] += 1
                if one.round_trip_seconds is not None:
                    trips = self._trips.setdefault(one.client, deque(maxlen=RECENT))
                    trips.append((one.local_steps, one.round_trip_seconds))

    def rests(self, client: int) -> bool:
        """Whether a client is to sit out its turn."""
        failures = self._failures[client]
        turns = 2 ** min(failures - 1, MOST_TURNS.bit_length()) - 1 if failures else 0
        return self._sat_out[client] < min(turns, MOST_TURNS)

    def halves(self, clients: Iterable[int]) -> bool:
        """Whether it is these clients' turn to make half of the steps, which is every other one.

        Their first rounds have all of the steps, one after the other, to tell what a step costs.
        """
        return max((self._answers[client] for client in clients), default=0) % 2 == 0

    def deadline_s(self, clients: Iterable[int], local_steps: int, most: float) -> float:
        """How long to wait for these clients, `most` at most and where one was never heard of."""
        return min([most, *self._patience(clients, local_steps, most)])

    def _patience(self, clients: Iterable[int], local_steps: int, most: float) -> Iterable[float]:
        found = []
        for client in clients:
            trips = self._trips.get(client)
            if not trips:
                return [most]
            slowest = max(seconds * max(1.0, local_steps / steps) for steps, seconds in trips)
            # Bounded, for a client may fail any number of times.
            found.append((LATE * slowest + SLACK_S) * 2.0 ** min(self._failures[client], 30))
        return [max(found)] if found else []
