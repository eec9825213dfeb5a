"""A fleet with a cache answers the same, and keeps to its bytes."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from planned import make_plan

from fedplan import Bound, Constraints, cost_surface, draw_fleet
from fedplan.core.objective import Objective
from fedplan.participation.rankings import rank, round_times_s, with_cache
from fedplan.participation.slowest import SlowestClient

BOUND = Bound(a0=3750.0, b0=1.0, c0=26.0)
CASES = [
    (weight, limits)
    for weight in (0.0, 0.3, 0.9)
    for limits in (
        Constraints(),
        Constraints(min_clients_per_round=50),
        Constraints(deadline_s=2000.0),
        Constraints(max_clients_per_round=20, max_local_steps=10),
    )
]


@pytest.fixture(scope="module")
def fleet():
    return draw_fleet(
        700, step_time_s=(0.1, 0.1), comm_time_s=(2.0, 2.0), step_energy_j=(1e-3, 1e-3),
        comm_energy_j=(2e-2, 2e-2), law="lognormal", seed=3,
    )  # fmt: skip


def plans(fleet, cases):
    return [
        make_plan(fleet, BOUND, energy_weight=weight, constraints=limits)
        for weight, limits in cases
    ]


@pytest.mark.parametrize("max_bytes", [0, 100_000, 1 << 28])
def test_plans_and_surfaces_are_the_same_in_any_order(fleet, max_bytes):
    kept = with_cache(fleet, max_bytes)
    expected = plans(fleet, CASES)
    assert plans(kept, CASES) == expected
    assert plans(kept, CASES[::-1]) == expected[::-1]
    assert kept.cache.num_bytes <= max_bytes
    for ks, es in (([1, 5, 700], [1, 30]), ([5, 1, 700], [30]), ([300], [1, 30])):
        objective = Objective.weighted(0.3)
        for _ in range(2):
            ours = cost_surface(kept, BOUND, objective, ks, es)
            assert np.array_equal(ours.time_s, cost_surface(fleet, BOUND, objective, ks, es).time_s)


def test_a_ranking_for_large_k_is_not_taken_for_small_k(fleet):
    kept = with_cache(fleet)
    few = rank(kept, 10, min_clients_per_round=600)
    assert rank(kept, 10, min_clients_per_round=650) is few
    whole = rank(kept, 10)
    assert whole is not few and rank(kept, 10, min_clients_per_round=600) is whole
    assert whole.round_time_s([1])[0] == pytest.approx(fleet.round_times_s(10).mean())


@pytest.mark.parametrize("size", [700, 60])  # of few devices every K is worked out at once
def test_k_asked_for_apart_or_together_take_the_same(size):
    few = draw_fleet(size, step_time_s=(0.1, 0.1), comm_time_s=(2.0, 2.0), seed=5)
    all_k, es = np.arange(1, size + 1), np.array([1, 7, 40])
    together = round_times_s(few, all_k, es)
    kept = with_cache(few)
    for ks in (all_k[5::9], all_k[[-1, 0]], all_k[::-1]):
        assert np.array_equal(round_times_s(kept, ks, es), together[ks - 1])
    plain = [SlowestClient(few, e).round_time_s(all_k) for e in es.tolist()]
    assert together == pytest.approx(np.stack(plain, axis=1), rel=1e-13)


def test_a_cache_goes_with_its_fleet(fleet):
    kept = with_cache(fleet)
    plans(kept, CASES[:1])
    gone = weakref.ref(kept.cache)
    gc.disable()  # nothing is held in a circle, which for large fleets would be felt
    try:
        del kept
        assert gone() is None
    finally:
        gc.enable()


def test_threads_share_a_cache(fleet):
    kept = with_cache(fleet, 200_000)  # so little that rankings come and go
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: plans(kept, CASES[:6]), range(4)))
    assert all(each == plans(fleet, CASES[:6]) for each in found)
    assert kept.cache.num_bytes <= 200_000
