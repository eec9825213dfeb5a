"""Cells: one task, one fleet, one energy weight; what turns cost there beside the best K at random.

Settings are chosen on even seeds and priced on odd ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy.optimize import nnls
from suite.pricing import Pricing, best_uniform, train_uniform
from suite.task import Task
from suite.trainings import Reached, Trainings

from fedplan import Problem
from fedplan.core.setting import RoundCost, Setting
from fedplan.participation import Turns
from fedplan.planning.predict import rounds_of_turns
from fedplan.planning.turns import choose_groups

WORTH_TRYING = 1.25  # local steps are tried where turns are expected to cost at most so much more
CHOOSING, PRICING = (0, 2), (1, 3)  # seeds of turns
STATISTICS = ("rounds", "smooth_rounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Costs to the target of the best (K, E) and of turns, and how well turns were predicted.

    ratio, smooth_ratio : turns over uniform, by the judged model and by ten single models' mean.
    round_cost : expected over realised cost of the rounds of turns that were trained, in their
        order; round_cost_cycles : of a round on average over whole cycles.
    rounds : predicted over realised rounds of turns, from all clients' rounds with the same seeds.
    """

    task: str
    fleet: str
    weight: float
    uniform_clients: int
    uniform_steps: int
    uniform_cost: float
    groups: int
    cycle: int
    turns_steps: int
    full_rounds: float
    turns_rounds: float
    turns_cost: float
    ratio: float
    smooth_ratio: float
    round_cost: float
    round_cost_cycles: float
    rounds: float

    @property
    def row(self) -> dict[str, object]:
        """The cell with numbers of five digits."""
        values = asdict(self)
        return {
            key: f"{value:.5g}" if isinstance(value, float) else value
            for key, value in values.items()
        }


def turns_at(pricing: Pricing, problem: Problem, steps: int) -> Setting:
    """The groups that the formula chooses at a number of local steps."""
    full = pricing.trainings.full_rounds(steps)
    grouping = choose_groups(problem, steps, full)
    return Setting(participation=grouping.whole(), local_steps=steps)


def turns_rounds(full: float, setting: Setting, problem: Problem) -> float:
    """Rounds that turns are expected to take."""
    return rounds_of_turns(full, setting.groups or 1, problem.learning_rate)


def predicted_cost(pricing: Pricing, problem: Problem, setting: Setting) -> float:
    """What turns are expected to cost."""
    full = pricing.trainings.full_rounds(setting.local_steps)
    per_round = _cost(problem, setting.participation.round_cost(problem, setting.local_steps))
    return per_round * turns_rounds(full, setting, problem)


def worth_trying(pricing: Pricing, problem: Problem) -> list[Setting]:
    """Turns at each number of local steps where they are not expected to cost much more."""
    reachable = [
        steps
        for steps in pricing.trainings.task.steps
        if math.isfinite(pricing.trainings.full_rounds(steps))
    ]
    settings = [turns_at(pricing, problem, steps) for steps in reachable]
    expected = [predicted_cost(pricing, problem, setting) for setting in settings]
    least = min(expected)
    return [
        setting
        for setting, cost in zip(settings, expected, strict=True)
        if cost <= WORTH_TRYING * least
    ]


def turns_seeds(task: Task) -> tuple[list[int], list[int]]:
    """Seeds to choose with, and seeds to price with."""
    half = task.seeds // 2
    return list(CHOOSING[:half]), list(PRICING[:half])


def best_turns(pricing: Pricing, problem: Problem, statistic: str) -> tuple[Setting, float]:
    """Turns with the best number of local steps, and their cost on other seeds."""
    choosing, priced = turns_seeds(pricing.trainings.task)
    settings = worth_trying(pricing, problem)
    pricing.trainings.make([(setting, seed) for setting in settings for seed in choosing])
    best = min(settings, key=lambda one: pricing.mean_cost(problem, one, choosing, statistic))
    return best, pricing.mean_cost(problem, best, priced, statistic)


def make_cells(trainings: Trainings, data: Path) -> Iterator[Cell]:
    """Every fleet and weight of a task."""
    train_uniform(trainings)
    for fleet in trainings.task.fleets:
        pricing = Pricing(trainings, fleet, data)
        for weight in trainings.task.weights:
            yield make_cell(pricing, weight)


