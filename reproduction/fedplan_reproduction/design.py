"""Design: which settings of each setup are trained, with how many seeds.

The paper averages over 50 seeds and does not print which (K, E) its figures show. These are around
its plans, (20, 143), (100, 29) and (100, 30), and end well before and well after them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What is tried.

    clients_per_round, local_steps : K and E of the grid that is trained to the target.
    shown_clients, shown_steps : the K of the curves with different E, and the other way round.
    energy_weights : at which plans are made and priced; 0 alone where the paper has no other.
    overrides : of the study, before those of the user.
    published_ratio : the paper's A0/B0, which makes its plan where its pilots take hours.
    """

    seeds: int
    clients_per_round: tuple[int, ...]
    local_steps: tuple[int, ...]
    shown_clients: int
    shown_steps: int
    energy_weights: tuple[float, ...]
    overrides: tuple[str, ...] = ()
    published_ratio: float | None = None

    def settings(self, num_clients: int) -> list[tuple[int, int]]:
        """Every (K, E), the longest runs first, so that they are not left for the end."""
        many = [k for k in self.clients_per_round if k <= num_clients] or [num_clients]
        return sorted(product(many, self.local_steps), key=math.prod, reverse=True)


DESIGNS = {
    "setup1": Design(
        seeds=10,
        clients_per_round=(1, 5, 10, 15, 20),
        local_steps=(50, 100, 150, 300),
        shown_clients=20,
        shown_steps=150,
        energy_weights=(0.0,),
    ),
    "setup2": Design(
        seeds=1,
        clients_per_round=(1, 5, 20, 100),
        local_steps=(10, 29, 50),
        shown_clients=20,
        shown_steps=29,  # the paper's plan, from the ratio that it has published
        energy_weights=(0.0,),
        published_ratio=3_140.0,
    ),
    "setup3": Design(
        seeds=20,
        clients_per_round=(1, 2, 5, 10, 20, 50, 100),
        local_steps=(15, 20, 30, 45, 70, 100),
        shown_clients=20,
        shown_steps=30,
        energy_weights=(0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    ),
}
SETUPS = tuple(DESIGNS)

# Where training is long, a quick look ends at a loss of Table I: a third of the rounds.
QUICK_DESIGNS = {
    "setup1": Design(
        seeds=2,
        clients_per_round=(1, 5, 20),
        local_steps=(25, 100, 300),
        shown_clients=20,
        shown_steps=100,
        energy_weights=(0.0,),
        overrides=("target-loss=0.5",),
    ),
    "setup2": Design(
        seeds=1,
        clients_per_round=(1, 5, 20, 100),
        local_steps=(10, 20, 40),
        shown_clients=20,
        shown_steps=20,
        energy_weights=(0.0,),
        overrides=("data=mnist-mini", "target-loss=0.3", "pairs=[[10, 10], [20, 20]]"),
    ),
    "setup3": Design(
        seeds=2,
        clients_per_round=(1, 2, 5, 20, 100),
        local_steps=(15, 30, 60, 120),
        shown_clients=20,
        shown_steps=30,
        energy_weights=(0.0, 0.45, 1.0),
    ),
}


def design_of(setup: str, *, quick: bool) -> Design:
    """The design of a setup."""
    return (QUICK_DESIGNS if quick else DESIGNS)[setup]
