"""Pilots: the short runs a plan is made from, chosen, judged and stopped; ask() and tell().

Three to five short runs, each for a reason. With many clients a round, which leave little to luck,
a larger and a smaller E with the same cohorts show what local steps save; one to three runs with
two or three clients a round, which leave much to it, show what clients save. Pilots are run to a
loss, not to the target, and further only while that can pay.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fedplan.convergence.curves import Curve
from fedplan.convergence.descent import Descent, fit_descent
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.records import RunRecord, Stop
from fedplan.errors import InputError
from fedplan.participation import uniform
from fedplan.participation.uniform import round_energy_j, round_time_s
from fedplan.planning.descent_plan import DescentPlan, Forecast, forecast, plan_descent
from fedplan.simulation import Job

# Many clients are as many as make a round at most so much dearer than the least; more than the most
# have no noise left to save.
LEAST_CLIENTS, MOST_CLIENTS, DEARER = 10, 50, 2.0
MOST_REPEATS = 3  # of pilots with few clients, where each is cheap
MORE_STEPS, FEWER_STEPS = 1.75, 0.5  # times the E in the middle
FEWEST_ROUNDS = 12  # of a pilot: of fewer, rounding to whole rounds is most of the noise
SHORT = 3  # times the fewest rounds, of a pilot that is run to a target as near as that
PATIENCE = 3  # rounds in a row at its loss before a pilot ends: one lucky cohort ends none
DEAREST = 1.0  # what the second pilot may cost, in units of the first
TOLERANCE = 0.05  # a plan that is most likely this near the best needs no further pilot
Failure = Literal["diverged", "out of reach", "nothing to learn", "losses too close"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How far pilots go, and with how few clients.

    stages : depths of the first pilot, the second, and those with few clients, stage by stage. 1 is
        the first loss, 0 the target, between by ratio.
    few_clients : in the pilots that show what clients save.
    few_runs : of those, where they are not cheap.
    dearest : what one of those may cost, in units of the first pilot, for every time that its
        rounds are cheaper.
    """

    stages: tuple[tuple[float, float, float], ...]
    few_clients: int
    few_runs: int
    dearest: float


