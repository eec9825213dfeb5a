"""Algorithm 2 from its pilots to its (K, E), beside the paper's lines written out."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from statistics import fmean

import bruteforce
import pytest
from scipy.optimize import minimize

from fedplan import Bound, Fleet, Objective, estimate_bound
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.participation import uniform
from fedplan.studies import choose_setting, read_study, run_pilots
from fedplan_reproduction.published import published_pilots

SETUP_1 = Fleet(step_time_s=3.1e-3, comm_time_s=0.34, count=20)
SETUP_3 = Fleet(step_time_s=0.1, comm_time_s=2.0, step_energy_j=1e-3, comm_energy_j=2e-2, count=100)
CASES = [
    pytest.param("setup1", SETUP_1, 0.0, id="setup 1"),
    *(pytest.param("setup3", SETUP_3, g, id=f"setup 3, gamma {g}") for g in (0.0, 0.3, 0.45, 1.0)),
]


def trained(pilot):
    """A run that arrives at the pilot's two losses in the rounds that the pilot has."""
    losses = [
        pilot.lower_loss
        if round_ == pilot.rounds_to_lower
        else pilot.upper_loss
        if round_ >= pilot.rounds_to_upper
        else 2 * pilot.upper_loss
        for round_ in range(int(pilot.rounds_to_lower) + 1)
    ]
    rounds = tuple(RoundRecord(round=r, loss=loss) for r, loss in enumerate(losses))
    setting = uniform(pilot.clients_per_round, pilot.local_steps)
    return RunRecord(setting=setting, seed=0, status="target", rounds=rounds)


class Published:
    """An archive whose runs are the published pilots."""

    def __init__(self, pilots):
        self.pilots = {(pilot.clients_per_round, pilot.local_steps): pilot for pilot in pilots}

    def run_all(self, jobs, stop, **_):
        found = [self.pilots[job.setting.pair] for job in jobs]
        assert all(stop.target_loss == pilot.lower_loss for pilot in found)
        return [trained(pilot) for pilot in found]


def chosen(setup, fleet, weight, pilots):
    """What the package makes of these pilots, run as it asks for them."""
    problem = Problem(fleet=fleet, objective=Objective.weighted(weight))
    planning = read_study(setup).planning
    runs = list(run_pilots(planning, 1000, Published(pilots)))
    assert len(runs) == len(pilots)
    return choose_setting(problem, planning, runs).setting


def pairwise_ratio(pilots, num_clients):
    """Line 4: the average over all pairs of what solves Eq. 25, where that is above 0."""

    def drift(p):
        k = p.clients_per_round
        return (1 + (num_clients - k) / (k * (num_clients - 1))) * p.local_steps**2

    def spent(p):
        return p.local_steps * (p.rounds_to_lower - p.rounds_to_upper)

    ratios = [
        (spent(j) * drift(i) - spent(i) * drift(j)) / (spent(i) - spent(j))
        for i, j in itertools.combinations(pilots, 2)
        if spent(i) != spent(j)
    ]
    return fmean(ratio for ratio in ratios if ratio > 0)


def rounded(fleet, ratio, weight):
    """Lines 5 to 13: the minimum of P3 over real K and E, and the best of four roundings."""
    bound = Bound.from_ratio(ratio)

    def p3(z):
        return float(bruteforce.p3(fleet, bound, weight, *z))

    limits = [(1.0, len(fleet)), (1.0, 2000.0)]
    # Convex in the logarithms, so any start will do.
    real = minimize(
        lambda z: math.log(p3([math.exp(z[0]), math.exp(z[1])])),
        [1.0, 3.0],
        bounds=[tuple(map(math.log, ends)) for ends in limits],
        tol=1e-14,
    )
    k, e = (math.exp(value) for value in real.x)
    around = itertools.product(
        {math.floor(k + 1e-6), math.ceil(k - 1e-6)}, {math.floor(e), math.ceil(e)}
    )
    return min(around, key=p3), (k, e)


@pytest.mark.parametrize(("setup", "fleet", "weight"), CASES)
def test_from_table_1_to_the_papers_setting(setup, fleet, weight):
    pilots = published_pilots(setup)
    expected, real = rounded(fleet, pairwise_ratio(pilots, len(fleet)), weight)
    assert chosen(setup, fleet, weight, pilots) == expected
    if weight == 1:
        assert expected[0] == 1
    if weight == 0:
        assert expected[0] == len(fleet)
    assert abs(expected[1] - real[1]) < 1


def test_another_estimate_is_another_setting():
    pilots = published_pilots("setup1")
    joint = estimate_bound(pilots, 20, method="joint").ratio
    assert chosen("setup1", SETUP_1, 0.0, pilots) != rounded(SETUP_1, joint, 0.0)[0]
    consecutive = fmean(pairwise_ratio(pair, 20) for pair in itertools.pairwise(pilots))
    assert chosen("setup1", SETUP_1, 0.0, pilots) != rounded(SETUP_1, consecutive, 0.0)[0]


def test_pilots_that_stop_at_another_loss_are_another_setting():
    pilots = published_pilots("setup1")
    early = [replace(p, rounds_to_upper=1.0, rounds_to_lower=p.rounds_to_upper) for p in pilots]
    assert chosen("setup1", SETUP_1, 0.0, early) != chosen("setup1", SETUP_1, 0.0, pilots)


def test_neither_all_floors_nor_all_ceilings_are_the_best_of_the_roundings():
    found = {"floor": 0, "ceil": 0}
    for weight in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
        best, (k, e) = rounded(SETUP_3, pairwise_ratio(published_pilots("setup3"), 100), weight)
        assert chosen("setup3", SETUP_3, weight, published_pilots("setup3")) == best
        found["floor"] += best != (math.floor(k), math.floor(e))
        found["ceil"] += best != (math.ceil(k), math.ceil(e))
    assert min(found.values()) > 0
