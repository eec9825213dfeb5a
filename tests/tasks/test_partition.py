"""Partitions: no sample twice, sizes as promised, impossible wishes refused with a remedy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan.errors import InputError
from fedplan.tasks import by_sizes, dirichlet, federate, iid, power_law_sizes
from fedplan.tasks.partition import apportion

seeds = st.integers(0, 2**40)


def held(assignment) -> list[int]:
    return sorted(np.concatenate(assignment).tolist())


@given(st.integers(1, 60), st.integers(0, 200), seeds)
def test_iid_deals_out_every_sample_evenly(clients, extra, seed):
    split = iid(clients + extra, clients, seed)
    assert held(split) == list(range(clients + extra))
    sizes = [len(samples) for samples in split]
    assert len(sizes) == clients and max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(1, 20), min_size=1, max_size=20), st.integers(0, 30), seeds)
def test_by_sizes_gives_each_client_its_size(sizes, spare, seed):
    split = by_sizes(sum(sizes) + spare, sizes, seed)
    assert [len(samples) for samples in split] == sizes
    numbers = held(split)
    assert len(set(numbers)) == len(numbers) and numbers[-1] < sum(sizes) + spare


@given(st.integers(1, 50), st.integers(1, 5), st.integers(0, 5000), st.floats(0.05, 1e3), seeds)
def test_power_law_sizes_add_up_exactly(clients, least, extra, exponent, seed):
    total = clients * least + extra
    sizes = power_law_sizes(clients, total, exponent=exponent, min_size=least, seed=seed)
    assert sizes.sum() == total and sizes.min() >= least and len(sizes) == clients


def test_a_smaller_exponent_makes_the_largest_clients_larger():
    largest = [
        np.mean([power_law_sizes(100, 10_000, exponent=e, seed=s).max() for s in range(30)])
        for e in (0.8, 1.5, 5.0)
    ]
    assert largest[0] > 2 * largest[1] > 4 * largest[2]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=120), st.data(), st.floats(1e-6, 1e6), seeds
)
def test_dirichlet_deals_out_every_sample_and_leaves_nobody_empty(y, data, concentration, seed):
    clients = data.draw(st.integers(1, len(y)))
    split = dirichlet(y, clients, concentration, seed)
    assert len(split) == clients
    assert held(split) == list(range(len(y)))
    assert min(len(samples) for samples in split) >= 1


def test_concentration_sets_how_mixed_the_labels_are():
    y = np.repeat(np.arange(10), 500)

    def largest_share(concentration):
        split = dirichlet(y, 10, concentration, seed=3)
        return np.mean([np.bincount(y[samples]).max() / len(samples) for samples in split])

    assert largest_share(0.05) > 0.6
    assert largest_share(1e6) < 0.11
    assert largest_share(0.05) > largest_share(1.0) > largest_share(100.0)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=30), st.integers(0, 10**6))
def test_apportion_is_within_one_of_the_exact_share(shares, total):
    counts = apportion(shares, total)
    exact = np.array(shares) / np.sum(shares) * total
    assert counts.sum() == total
    assert np.abs(counts - exact).max() < 1 + 1e-6


def test_the_same_seed_gives_the_same_split_and_another_another():
    y = np.arange(300) % 7
    for make in (
        lambda seed: iid(300, 5, seed),
        lambda seed: by_sizes(300, [9, 70, 20], seed),
        lambda seed: dirichlet(y, 5, 0.5, seed),
    ):
        one, same, other = (np.concatenate(make(seed)).tolist() for seed in (1, 1, 2))
        assert one == same != other


def test_federate_groups_rows_by_client():
    x, y = np.arange(10.0).reshape(5, 2), np.array([0, 1, 2, 0, 1])
    data = federate(
        x, y, [[4, 1], [3]], test_x=x[:1], test_y=y[:1], image_shape=(1, 2), name="mine"
    )
    assert data.x.tolist() == [[8, 9], [2, 3], [6, 7]]
    assert data.y.tolist() == [1, 1, 0] and data.starts.tolist() == [0, 2, 3]
    assert (data.num_classes, data.image_shape, data.name) == (3, (1, 2), "mine")
    assert federate(x, y, [[0]], num_classes=10).num_classes == 10


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ([], "at least one client"),
        ([[0], []], "client 1 must hold"),
        ([[0.5]], "client 0 must hold"),
        ([[0], [7]], "numbers 7 to 7, but they must be 0 to 4"),
        ([[-1]], "client 0 holds"),
        ([[0, 1], [1]], "sample 1 stands 2 times"),
    ],
)
def test_federate_refuses_a_wrong_assignment(assignment, said):
    with pytest.raises(InputError, match=said):
        federate(np.ones((5, 2)), [0, 1, 0, 1, 0], assignment)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: iid(3, 4), "Use at most 3 clients"),
        (lambda: iid(3, 0), "num_clients >= 1"),
        (lambda: iid(3, 1, -1), "seed >= 0"),
        (lambda: by_sizes(5, [3, 3]), "6 > 5.*Lower the sizes"),
        (lambda: by_sizes(5, []), "integers >= 1"),
        (lambda: by_sizes(5, [0, 1]), "integers >= 1"),
        (lambda: by_sizes(5, [1.5]), "integers >= 1"),
        (lambda: power_law_sizes(10, 19, min_size=2), "Use at most 9 clients"),
        (lambda: power_law_sizes(2, 9, exponent=0.0, min_size=0), "exponent=0.0"),
        (lambda: dirichlet([0, 1], 3, 1.0), "Use at most 2 clients"),
        (lambda: dirichlet([0, 1], 2, 0.0), "concentration=0.0"),
        (lambda: dirichlet([0, 1], 2, float("nan")), "concentration=nan"),
        (lambda: dirichlet([0.5, 1], 2, 1.0), "flat array"),
        (lambda: dirichlet([], 2, 1.0), "flat array"),
        (lambda: federate(np.ones((2, 1)), [0], [[0]]), "one row per label"),
        (lambda: federate([[1.0], [1.0, 2.0]], [0, 1], [[0]]), "one row per label"),
        (lambda: federate([["a"], ["b"]], [0, 1], [[0]]), "real numbers"),
        (lambda: federate([[1.0]], [[0], [1, 2]], [[0]]), "flat array"),
    ],
)
def test_impossible_wishes_say_what_would_be_possible(call, said):
    with pytest.raises(InputError, match=said):
        call()