# With a harmonic rate a run of three clients says more the longer it is; with others its first
# losses say the most.
_EARLY = Design(
    stages=((0.48, 0.62, 0.8), (0.3, 0.35, 0.5)), few_clients=2, few_runs=2, dearest=0.275
)
_LONGER = Design(stages=((0.4, 0.3, 0.3), (0.2, 0.2, 0.2)), few_clients=3, few_runs=1, dearest=0.1)
DESIGNS = {"constant": _EARLY, "exponential": _EARLY, "harmonic": _LONGER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A pilot to run."""

    job: Job
    stop: Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the pilots have led to: a setting, or why there is none and what to change."""

    status: Literal["chosen", "infeasible"] | Failure
    setting: tuple[int, int] | None = None
    regret: float | None = None
    forecast: Forecast | None = None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotProblem:
    """What every pilot design needs to know."""

    fleet: Fleet
    objective: Objective
    constraints: Constraints
    rate: LearningRate
    target_loss: float
    max_rounds: int
    seed: int

    def round_cost(self, clients_per_round: int, local_steps: int) -> float:
        """Expected cost of one round."""
        seconds = round_time_s(self.fleet, clients_per_round, local_steps)
        joules = float(round_energy_j(self.fleet, clients_per_round, local_steps))
        return float(self.objective.of_round(seconds, joules, clients_per_round))


class DesignedPilots:
    """Decides which pilot is next, and whether another is worth it.

    budget : a further stage is only begun while all pilots together are expected to cost at most
        this share of training.

    Once `ask` returns None, `choice` says what to use, or why there is nothing.
    """

    def __init__(self, problem: PilotProblem, budget: float) -> None:
        self._problem, self._budget = problem, budget
        self._design = _design_of(problem.rate)
        self._jobs = _jobs(problem)
        self._runs: dict[Job, RunRecord] = {}
        self._extended: set[Job] = set()  # in this stage
        self._stage = 0
        self._first_loss: float | None = None
        self.descent: Descent | None = None
        self.plan: DescentPlan | None = None
        self.failure: Failure | None = None

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The pilots so far, each as far as it went."""
        return tuple(self._runs.values())

    @property
    def choice(self) -> Choice:
        """What the pilots so far lead to."""
        if self.failure is not None or self.plan is None:
            return failed(self.failure or "out of reach", self._problem, self.runs)
        if (expected := self.plan.forecast) is None:
            return Choice(status="infeasible", message=self.plan.message)
        if self._is_short and (short := self._short_choice()) is not None:
            return short
        chosen = expected.prediction
        return Choice(
            status="chosen",
            setting=chosen.pair,
            regret=self.plan.regret,
            forecast=expected,
            message=self.plan.message,
        )

    def ask(self) -> Trial | None:
        """The next pilot; None once there is a plan, or there cannot be one."""
        while self.failure is None and self._stage < len(self._design.stages):
            if self._is_short:
                return self._ask_short()
            for position, job in enumerate(self._jobs):
                if job not in self._runs:
                    return self._trial(job, FEWEST_ROUNDS, self._problem.target_loss)
                if self._lowest(job) > self._level(position) and job not in self._extended:
                    return self._trial(job, self._most_rounds(job), self._level(position))
            self._end_stage()
        return None

    def tell(self, run: RunRecord) -> None:
        """What came of the pilot that was asked for."""
        job = Job(course=run.setting, seed=run.seed)
        if job in self._runs:
            self._extended.add(job)
        self._runs[job] = run
        if run.status == "diverged":
            self.failure = "diverged"
            return
        if self._first_loss is None:
            self._first_loss = run.losses[0]
        if self._first_loss is None or self._first_loss <= self._problem.target_loss:
            self.failure = "nothing to learn"
        elif self._has_all_rounds(job) and self._lowest(job) > self._level(0):
            self.failure = "out of reach"

    @property
    def _is_short(self) -> bool:
        """Whether the first pilot was at the target before any pilot may end.

        Training is then shorter than pilots have to be, and they would cost more than they save:
        the first two are run to the target, and the cheaper of them is as good as any plan.
        """
        rounds = self._arrival(self._jobs[0])
        return rounds is not None and rounds <= FEWEST_ROUNDS

    def _arrival(self, job: Job) -> int | None:
        """Rounds until a pilot was at the target, if it was."""
        losses = self._runs[job].losses if job in self._runs else ()
        for number, loss in enumerate(losses):
            if loss is not None and loss <= self._problem.target_loss:
                return number
        return None

    def _ask_short(self) -> Trial | None:
        """The first two pilots, to the target; then there is a plan."""
        for job in self._jobs[:2]:
            if job not in self._runs:
                return self._trial(job, SHORT * FEWEST_ROUNDS, self._problem.target_loss)
        self._end_stage()
        self._stage = len(self._design.stages)
        return None

    def _short_choice(self) -> Choice | None:
        """The cheaper of the pilots that arrived; None where no such setting keeps the limits.

        By what they are expected to cost: which of them took a round or two less is luck.
        """
        if self.descent is None:
            raise AssertionError("the pilots have been fitted")
        problem = self._problem
        known: dict[tuple[float, tuple[int, int], int], Forecast] = {}
        for job in self._runs:
            if (rounds := self._arrival(job)) is not None:
                setting = job.setting.pair
                expected = forecast(problem.fleet, self.descent, problem.objective, *setting)
                total = expected.prediction
                if problem.constraints.met(total.time_s, total.energy_j, total.expected_rounds):
                    known[total.cost, setting, rounds] = expected
        if not known:
            return None
        _, setting, rounds = cheapest = min(known)
        return Choice(
            status="chosen",
            setting=setting,
            forecast=known[cheapest],
            message=(
                f"Training is too short for a plan to pay: a pilot reached the target in "
                f"{rounds:,} rounds. Use {setting[0]:,} clients per round and "
                f"{setting[1]:,} local steps, as it did: the cheapest that was piloted."
            ),
        )

    def _has_all_rounds(self, job: Job) -> bool:
        """Whether this is the first pilot, which the study's rounds alone may end."""
        return job == self._jobs[0] and job in self._extended

    def _trial(self, job: Job, rounds: int, loss: float) -> Trial:
        return Trial(
            job=job,
            stop=Stop(
                max_rounds=min(rounds, self._problem.max_rounds),
                target_loss=loss,
                patience=PATIENCE,
            ),
        )

    def _most_rounds(self, job: Job) -> int:
        first = self._jobs[0]
        if job == first:
            return self._problem.max_rounds
        cheaper = self._round_cost(first) / self._round_cost(job)
        dearest = DEAREST if job in self._jobs[:2] else self._design.dearest * cheaper
        rounds = dearest * cheaper * self._runs[first].num_rounds
        return max(self._runs[job].num_rounds + 1, math.ceil(rounds))

    def _round_cost(self, job: Job) -> float:
        return self._problem.round_cost(*job.setting.pair)

    def _lowest(self, job: Job) -> float:
        return min(loss for loss in self._runs[job].losses if loss is not None)

    def _level(self, position: int) -> float:
        """The loss this pilot ends at, in this stage."""
        depths = self._design.stages[self._stage]
        return self._loss_at(depths[min(position, len(depths) - 1)])

    def _loss_at(self, depth: float) -> float:
        """From the first loss at depth 1 to the target at 0, by ratio."""
        if self._first_loss is None:
            raise AssertionError("the first trial tells the first loss")
        target = self._problem.target_loss
        return target * math.exp(depth * math.log(self._first_loss / target))

    def _end_stage(self) -> None:
        problem = self._problem
        self.descent = fit_descent(
            [curve_of(run) for run in self.runs],
            len(problem.fleet),
            problem.target_loss,
            problem.rate,
        )
        self.plan = plan_descent(
            problem.fleet,
            self.descent,
            problem.objective,
            problem.constraints,
            max_rounds=problem.max_rounds,
        )
        self._stage += 1
        self._extended = set()
        settled = self.plan.regret <= TOLERANCE
        if self._stage < len(self._design.stages) and (settled or not self._affordable()):
            self._stage = len(self._design.stages)

    def _affordable(self) -> bool:
        """Whether the next stage, as long as it will likely be, is within the budget."""
        if self.descent is None or self.plan is None or self.plan.forecast is None:
            return False
        needed = [
            self._round_cost(job)
            * float(self.descent.rounds(*job.setting.pair, self._level(place)))
            for place, job in enumerate(self._jobs)
        ]
        return sum(needed) <= self._budget * self.plan.forecast.prediction.cost


def failed(failure: Failure, problem: PilotProblem, runs: Sequence[RunRecord]) -> Choice:
    """Why the pilots have led to nothing, and what to change."""
    last = runs[-1]
    clients, steps = last.setting.pair
    setting = f"{clients:,} clients per round and {steps:,} local steps"
    target, rate = problem.target_loss, problem.rate.initial
    losses = [loss for loss in last.losses if loss is not None]
    messages = {
        "diverged": f"A pilot with {setting} diverged. Lower learning-rate (now {rate:g}).",
        "out of reach": (
            f"A pilot with {setting} came down to a loss of {min(losses, default=math.nan):.4g} in "
            f"{last.num_rounds:,} rounds, which is not far enough to plan for {target:g}. Raise "
            "target-loss, allow more rounds, or change learning-rate."
        ),
        "nothing to learn": (
            f"The loss before training is {losses[0] if losses else math.nan:.4g}, and the target "
            f"{target:g} is no lower. Lower target-loss."
        ),
        "losses too close": (
            f"A pilot with {setting} passed upper-loss and lower-loss in the same round, "
            f"{last.num_rounds:,}. Set them further apart."
        ),
    }
    return Choice(status=failure, message=messages[failure])


def _design_of(rate: LearningRate) -> Design:
    if rate.schedule not in DESIGNS:
        raise InputError(
            f"pilots are designed for {', '.join(DESIGNS)} rates, but got schedule="
            f"{rate.schedule}. Train without a plan, or use one of these."
        )
    return DESIGNS[rate.schedule]


def curve_of(run: RunRecord) -> Curve:
    """What a fit needs of a run."""
    clients, steps = run.setting.pair
    return Curve(clients_per_round=clients, local_steps=steps, seed=run.seed, losses=run.losses)


def _jobs(problem: PilotProblem) -> list[Job]:
    """The pilots, most informative first; fewer where the limits leave no room."""
    low_k, high_k = problem.constraints.clients_range(len(problem.fleet))
    design = _design_of(problem.rate)
    least, few = (min(max(k, low_k), high_k) for k in (LEAST_CLIENTS, design.few_clients))
    middle = _middle_steps(problem, least)
    between = _within(problem, middle)
    few = min(few, max(low_k, least // 2))
    candidates = range(least, max(least, min(MOST_CLIENTS, high_k)) + 1)
    dearest = DEARER * problem.round_cost(least, between)
    affordable = bisect_right(candidates, dearest, key=lambda k: problem.round_cost(k, between))
    many = candidates[affordable - 1]
    more, fewer = _within(problem, middle * MORE_STEPS), _within(problem, middle * FEWER_STEPS)
    if more == fewer:
        fewer = _within(problem, more / 2)
    is_cheap = problem.round_cost(many, between) >= MOST_REPEATS * problem.round_cost(few, between)
    repeats = MOST_REPEATS if is_cheap else design.few_runs
    planned = [(many, more, 0), (many, fewer, 0), *((few, between, n) for n in range(repeats))]
    jobs = (
        Job(course=uniform(clients, steps), seed=problem.seed + number)
        for clients, steps, number in planned
    )
    return list(dict.fromkeys(jobs))


def _middle_steps(problem: PilotProblem, clients: int) -> float:
    """An E near which the best is likely.

    Between the E whose steps cost what a round costs by itself, and the E at which the learning
    rate times E is 1.
    """
    fleet, objective = problem.fleet, problem.objective
    per_step = objective.of_round(
        fleet.mean("step_time_s"), clients * fleet.mean("step_energy_j"), 0
    )
    per_round = objective.of_round(
        fleet.mean("comm_time_s"), clients * fleet.mean("comm_energy_j"), clients
    )
    balance = float(per_round / per_step) if per_step > 0 and per_round > 0 else 1.0
    return 1.2 * math.sqrt(balance / problem.rate.initial)


def _within(problem: PilotProblem, steps: float) -> int:
    limits = problem.constraints
    least, most = limits.min_local_steps or 1, limits.max_local_steps or 10_000
    return min(max(round(steps), least), most)
