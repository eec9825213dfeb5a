"""What every law of participation promises: a class that each law's test inherits.

A test gives `law`, and `possible_cohorts`: the chance and the clients of every cohort that a round
can have, over a whole cycle where rounds differ.
"""

from __future__ import annotations

import numpy as np
import pytest

from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.participation import LAWS, setting_from_dict

SAMPLES = np.array([30.0, 10.0, 5.0, 25.0, 20.0, 10.0])
CLIENTS = SAMPLES.size
FLEET = Fleet(
    step_time_s=[1.0, 2.0, 4.0, 0.5, 3.0, 1.5],
    comm_time_s=[3.0, 1.0, 0.0, 6.0, 2.0, 2.0],
    step_energy_j=[0.1, 0.4, 0.3, 0.2, 0.9, 0.5],
    comm_energy_j=[1.0, 2.0, 0.5, 0.25, 0.125, 3.0],
    samples=SAMPLES,
)
PROBLEM = Problem(fleet=FLEET, objective=Objective.weighted(0.4))
STEPS = 3


def cycle_shares(law, seed, cycle):
    """The mean share of each client over one cycle."""
    counted = np.zeros(CLIENTS)
    for place in range(law.cycle):
        cohort = law.cohort(SAMPLES, seed, cycle * law.cycle + place + 1)
        counted[cohort.clients] += cohort.shares
    return counted / law.cycle


class ParticipationContract:
    @pytest.fixture
    def law(self):
        raise NotImplementedError

    def possible_cohorts(self, law):
        """Chance and clients of every cohort."""
        raise NotImplementedError

    def test_the_same_seed_and_round_give_the_same_cohort(self, law):
        for round_ in range(1, 3 * law.cycle + 9):
            one, again = (law.cohort(SAMPLES, 7, round_) for _ in range(2))
            assert one.clients.tolist() == again.clients.tolist()
            assert one.shares.tolist() == again.shares.tolist()

    def test_rounds_replay_in_any_order(self, law):
        rounds = list(range(1, 20))
        forwards = {r: law.cohort(SAMPLES, 3, r).clients.tolist() for r in rounds}
        assert forwards == {r: law.cohort(SAMPLES, 3, r).clients.tolist() for r in rounds[::-1]}

    def test_clients_are_distinct_and_sorted_and_each_has_a_share(self, law):
        for seed in range(5):
            for round_ in range(1, 12):
                cohort = law.cohort(SAMPLES, seed, round_)
                assert cohort.clients.tolist() == sorted(set(cohort.clients.tolist()))
                assert cohort.clients.size == cohort.shares.size >= 1
                assert (cohort.shares > 0).all() and cohort.clients.max() < CLIENTS

    def test_cohorts_are_among_those_that_can_be(self, law):
        possible = {tuple(sorted(set(clients))) for _, clients in self.possible_cohorts(law)}
        for seed in range(5):
            for round_ in range(1, 30):
                assert tuple(law.cohort(SAMPLES, seed, round_).clients.tolist()) in possible

    def test_what_a_round_takes_is_the_mean_over_all_cohorts(self, law):
        times, joules = FLEET.round_times_s(STEPS), FLEET.round_energy_j(STEPS)
        expected = np.zeros(3)
        for chance, clients in self.possible_cohorts(law):
            who = sorted(set(clients))
            expected += chance * np.array([times[who].max(), joules[who].sum(), len(who)])
        cost = law.round_cost(PROBLEM, STEPS)
        np.testing.assert_allclose((cost.time_s, cost.energy_j, cost.clients), expected, 1e-9)

    def test_it_is_read_back_from_what_is_stored(self, law):
        setting = Setting(participation=law, local_steps=5)
        assert setting_from_dict(setting.to_dict()) == setting
        assert LAWS[law.law] is type(law)

    def test_it_trains_as_many_clients_as_it_is_for(self, law):
        assert law.problems(CLIENTS) == []


class CycleContract(ParticipationContract):
    """Of a law by which every client's data comes round in every cycle."""

    def test_shares_average_to_the_data_over_every_cycle(self, law):
        for seed in (0, 3):
            for cycle in range(4):
                found = cycle_shares(law, seed, cycle)
                np.testing.assert_allclose(found, SAMPLES / SAMPLES.sum(), rtol=1e-12)

    def test_no_noise_of_drawing_is_left(self, law):
        assert law.sampling_variance(PROBLEM) == 0.0
