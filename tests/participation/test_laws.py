"""Every law keeps the contract, against enumeration of who trains; and what is its own."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from contracts.participation import (
    CLIENTS,
    PROBLEM,
    SAMPLES,
    STEPS,
    CycleContract,
    ParticipationContract,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan import Fleet, InputError, Problem
from fedplan.participation import Shuffled, Turns, Uniform, Weighted
from fedplan.participation.draws import pick, present

TURNS = [
    Turns(groups=((3, 0), (1, 5), (2, 4)), visits=(3, 2, 1)),
    Turns(groups=((0, 1, 2, 3, 4, 5),), visits=(1,)),
]
DRAWN = Weighted(clients_per_round=2, chances=(0.3, 0.1, 0.1, 0.2, 0.2, 0.1))


def equally_likely(size):
    """Every cohort of this size, with its chance."""
    every = list(itertools.combinations(range(CLIENTS), size))
    return [(1 / len(every), clients) for clients in every]


class TestUniform(ParticipationContract):
    @pytest.fixture(params=[1, 2, 6])
    def law(self, request):
        return Uniform(clients_per_round=request.param)

    def possible_cohorts(self, law):
        return equally_likely(law.clients_per_round)

    def test_shares_of_a_round_are_those_of_its_data(self, law):
        cohort = law.cohort(SAMPLES, 1, 1)
        held = SAMPLES[cohort.clients]
        np.testing.assert_allclose(cohort.shares, held / held.sum(), rtol=1e-12)


class TestShuffled(CycleContract):
    @pytest.fixture(params=[1, 4, 6])
    def law(self, request):
        return Shuffled(clients_per_round=request.param, num_clients=CLIENTS)

    def possible_cohorts(self, law):
        sizes = [len(law.cohort(SAMPLES, 0, place + 1).clients) for place in range(law.cycle)]
        return [
            (chance / law.cycle, clients)
            for size in sizes
            for chance, clients in equally_likely(size)
        ]


class TestTurns(CycleContract):
    @pytest.fixture(params=TURNS, ids=["three groups", "one group"])
    def law(self, request):
        return request.param

    def possible_cohorts(self, law):
        return [
            (visits / law.cycle, group)
            for group, visits in zip(law.groups, law.visits, strict=True)
        ]


class TestWeighted(ParticipationContract):
    @pytest.fixture
    def law(self):
        return DRAWN

    def possible_cohorts(self, law):
        draws = itertools.product(range(CLIENTS), repeat=law.clients_per_round)
        return [(np.prod([law.chances[k] for k in drawn]), drawn) for drawn in draws]

    def test_shares_are_unbiased_in_expectation(self, law):
        held, k = SAMPLES / SAMPLES.sum(), law.clients_per_round
        expected = np.zeros(CLIENTS)
        for chance, drawn in self.possible_cohorts(law):
            for client in drawn:
                expected[client] += chance * held[client] / (k * law.chances[client])
        np.testing.assert_allclose(expected, held, rtol=1e-12)

    def test_it_draws_by_its_chances_and_weighs_each_draw_so(self, law):
        seen, counted = Counter(), np.zeros(CLIENTS)
        for round_ in range(1, 4001):
            cohort = law.cohort(SAMPLES, 1, round_)
            seen.update(cohort.clients.tolist())
            counted[cohort.clients] += cohort.shares
        taken = 1 - (1 - np.array(law.chances)) ** law.clients_per_round
        np.testing.assert_allclose([seen[k] / 4000 for k in range(CLIENTS)], taken, atol=0.03)
        np.testing.assert_allclose(counted / 4000, SAMPLES / SAMPLES.sum(), atol=0.02)


def test_a_counted_fleet_costs_what_its_devices_written_out_do():
    counted = Fleet(step_time_s=[1.0, 2.0], comm_time_s=0.5, step_energy_j=[1.0, 3.0], count=[3, 2])
    written = Fleet(
        step_time_s=[1.0, 1.0, 1.0, 2.0, 2.0], comm_time_s=0.5, step_energy_j=[1, 1, 1, 3, 3]
    )
    for law in (
        Turns(groups=((0, 3), (1, 2, 4)), visits=(1, 2)),
        Weighted(clients_per_round=2, chances=(0.2,) * 5),
        Shuffled(clients_per_round=2, num_clients=5),
    ):
        one, other = (law.round_cost(Problem(fleet=each), 4) for each in (counted, written))
        np.testing.assert_allclose(
            (one.time_s, one.energy_j, one.clients), (other.time_s, other.energy_j, other.clients)
        )


def test_the_turns_of_a_cycle_are_spread_out():
    law = Turns(groups=((0,), (1,), (2,)), visits=(3, 2, 1))
    turns = [law.turn(round_) for round_ in range(1, 13)]
    assert turns[:6] == turns[6:] == [0, 1, 0, 2, 1, 0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.integers(0, 40),
    st.randoms(use_true_random=False),
)
def test_credits_stay_with_the_clients_when_groups_change(visits, round_, random):
    samples = np.array([random.randint(1, 9) for _ in range(len(visits) * 2)], dtype=float)
    groups = tuple((2 * j, 2 * j + 1) for j in range(len(visits)))
    law = Turns(groups=groups, visits=tuple(visits))
    same = law.continued(law, samples, round_)
    later = range(round_ + 1, round_ + 2 * law.cycle + 1)
    assert [same.turn(r) for r in later] == [law.turn(r) for r in later]
    # In another order each group still has its turns, and nobody waits longer for the change.
    moved = law.continued(Turns(groups=groups[::-1], visits=law.visits[::-1]), samples, round_)
    seen = Counter(len(visits) - 1 - moved.turn(r) for r in later)
    assert all(abs(seen[j] - 2 * times) <= 1 for j, times in enumerate(visits))


def test_dropouts_depend_on_the_client_alone_and_have_their_share():
    clients = np.arange(2000)
    there = present(5, 9, clients, 0.3)
    assert abs(there.mean() - 0.7) < 0.04
    assert present(5, 9, clients[100:110], 0.3).tolist() == there[100:110].tolist()
    assert present(5, 9, clients, 0.0).all()


def test_uniform_draws_are_uniform():
    seen = Counter(client for round_ in range(1, 3001) for client in pick(1, round_, 6, 2).tolist())
    assert all(abs(seen[client] / 3000 - 1 / 3) < 0.03 for client in range(6))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Turns(groups=((0, 1), (1, 2)), visits=(1, 1)), "two groups"),
        (lambda: Turns(groups=((0,), ()), visits=(1, 1)), "needs a client"),
        (lambda: Turns(groups=((0,),), visits=(0,)), "visits >= 1"),
        (lambda: Turns(groups=((0,),), visits=(1, 2)), "visits"),
        (lambda: Weighted(clients_per_round=1, chances=(0.5, 0.6)), "add up to 1"),
        (lambda: Weighted(clients_per_round=1, chances=(1.5, -0.5)), "add up to 1"),
        (lambda: Turns.of(PROBLEM, STEPS, 0), "groups"),
    ],
)
def test_what_is_no_law_is_refused_with_the_reason(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_client_with_data_that_is_never_drawn_is_refused():
    law = Weighted(clients_per_round=1, chances=(0.0, 0.2, 0.2, 0.2, 0.2, 0.2))
    with pytest.raises(InputError, match="client 0 has 0"):
        law.cohort(SAMPLES, 0, 1)
    law.cohort(np.array([0.0, 1, 1, 1, 1, 1]), 0, 1)  # without data it need not be


@pytest.mark.parametrize(
    ("law", "clients"),
    [
        (Uniform(clients_per_round=7), 6),
        (Uniform(clients_per_round=0), 6),
        (Shuffled(clients_per_round=2, num_clients=5), 6),
        (Turns(groups=((0, 9),), visits=(1,)), 6),
        (Weighted(clients_per_round=0, chances=(1.0,)), 1),
        (Weighted(clients_per_round=1, chances=(1.0,)), 2),
    ],
)
def test_a_law_says_what_keeps_clients_from_training(law, clients):
    assert law.problems(clients)
