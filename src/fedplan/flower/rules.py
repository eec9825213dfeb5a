"""Rules of a round: how long to wait, how many answers it needs, and how it fails."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from fedplan.core.records import Observation, Status
from fedplan.errors import require
from fedplan.flower.replies import NOT_FINITE


class FailedRound(Exception):  # noqa: N818
    """A round that could not be made; how the run ends with it, and why."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRules:
    """How long a round waits, and what makes it count.

    deadline_s : for an answer; what comes later is not used.
    wait_s : for enough clients to be there.
    min_replies : answers that make a round of a fixed (K, E); None for all K.
    max_repeats : how often other clients are asked in place of those that failed. Where groups take
        turns nobody is: those that fail are left out until their next turn.
    """

    deadline_s: float = 3600.0
    wait_s: float = 300.0
    min_replies: int | None = None
    max_repeats: int = 3

    def __post_init__(self) -> None:
        rules = {
            "deadline_s > 0": self.deadline_s > 0,
            "wait_s >= 0": self.wait_s >= 0,
            "min_replies >= 1": self.min_replies is None or self.min_replies >= 1,
            "max_repeats >= 0": self.max_repeats >= 0,
        }
        require(rules, **asdict(self))

    def needed(self, clients_per_round: int) -> int:
        """Answers that make a round of so many clients."""
        return min(self.min_replies or clients_per_round, clients_per_round)


class Silence:
    """Rounds without an answer: a few are allowed, until all clients were asked in vain."""

    def __init__(self, rules: RoundRules) -> None:
        self._rules = rules
        self._rounds = 0
        self._asked: dict[int, Observation] = {}

    def hear(self, round_: int, observations: Iterable[Observation], clients: int) -> None:
        """What came of a round; raises `FailedRound` once all clients were asked in vain."""
        seen = list(observations)
        if any(not one.problem for one in seen):
            self._rounds, self._asked = 0, {}
            return
        self._rounds += 1
        self._asked |= {one.client: one for one in seen}
        if len(self._asked) >= clients and self._rounds > self._rules.max_repeats:
            raise too_few(0, clients, round_, self._asked.values())


def too_few(
    answered: int, wanted: int, round_: int, observations: Iterable[Observation]
) -> FailedRound:
    """A round with too few answers, in words."""
    problems = [(one.client, one.problem) for one in observations if one.problem]
    not_finite = sum(problem == NOT_FINITE for _, problem in problems)
    client, last = problems[-1]
    return FailedRound(
        "diverged" if 2 * not_finite > len(problems) else "unavailable",
        f"Round {round_} needs {wanted} answers, but got {answered} that can be used, "
        f"and {len(problems)} that cannot; the last of those from client {client}: {last}.",
    )
