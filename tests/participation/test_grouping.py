"""Groups against brute force over every cut of the devices, and for a million of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedplan import Constraints, Fleet, Objective, Problem, draw_fleet
from fedplan.participation.grouping import RAREST, Grouper, choose_visits
from fedplan.planning.turns import choose_groups, thinned


def random_problem(random):
    n = int(random.integers(1, 9))
    kind = random.choice(["plain", "ties", "one client has nearly all", "zero exchange"])
    times = random.uniform(0.5, 4.0, n)
    if kind == "ties":
        times = np.round(times)
        times[times == 0] = 1.0
    samples = random.uniform(0.1, 5.0, n)
    if kind == "one client has nearly all":
        samples[0] = 99 * samples[1:].sum() if n > 1 else 1.0
    fleet = Fleet(
        step_time_s=times,
        comm_time_s=0.0 if kind == "zero exchange" else random.uniform(0, 3, n),
        step_energy_j=random.uniform(0, 2, n),
        comm_energy_j=random.uniform(0, 1, n),
        samples=samples,
    )
    weight = float(random.choice([0.0, 0.3, 0.9, 1.0]))
    most = random.choice([None, 1, 2, 3]) if random.random() < 0.4 else None
    limits = Constraints(max_clients_per_round=None if most is None else min(int(most), n))
    return Problem(fleet=fleet, objective=Objective.weighted(weight), limits=limits)


def cost_of(problem, steps, groups):
    times, joules = problem.fleet.round_times_s(steps), problem.fleet.round_energy_j(steps)
    return sum(
        problem.data_shares[list(g)].sum()
        * float(problem.objective.of_round(times[list(g)].max(), joules[list(g)].sum(), len(g)))
        for g in groups
    )


def brute_force(problem, steps, num_groups, least):
    """The least sum of p c over all contiguous cuts of the devices by rising time."""
    order = np.argsort(problem.fleet.round_times_s(steps), kind="stable")
    n, most = order.size, problem.limits.max_clients_per_round or order.size
    best = np.inf
    for count in range(1, num_groups + 1):
        for cuts in itertools.combinations(range(1, n), count - 1):
            groups = np.split(order, cuts)
            if all(
                g.size <= most and problem.data_shares[g].sum() >= least * (1 - 1e-9)
                for g in groups
            ):
                best = min(best, cost_of(problem, steps, groups))
    return best


def test_cuts_equal_brute_force_on_300_problems():
    random = np.random.default_rng(11)
    compared = 0
    for _ in range(300):
        problem = random_problem(random)
        n, steps = len(problem.fleet), int(random.integers(1, 20))
        number = int(random.integers(1, n + 1))
        found = Grouper(problem, steps).group(number)
        expected = brute_force(problem, steps, number, 0.5 / number)
        if not np.isfinite(expected):  # a limit on clients leaves no such cut: groups hold less
            expected = brute_force(problem, steps, number, 0.0)
        if not np.isfinite(expected):
            assert found is None
            continue
        groups = found.whole().groups
        assert sorted(itertools.chain.from_iterable(groups)) == list(range(n))
        assert cost_of(problem, steps, groups) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        compared += 1
    assert compared > 250


def test_a_large_fleet_is_cut_as_well_as_exactly(monkeypatch):
    fleet = draw_fleet(1500, step_time_s=(0.1, 0.1), comm_time_s=(2.0, 2.0), law="lognormal")
    for weight in (0.0, 0.5):
        problem = Problem(fleet=fleet, objective=Objective.weighted(weight))
        coarse = Grouper(problem, 20)
        with monkeypatch.context() as patch:
            patch.setattr("fedplan.participation.grouping._PLACES", 2000)
            exact = Grouper(problem, 20)
        for number in (3, 9):
            quick, slow = (
                cost_of(problem, 20, each.group(number).whole().groups) for each in (coarse, exact)
            )
            assert slow * (1 - 1e-12) <= quick <= slow * (1 + 2e-4)


def test_counted_devices_are_grouped_as_if_written_out():
    counted = Fleet(step_time_s=[1.0, 2.0, 5.0], comm_time_s=1.0, count=[40, 30, 10])
    written = counted.with_samples(np.ones(80))
    for weight in (0.0, 1.0):
        one, other = (
            Grouper(Problem(fleet=f, objective=Objective.weighted(weight)), 5).group(4)
            for f in (counted, written)
        )
        assert one.ends.tolist() == other.ends.tolist() and one.visits == other.visits
        assert one.whole() == other.whole()
    huge = Problem(fleet=Fleet(step_time_s=[1.0, 2.0], comm_time_s=1.0, count=[10**11, 10**11]))
    assert Grouper(huge, 5).group(2).rows[1].clients == 10**11


def test_devices_without_data_are_in_no_group():
    fleet = Fleet(step_time_s=[1.0, 2.0, 3.0], comm_time_s=0.0, samples=[1.0, 0.0, 1.0])
    assert Grouper(Problem(fleet=fleet), 1).group(2).whole().groups == ((0,), (2,))


def test_rare_groups_count_no_more_than_their_bound_allows():
    random = np.random.default_rng(3)
    for _ in range(200):
        count = int(random.integers(1, 12))
        shares = random.dirichlet(np.ones(count))
        costs = random.lognormal(0, 2, count)
        visits = np.array(choose_visits(shares, costs))
        assert (visits >= 1).all() and visits.sum() <= 6 * count
        weight = shares * visits.sum() / visits  # what an update of the group counts
        # Whole visits come within a quarter of the frequencies that keep to the bound.
        wanted = shares / costs * (costs.min())
        wanted = np.clip(wanted, shares / RAREST, shares)
        wanted /= wanted.sum()
        assert (visits == 1).all() or (weight <= shares / wanted / 0.75 + 1e-9).all()


def test_a_cap_on_clients_at_once_splits_groups():
    fleet = draw_fleet(40, step_time_s=(0.1, 0.02), comm_time_s=(1.0, 0.2))
    limits = Constraints(max_clients_per_round=6)
    groups = choose_groups(Problem(fleet=fleet, limits=limits), 10, 100.0).whole().groups
    assert max(map(len, groups)) <= 6 and sum(map(len, groups)) == 40
    single = Constraints(max_clients_per_round=1)
    groups = choose_groups(Problem(fleet=fleet, limits=single), 10, 300.0).whole().groups
    assert [len(group) for group in groups] == [1] * 40


@pytest.mark.parametrize("size", [8193, 10_000, 24_577])
def test_devices_that_stand_for_others_are_as_many_as_all(size):
    fleet = draw_fleet(size, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.5), seed=3)
    fewer = thinned(Problem(fleet=fleet)).fleet
    assert len(fewer) == size and fewer.count.size <= 8192
    assert fewer.mean("step_time_s") == pytest.approx(fleet.mean("step_time_s"), rel=1e-2)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_line_of_a_grouping_is_the_cost_of_its_round(weight):
    random = np.random.default_rng(5)
    fleet = Fleet(
        step_time_s=random.uniform(1, 4, 9),
        comm_time_s=2.0,
        step_energy_j=random.uniform(1, 2, 9),
        comm_energy_j=random.uniform(1, 2, 9),
    )
    problem = Problem(fleet=fleet, objective=Objective.weighted(weight))
    for num_groups in (1, 2, 4, 9):
        found = Grouper(problem, 7).group(num_groups)
        of_step, of_exchange = found.line()
        cost = found.round_cost
        expected = float(problem.objective.of_round(cost.time_s, cost.energy_j, cost.clients))
        assert of_exchange + 7 * of_step == pytest.approx(expected)
