"""Rounds of a law: from what is known of convergence to what training by it takes."""

from __future__ import annotations

from fedplan.convergence.bound import Bound
from fedplan.convergence.saturation import Saturation
from fedplan.core.problem import Problem
from fedplan.core.setting import Participation, Prediction, RoundCost

Convergence = Bound | Saturation

# Rounds that taking turns adds, as a share: this times the square of groups over rounds, for an
# order that repeats makes an error of second order. The middle of the cells of
# `reproduction/participation.py` in which groups are more than a third of the rounds.
TURNS_COST = 0.5


def rounds_of_turns(
    full_rounds: float, num_groups: int, num_clients: int, sampling_rounds: float
) -> float:
    """Rounds where so many groups take turns, from those that all clients at once would need.

    Many groups in few rounds come round hardly once: then turns are as noisy as drawing as many
    clients at random, which adds `sampling_rounds` times s(N / J), and never noisier.

    >>> rounds_of_turns(100.0, 1, 50, 100.0), round(rounds_of_turns(100.0, 11, 50, 100.0), 1)
    (100.0, 100.5)
    >>> round(rounds_of_turns(10.0, 50, 50, 10.0), 1)
    20.0
    """
    in_turn = full_rounds * TURNS_COST * ((num_groups - 1) / full_rounds) ** 2
    clients = num_clients / num_groups
    drawn = sampling_rounds * (num_clients - clients) / (clients * max(num_clients - 1, 1))
    return full_rounds + min(in_turn, drawn)


def expected_rounds(
    convergence: Convergence,
    problem: Problem,
    participation: Participation,
    local_steps: int,
    *,
    target_gap: float = 1.0,
) -> float:
    """Rounds to the target by any law: those of all clients, the law's noise, and its cycle."""
    full = float(convergence.full_rounds(local_steps)) / target_gap
    noise = float(convergence.sampling_rounds(local_steps)) / target_gap
    if participation.averaged > 1:
        return rounds_of_turns(full, participation.averaged, len(problem.fleet), noise)
    return full + noise * participation.sampling_variance(problem)


def predicted(
    problem: Problem, cost: RoundCost, rounds: float, local_steps: int, clients: int | None
) -> Prediction:
    """What so many rounds of this cost come to."""
    paid = problem.objective.of_round(cost.time_s, cost.energy_j, cost.clients)
    return Prediction(
        clients_per_round=clients,
        local_steps=local_steps,
        expected_rounds=rounds,
        time_s=cost.time_s * rounds,
        energy_j=cost.energy_j * rounds,
        cost=float(paid) * rounds,
    )
