"""Records: what a training run produced, round by round, on any engine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from fedplan.core.course import Decision
from fedplan.core.setting import Setting
from fedplan.errors import refuse, unmet
from fedplan.frames import make_frame
from fedplan.notebook import Shown
from fedplan.words import in_words

if TYPE_CHECKING:
    from fedplan.core.signal import ClientReports, Signal  # has numpy, which lists do without

# "unavailable": too few clients gave a usable answer. "unfinished": the run is going on, or was cut
# off. "hopeless": the course gave up, since the target cannot be reached.
Status = Literal[
    "target", "rounds", "time", "energy", "diverged", "hopeless", "unavailable", "unfinished"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """When a run ends: whichever comes first.

    target_loss : end once the loss has been at or below it for `patience` consecutive evaluations,
        with the last of them. None never ends a run early.
    max_rounds : rounds at most.
    max_time_s, max_energy_j : budgets; a run ends after the round that exceeds one.
    """

    max_rounds: int
    target_loss: float | None = None
    patience: int = 1
    max_time_s: float = math.inf
    max_energy_j: float = math.inf

    def is_near(self, loss: float, share: float = 0.0) -> bool:
        """Whether this loss is within a share of the target, or past it."""
        if self.target_loss is None:
            return False
        return loss <= self.target_loss + share * abs(self.target_loss)


def check_run(setting: Setting, stop: Stop, num_clients: int) -> None:
    """Refuse what no runner can train, listing every problem at once."""
    problems = setting.problems(num_clients)
    problems += unmet({"max_rounds >= 1": stop.max_rounds >= 1}, max_rounds=stop.max_rounds)
    refuse(problems)


class Watch:
    """Decides when a run ends; it is told of every round, from round 0 on."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._below = 0
        self._seconds = self._joules = 0.0

    def spend(self, round_: int, seconds: float, joules: float) -> Status | None:
        """The budget that this round exhausts, if any; known before its loss."""
        self._seconds += seconds
        self._joules += joules
        if self._seconds > self._stop.max_time_s:
            return "time"
        if self._joules > self._stop.max_energy_j:
            return "energy"
        return "rounds" if round_ >= self._stop.max_rounds else None

    def arrives(self, loss: float) -> bool:
        """Whether a round with this loss ends the run at its target."""
        self._below = self._below + 1 if self._stop.is_near(loss) else 0
        return self._below >= self._stop.patience


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one real client did in one round, and how long it took.

    local_steps : the number of steps it was asked to make.
    train_seconds, joules : of training, as measured by the client; None if it did not.
    round_trip_seconds : from sending the model to receiving the answer, by the server's clock;
        None if no answer came in time.
    problem : why the answer was not used; empty if it was.
    examples : how many samples it trains on; None if unknown.
    """

    client: int
    local_steps: int
    train_seconds: float | None
    round_trip_seconds: float | None
    joules: float | None = None
    problem: str = ""
    examples: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """One round; round 0 is the evaluation before any training, with an empty cohort.

    loss, accuracy : over all training samples, or the part of them that was evaluated; None if
        none were. They are those of the model that is judged: where clients take turns, the average
        of the last cycle's models.
    test_accuracy : of the same model, over samples no client trains on; None if not evaluated.
    model_loss : of the last model alone, if that is another one and was evaluated.
    setting : who trains when, and the local steps of this round; None for round 0.
    cohort, shares : who trained, and the weight of each update; shares are empty if
        they were not recorded.
    observations : of all clients asked, the cohort and those that failed; empty for a
        simulated round.
    signal : what the updates say about local steps, if a course asks; for a simulated round
        it is not stored.
    reports : what the clients of the cohort report; not stored.
    """

    round: int
    loss: float | None = None
    accuracy: float | None = None
    test_accuracy: float | None = None
    cohort: tuple[int, ...] = ()
    seconds: float = 0.0
    joules: float = 0.0
    shares: tuple[float, ...] = ()
    model_loss: float | None = None
    setting: Setting | None = None
    observations: tuple[Observation, ...] = ()
    signal: Signal | None = field(default=None, compare=False, repr=False)
    reports: ClientReports | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunRecord(Shown):
    """One run. `status` says what ended it; a diverged run keeps the rounds before that.

    setting : the first one; each round has its own.
    message : more about the end, if the status does not say everything.
    identity : of the course that steered it, its name first; empty if it kept to its setting.
    decisions : what the course decided on the way.

    >>> start = RoundRecord(round=0, loss=2.0, accuracy=0.1)
    >>> first = RoundRecord(round=1, loss=1.0, accuracy=0.5, cohort=(3,), seconds=2.5, joules=4.0)
    >>> from fedplan.participation import uniform
    >>> run = RunRecord(setting=uniform(1, 5), seed=0, status="target", rounds=(start, first))
    >>> run.num_rounds, run.time_s, run.rounds_to(1.5), run.rounds_to(0.5)
    (1, 2.5, 1, None)
    >>> run
    <RunRecord: participation uniform, clients_per_round 1, local_steps 5, seed 0, ended by target,
     rounds 1, loss 1, time_s 2.5, energy_j 4>
    """

    setting: Setting
    seed: int
    status: Status
    rounds: tuple[RoundRecord, ...]
    message: str = ""
    identity: str = ""
    decisions: tuple[Decision, ...] = ()

    @property
    def label(self) -> str:
        """A short label of its setting, or the name of its course."""
        return self.course or self.setting.label

    @property
    def course(self) -> str:
        """The name of the course that steered it; empty if it kept to its setting."""
        return self.identity.partition("/")[0]

    @property
    def clients_per_round(self) -> int | None:
        """K, where the participation has one."""
        return self.setting.clients_per_round

    @property
    def local_steps(self) -> int:
        """E of the setting that the run began with."""
        return self.setting.local_steps

    @property
    def taken_part(self) -> int:
        """How often a client took part, over all rounds."""
        return sum(len(record.cohort) for record in self.rounds)

    @property
    def num_rounds(self) -> int:
        """Rounds trained; 0 if it diverged before any."""
        return self.rounds[-1].round if self.rounds else 0

    @property
    def losses(self) -> tuple[float | None, ...]:
        """Loss before training, then after every round; None if not evaluated."""
        return tuple(record.loss for record in self.rounds)

    @property
    def final_loss(self) -> float | None:
        """The last evaluated loss; None if the run diverged before any."""
        return next((loss for loss in reversed(self.losses) if loss is not None), None)

    @property
    def test_accuracy(self) -> float | None:
        """The last one evaluated; None if there are no test samples."""
        seen = (record.test_accuracy for record in reversed(self.rounds))
        return next((value for value in seen if value is not None), None)

    @property
    def time_s(self) -> float:
        """Seconds of all rounds."""
        return math.fsum(record.seconds for record in self.rounds)

    @property
    def energy_j(self) -> float:
        """Joules of all rounds."""
        return math.fsum(record.joules for record in self.rounds)

    def to_frame(self) -> Any:
        """A data frame with one row per round: of polars if installed, else of pandas."""
        names = ("round", "loss", "model_loss", "accuracy", "test_accuracy", "seconds", "joules")
        columns = {name: [getattr(record, name) for record in self.rounds] for name in names}
        lists = {
            name: [list(getattr(record, name)) for record in self.rounds]
            for name in ("cohort", "shares")
        }
        return make_frame(columns | lists)

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "participation", self.setting.participation.law
        for name in ("clients_per_round", "local_steps", "seed"):
            if (value := getattr(self, name)) is not None:
                yield name, in_words(value)
        yield "ended by", f"{self.status}{': ' if self.message else ''}{self.message}"
        yield "rounds", in_words(self.num_rounds)
        yield "loss", in_words(self.final_loss)
        yield "time_s", in_words(self.time_s)
        yield "energy_j", in_words(self.energy_j)

    def rounds_to(self, loss: float) -> int | None:
        """The first round evaluated at or below this loss; None if there is none."""
        return next((r.round for r in self.rounds if r.loss is not None and r.loss <= loss), None)

    def until(self, stop: Stop) -> RunRecord | None:
        """The part of this run that `stop` would have allowed; None if it would have continued.

        Only exact for runs evaluated on all samples after every round: otherwise the target itself
        decides when and on what a run is evaluated.
        """
        watch = Watch(stop)
        for position, record in enumerate(self.rounds):
            status = watch.spend(record.round, record.seconds, record.joules)
            if record.loss is not None and watch.arrives(record.loss):
                status = "target"
            if status is not None:
                kept = self.rounds[: position + 1]
                settled = tuple(one for one in self.decisions if one.round <= record.round + 1)
                return replace(self, status=status, rounds=kept, decisions=settled, message="")
        return self if self.status in ("diverged", "hopeless") else None
