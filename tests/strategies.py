"""Random fleets, bounds and constraints: hypothesis strategies and seeded NumPy draws."""

from __future__ import annotations

import math

import bruteforce
import numpy as np
from hypothesis import strategies as st

from fedplan import Bound, Constraints, Fleet, Objective, Prices

positive = st.floats(1e-2, 1e2)
nonnegative = st.one_of(st.just(0.0), positive)


@st.composite
def fleets(draw, min_devices=1, max_devices=12, energy=nonnegative, comm=nonnegative):
    """Heterogeneous devices; values repeat often, so that ties are common."""
    size = draw(st.integers(min_devices, max_devices))

    def column(values):
        few = draw(st.lists(values, min_size=1, max_size=3))
        return draw(st.lists(st.one_of(st.sampled_from(few), values), min_size=size, max_size=size))

    return Fleet(
        step_time_s=column(positive),
        comm_time_s=column(comm),
        step_energy_j=column(energy),
        comm_energy_j=column(energy),
    )


@st.composite
def paper_bounds(draw):
    """The paper's bound, c0 = b0, with sqrt(a0 / b0) between 1 and 200 local steps."""
    b0 = draw(st.floats(1e-2, 10.0))
    return Bound(a0=b0 * draw(st.floats(1.0, 200.0)) ** 2, b0=b0)


def random_fleet(random, max_devices=60):
    """Ties, zero communication, zero energy and counts all occur."""
    counts = random.integers(1, 6, int(random.integers(1, max_devices + 1)))
    if random.random() < 0.6:
        counts[:] = 1
    counts = counts[np.cumsum(counts) <= max_devices]
    counts = counts if counts.size else np.array([1])

    def column(scale, may_be_zero=True):
        kind = random.integers(0 if may_be_zero else 1, 5)
        values = {
            0: np.zeros(counts.size),
            1: np.full(counts.size, random.uniform(0.1, 1)),
            2: random.choice([0.5, 1.0, 2.0, 4.0], counts.size),
            3: random.lognormal(0, 1, counts.size),
            4: random.uniform(0.01, 1, counts.size),
        }
        return scale * values[int(kind)]

    return Fleet(
        step_time_s=column(10 ** random.uniform(-2, 1), may_be_zero=False),
        comm_time_s=column(10 ** random.uniform(-1, 1.5)),
        step_energy_j=column(10 ** random.uniform(-2, 1)),
        comm_energy_j=column(10 ** random.uniform(-1, 1.5)),
        count=counts,
    )


def random_bound(random, most_steps=60):
    """c0 from 0 to 50 b0, a0 now and then 0."""
    b0 = 10 ** random.uniform(-2, 1)
    a0 = 0.0 if random.random() < 0.03 else b0 * random.uniform(0.1, most_steps) ** 2
    return Bound(a0=a0, b0=b0, c0=b0 * random.choice([0.0, 1.0, random.uniform(0, 50)]))


def random_worth(random):
    """Arguments of make_plan that say what time and energy are worth, and their Objective."""
    if random.random() < 0.35:
        prices = Prices(
            per_hour=float(random.choice([0, 1, 10])),
            per_kwh=float(random.choice([0, 0.3, 300])),
            per_client_round=float(random.choice([0.001, 0.1])),
            per_kg_co2=float(random.choice([0, 50])),
            co2_g_per_kwh=400.0,
        )
        return {"prices": prices}, prices.objective()
    weight = float(random.choice([0.0, 1.0, random.random()]))
    return {"energy_weight": weight}, Objective.weighted(weight)


def random_ranges(random, num_clients, most_steps):
    """Ranges of K and E as keyword arguments of Constraints, none in half of the cases."""
    ranges = {}
    if random.random() < 0.4:
        low = int(random.integers(1, num_clients + 1))
        ranges["min_clients_per_round"] = low
        if random.random() < 0.7:
            ranges["max_clients_per_round"] = int(random.integers(low, num_clients + 3))
    if random.random() < 0.4:
        low = int(random.integers(1, most_steps + 1))
        ranges["min_local_steps"] = low
        if random.random() < 0.7:
            ranges["max_local_steps"] = int(random.integers(low, most_steps + 1))
    return ranges


def random_constraints(random, grid, *, limited=0.3):
    """Ranges, and limits on totals that no (K, E) of `grid` sits on the edge of."""
    chosen = random_ranges(random, *grid.rounds.shape)
    inside = grid.allowed(Constraints(**chosen))
    for name in bruteforce.LIMITS:
        totals = grid.total(name)
        if random.random() > limited or not (totals[inside] > 0).all():
            continue
        if random.random() < 0.6:  # near the least possible, so often out of reach
            limit = totals[inside].min() * random.uniform(0.6, 1.6)
        else:
            limit = random.choice(totals[inside].ravel()) * random.uniform(0.9, 1.1)
        limit = max(1, math.floor(limit)) if name == "max_rounds" else float(limit)
        if not (np.abs(totals / limit - 1) < 1e-7).any():
            chosen[name] = limit
    return Constraints(**chosen)
