"""The paper's procedure: given pairs (K, E), two losses, and its Algorithm 2."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fedplan.convergence.estimation import estimate_bound
from fedplan.convergence.pilots import Pilot
from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord, Stop
from fedplan.errors import InputError
from fedplan.participation import uniform
from fedplan.planning.paper import solve_paper
from fedplan.simulation import Job
from fedplan.studies.archive import Archive, Progress
from fedplan.studies.keys import PlanningTable

Failure = Literal["diverged", "out of reach", "nothing to learn", "losses too close"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperChoice:
    """The result of the pilots: a setting, or why there is none and what to change."""

    status: Literal["chosen", "unfinished"] | Failure
    setting: tuple[int, int] | None = None
    message: str


def run_pilots(
    planning: PlanningTable, max_rounds: int, archive: Archive, *, progress: Progress | None = None
) -> Iterator[RunRecord]:
    """Run every pair to the lower loss, stopping at the first that fails.

    With an archive without an engine, the pilots that have ended.
    """
    upper, lower = _losses(planning)
    stop = Stop(max_rounds=max_rounds, target_loss=lower)
    for clients, steps in planning.pairs or ():
        job = Job(course=uniform(clients, steps), seed=planning.pilot_seed)
        runs = archive.run_all([job], stop, progress=progress)
        ended = [run for run in runs if run.status != "unfinished"]
        yield from ended
        if not ended or _failure(ended[0], upper) is not None:
            return


def choose_setting(
    problem: Problem, planning: PlanningTable, runs: Sequence[RunRecord]
) -> PaperChoice:
    """The paper's (K, E): from the average of the ratios of all pairs of pilots, by P3."""
    upper, lower = _losses(planning)
    if runs and (failure := _failure(runs[-1], upper)) is not None:
        return PaperChoice(status=failure, message=_advice(failure, runs[-1], lower))
    if len(runs) < len(planning.pairs or ()):
        return PaperChoice(status="unfinished", message="The pilots have not ended.")
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
        for run in runs
    ]
    estimate = estimate_bound(pilots, len(problem.fleet), method="pairwise")
    if estimate.bound is None:
        return PaperChoice(status="out of reach", message=estimate.message)
    most = estimate.within_reach(problem.limits).max_local_steps
    limits = replace(problem.limits, max_local_steps=most)
    setting = solve_paper(replace(problem, limits=limits), estimate.bound)
    message = (
        f"The paper's Algorithm 2 says {setting[0]:,} clients per round and {setting[1]:,} "
        f"local steps, from a ratio a0 / b0 of {estimate.ratio:,.4g}."
    )
    return PaperChoice(status="chosen", setting=setting, message=message)


def _losses(planning: PlanningTable) -> tuple[float, float]:
    if planning.pairs is None or planning.upper_loss is None or planning.lower_loss is None:
        raise InputError("the paper's pilots need pairs, upper-loss and lower-loss.")
    return planning.upper_loss, planning.lower_loss


def _failure(run: RunRecord, upper_loss: float) -> Failure | None:
    """Why a pilot is of no use; None if it is of use."""
    if run.status != "target":
        return "diverged" if run.status == "diverged" else "out of reach"
    if run.num_rounds == 0:
        return "nothing to learn"
    return "losses too close" if run.rounds_to(upper_loss) == run.num_rounds else None


def _advice(failure: Failure, run: RunRecord, lower_loss: float) -> str:
    """Why a pilot was of no use, and what to change."""
    clients, steps = run.setting.pair
    pilot = f"A pilot with {clients:,} clients per round and {steps:,} local steps"
    losses = [loss for loss in run.losses if loss is not None] or [math.nan]
    return {
        "diverged": f"{pilot} diverged. Lower learning-rate.",
        "out of reach": (
            f"{pilot} came down to a loss of {min(losses):.4g} in {run.num_rounds:,} rounds, not "
            f"to {lower_loss:g}. Raise lower-loss, allow more rounds, or change learning-rate."
        ),
        "nothing to learn": (
            f"The loss before training is {losses[0]:.4g}, and lower-loss {lower_loss:g} is no "
            "lower. Lower it."
        ),
        "losses too close": (
            f"{pilot} passed upper-loss and lower-loss in the same round, {run.num_rounds:,}. Set "
            "them further apart."
        ),
    }[failure]
