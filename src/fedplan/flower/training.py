"""Training: one run under way, its rounds, its models, and what steers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedplan.core.course import Decision, Steering
from fedplan.core.records import RoundRecord, RunRecord, Status, Stop, Watch
from fedplan.core.setting import Setting
from fedplan.course.live import LiveSteering
from fedplan.flower.averaging import Weights
from fedplan.flower.models import Models, kept_after
from fedplan.flower.sketching import Sketcher
from fedplan.profiling.ledger import Ledger
from fedplan.simulation import Job
from fedplan.simulation.fedavg import NEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a run stands: its rounds, and the models after the last of them, the last one last."""

    rounds: tuple[RoundRecord, ...]
    models: tuple[Weights, ...]


class Training:
    """One run, from its first round or from the last there is."""

    def __init__(self, job: Job, stop: Stop, state: State, samples: Sequence[float]) -> None:
        self.job, self.rounds = job, list(state.rounds)
        self.models = Models(state.models, kept_after(state.rounds))
        self.ledger = Ledger(samples)
        self.steering: Steering = job.course.begin()
        self.sketcher = Sketcher(self.models.weights, job.seed) if job.course.wants_signal else None
        self._stop, self._watch = stop, Watch(stop)
        self._status: Status | None = None
        for record in state.rounds:
            self._watch.spend(record.round, record.seconds, record.joules)
            if record.loss is not None:
                self._watch.arrives(record.loss)
            self.ledger.hear(record.observations)
            self.steering.tell(record)
        self._told = len(self.steering.decisions) if self.rounds else 0

    @property
    def run(self) -> RunRecord:
        """The run as it stands."""
        return RunRecord(
            setting=self.job.setting,
            seed=self.job.seed,
            status="unfinished",
            rounds=tuple(self.rounds),
            identity=self.job.course.identity,
        )

    @property
    def next_round(self) -> int:
        """The number of the round to make; 0 is the evaluation before any."""
        return self.rounds[-1].round + 1 if self.rounds else 0

    def ask(self, clients: int) -> Setting:
        """How to train the next round, where so many clients are known."""
        if isinstance(self.steering, LiveSteering):
            self.steering.meet(clients)
        return self.steering.ask()

    def spend(self, record: RoundRecord) -> bool:
        """What a round has used up; whether the last model is to be judged beside the average."""
        self._status = self._watch.spend(record.round, record.seconds, record.joules)
        last = self.rounds[-1].loss if self.rounds else None
        near = last is not None and self._stop.is_near(last, NEAR)
        return bool(self._status) or (near and self.job.course.wants_signal)

    def take(self, record: RoundRecord, models: Models) -> Status | None:
        """One more round; what has ended the run with it, if anything."""
        if record.loss is not None and self._watch.arrives(record.loss):
            self._status = "target"
        self.models = models
        self.rounds.append(record)
        self.steering.tell(record)
        return self._status

    def news(self) -> list[Decision]:
        """What was settled on since this was last asked."""
        found = self.steering.decisions[self._told :]
        self._told += len(found)
        return found

    def ended(self, status: Status, message: str = "") -> RunRecord:
        """The run, ended."""
        return replace(self.run, status=status, message=message)
