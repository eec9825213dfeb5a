"""The paper's own procedure: given pairs (K, E), two losses, and its Algorithm 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fedplan.convergence.estimation import estimate_bound
from fedplan.convergence.pilots import Pilot
from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord, Stop
from fedplan.errors import InputError
from fedplan.participation import uniform
from fedplan.planning.paper import solve_paper
from fedplan.planning.steps import steps_range
from fedplan.simulation import Job
from fedplan.studies.keys import PlanningTable

Failure = Literal["diverged", "out of reach", "nothing to learn", "losses too close"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A pilot to run."""

    job: Job
    stop: Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperChoice:
    """What the pilots have led to: a setting, or why there is none and what to change."""

    status: Literal["chosen"] | Failure
    setting: tuple[int, int] | None = None
    message: str


class PaperPilots:
    """Runs every pair to the lower loss, averages the ratios of all pairs of pilots, solves P3."""

    def __init__(self, problem: Problem, table: PlanningTable, max_rounds: int) -> None:
        if table.pairs is None or table.upper_loss is None or table.lower_loss is None:
            raise InputError("the paper's pilots need pairs, upper-loss and lower-loss.")
        self._problem, self._max_rounds, self._seed = problem, max_rounds, table.pilot_seed
        self._pairs = [(clients, steps) for clients, steps in table.pairs]
        self._losses = table.upper_loss, table.lower_loss
        self._runs: list[RunRecord] = []
        self._failure: Failure | None = None

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The pilots so far."""
        return tuple(self._runs)

    def ask(self) -> Trial | None:
        """The next pair; None after the last, or after one that led nowhere."""
        if self._failure is not None or len(self._runs) == len(self._pairs):
            return None
        clients, steps = self._pairs[len(self._runs)]
        return Trial(
            job=Job(course=uniform(clients, steps), seed=self._seed),
            stop=Stop(max_rounds=self._max_rounds, target_loss=self._losses[1]),
        )

    def tell(self, run: RunRecord) -> None:
        """What came of the pair that was asked for."""
        self._runs.append(run)
        if run.status != "target":
            self._failure = "diverged" if run.status == "diverged" else "out of reach"
        elif run.num_rounds == 0:
            self._failure = "nothing to learn"
        elif run.rounds_to(self._losses[0]) == run.num_rounds:
            self._failure = "losses too close"

    @property
    def choice(self) -> PaperChoice:
        """The paper's (K, E)."""
        return self.choice_for(self._problem)

    def choice_for(self, problem: Problem) -> PaperChoice:
        """The paper's (K, E), where devices have turned out to be those of this problem."""
        if self._failure is not None:
            return PaperChoice(status=self._failure, message=self._advice(self._failure))
        upper, lower = self._losses
        pilots = [
            Pilot(
                clients_per_round=run.setting.pair[0],
                local_steps=run.local_steps,
                upper_loss=upper,
                lower_loss=lower,
                rounds_to_upper=run.rounds_to(upper) or 0,
                rounds_to_lower=run.num_rounds,
                seed=run.seed,
            )
            for run in self._runs
        ]
        estimate = estimate_bound(pilots, len(problem.fleet), method="pairwise")
        if estimate.bound is None:
            return PaperChoice(status="out of reach", message=estimate.message)
        limits = estimate.within_reach(problem.limits)
        setting = solve_paper(
            problem.fleet,
            estimate.bound,
            problem.objective,
            clients_range=problem.limits.clients_range(len(problem.fleet)),
            steps_range=steps_range(limits, estimate.bound),
        )
        message = (
            f"The paper's Algorithm 2 says {setting[0]:,} clients per round and {setting[1]:,} "
            f"local steps, from a ratio a0 / b0 of {estimate.ratio:,.4g}."
        )
        return PaperChoice(status="chosen", setting=setting, message=message)

    def _advice(self, failure: Failure) -> str:
        """Why the pilots have led to nothing, and what to change."""
        last = self._runs[-1]
        clients, steps = last.setting.pair
        pilot = f"A pilot with {clients:,} clients per round and {steps:,} local steps"
        losses = [loss for loss in last.losses if loss is not None]
        lowest = min(losses, default=math.nan)
        return {
            "diverged": f"{pilot} diverged. Lower learning-rate.",
            "out of reach": (
                f"{pilot} came down to a loss of {lowest:.4g} in {last.num_rounds:,} rounds, not "
                f"to {self._losses[1]:g}. Raise lower-loss, allow more rounds, or change "
                "learning-rate."
            ),
            "nothing to learn": (
                f"The loss before training is {losses[0] if losses else math.nan:.4g}, and "
                f"lower-loss {self._losses[1]:g} is no lower. Lower it."
            ),
            "losses too close": (
                f"{pilot} passed upper-loss and lower-loss in the same round, "
                f"{last.num_rounds:,}. Set them further apart."
            ),
        }[failure]