def make_cell(pricing: Pricing, weight: float) -> Cell:
    """One cell; what is missing is trained."""
    trainings, problem = pricing.trainings, pricing.problem(weight)
    sides = [
        (best_uniform(pricing, problem, name), best_turns(pricing, problem, name))
        for name in STATISTICS
    ]
    (random, random_cost), (turns, turns_cost) = sides[0]
    steps, law = turns.local_steps, turns.participation
    seeds = turns_seeds(trainings.task)[1]
    runs = trainings.make([(turns, seed) for seed in seeds])
    rounds = fmean(run.rounds or math.inf for run in runs)
    full = trainings.full_rounds(steps)
    expected = _cost(problem, law.round_cost(problem, steps))
    clients, random_steps = random.pair
    return Cell(
        task=trainings.task.name,
        fleet=pricing.fleet_name,
        weight=weight,
        uniform_clients=clients,
        uniform_steps=random_steps,
        uniform_cost=random_cost,
        groups=turns.groups or 1,
        cycle=law.cycle,
        turns_steps=steps,
        full_rounds=full,
        turns_rounds=rounds,
        turns_cost=turns_cost,
        ratio=turns_cost / random_cost,
        smooth_ratio=sides[1][1][1] / sides[1][0][1],
        round_cost=_predicted(problem, turns, runs) / turns_cost,
        round_cost_cycles=expected / _cycles_cost(pricing, problem, turns, seeds, runs),
        rounds=turns_rounds(trainings.full_rounds(steps, seeds), turns, problem) / rounds,
    )


def _cost(problem: Problem, cost: RoundCost) -> float:
    return float(problem.objective.of_round(cost.time_s, cost.energy_j, cost.clients))


def _predicted(problem: Problem, setting: Setting, runs: list[Reached]) -> float:
    """What so many rounds of turns are expected to cost, each by the group whose turn it is."""
    law = setting.participation
    if not isinstance(law, Turns):
        raise TypeError("groups take turns here")
    costs = [group.cost for group in law.group_costs(problem, setting.local_steps)]
    return fmean(
        math.fsum(costs[law.turn(round_)] for round_ in range(1, run.rounds + 1)) for run in runs
    )


def _cycles_cost(
    pricing: Pricing, problem: Problem, setting: Setting, seeds: list[int], runs: list[Reached]
) -> float:
    """Realised cost of a round over the whole cycles of these runs; one cycle at least."""
    cycle, costs = setting.participation.cycle, []
    for seed, run in zip(seeds, runs, strict=True):
        whole = max(run.rounds // cycle, 1) * cycle
        bill = pricing.trainings.price(setting, seed, whole, pricing.fleet)
        costs.append(float(problem.objective.of_round(*bill)) / whole)
    return fmean(costs)


def fit(trainings: Trainings) -> dict[str, object]:
    """Saturation of the row of all clients, and the noise of sampling over the grid."""
    task, num_clients = trainings.task, trainings.task.clients[-1]
    full = {steps: trainings.full_rounds(steps) for steps in task.steps}
    fewest = min(full, key=full.__getitem__)  # with more steps than there, rounds rise again
    known = np.array([(e, r) for e, r in full.items() if e <= fewest and math.isfinite(r)])
    terms = np.column_stack([np.ones(len(known)), 1 / known[:, 0]]) / known[:, 1:]
    (floor, slope), _ = nnls(terms, np.ones(len(known)))
    noise = []
    for clients in task.clients[:-1]:
        spread = (num_clients - clients) / (clients * (num_clients - 1))
        for steps, whole in full.items():
            seeds = task.seeds_of(clients)
            runs = trainings.make([(task.uniform(clients, steps), seed) for seed in seeds])
            rounds = [run.rounds or math.inf for run in runs]
            if math.isfinite(whole):
                noise.append((fmean(rounds) / whole - 1) / spread)
    low, middle, high = np.quantile(noise, (0.25, 0.5, 0.75), method="lower")
    return {
        "task": task.name,
        "rounds": f"{floor:.3g}",
        "saturation": f"{slope / floor:.3g}" if floor else "inf",
        "sampling": f"{middle:.2f}",
        "sampling_low": f"{low:.2f}",
        "sampling_high": f"{high:.2f}",
        "never": f"{np.isinf(noise).sum()} of {len(noise)}",
        "full_rounds": " ".join(f"{e}:{r:g}" for e, r in full.items()),
    }
