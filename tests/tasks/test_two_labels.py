"""Two labels a client: exactly two, sizes as promised, dead ends repaired."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedplan.errors import InputError
from fedplan.tasks import load_mnist, mnist_mini, two_labels_balanced, two_labels_shards

seeds = st.integers(0, 2**32 - 1)


def labels_of(counts, seed=0):
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))


def assert_disjoint(split, num_samples):
    numbers = np.concatenate(split)
    assert len(np.unique(numbers)) == len(numbers)
    assert numbers.min() >= 0 and numbers.max() < num_samples


@settings(deadline=None)
@given(
    st.lists(st.integers(40, 60), min_size=2, max_size=10),
    st.integers(1, 12),
    st.integers(2, 30),
    seeds,
)
def test_balanced_has_two_labels_and_one_size(counts, clients, size, seed):
    assume(clients * size <= 0.8 * sum(counts) and len(counts) > 2)
    y = labels_of(counts)
    split = two_labels_balanced(y, clients, size, seed)
    assert [len(samples) for samples in split] == [size] * clients
    assert all(len(np.unique(y[samples])) == 2 for samples in split)
    assert_disjoint(split, len(y))


def test_balanced_gives_halves_and_even_labels_where_samples_allow():
    y = labels_of([700] * 10)
    split = two_labels_balanced(y, 20, 301, seed=3)
    counts = np.stack([np.bincount(y[samples], minlength=10) for samples in split])
    assert {tuple(sorted(row[row > 0])) for row in counts} == {(150, 151)}
    assert ((counts > 0).sum(axis=0) == 4).all()


def test_balanced_uses_the_last_sample_of_mini_as_in_setup_1():
    y = mnist_mini().y
    for seed in range(10):
        split = two_labels_balanced(y, 20, 300, seed)
        assert sorted(np.concatenate(split)) == list(range(6_000))
        counts = np.stack([np.bincount(y[samples], minlength=10) for samples in split])
        assert (counts.sum(axis=1) == 300).all() and ((counts > 0).sum(axis=1) == 2).all()
        assert counts[counts > 0].min() >= 75


def test_balanced_pairs_differ_between_seeds():
    y = labels_of([60] * 10)
    pairs = {
        tuple(tuple(np.unique(y[samples])) for samples in two_labels_balanced(y, 10, 40, seed))
        for seed in range(20)
    }
    assert len(pairs) == 20


def test_balanced_works_with_two_labels_and_with_gaps_between_labels():
    y = np.array([3, 3, 3, 8, 8, 8])
    split = two_labels_balanced(y, 3, 2)
    assert [sorted(y[samples]) for samples in split] == [[3, 8]] * 3


def test_balanced_bends_the_halves_for_a_rare_label():
    y = labels_of([4, 300, 300])
    split = two_labels_balanced(y, 6, 100, seed=1)
    assert all(len(np.unique(y[samples])) == 2 for samples in split)
    assert {len(samples) for samples in split} == {100}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda y: two_labels_balanced(y, 21, 300), "21 \\* 300. Lower one of them"),
        (lambda y: two_labels_balanced(y, 0, 1), "num_clients=0.\n.*samples_per_client=1"),
        (lambda y: two_labels_balanced(y[:600] * 0, 2, 10), "at least 2 different labels"),
        (lambda y: two_labels_balanced(y, 2, 10, -1), "seed >= 0"),
        (lambda y: two_labels_balanced(y[596:601], 2, 2), "usable samples must hold"),
        (lambda y: two_labels_shards(y, 101), "Raise shards_per_label to 21"),
        (lambda y: two_labels_shards(y, 10, 601), "label 9 has 600 samples, too few"),
        (lambda y: two_labels_shards(y, 0, 0), "num_clients=0.\n.*shards_per_label=0"),
        (lambda y: two_labels_shards(y * 0, 2), "at least 2 different labels"),
        (lambda y: two_labels_shards(y, seed=2**32), "seed=4294967296"),
    ],
)
def test_impossible_wishes_say_what_would_be_possible(call, said):
    with pytest.raises(InputError, match=said):
        call(np.repeat(np.arange(10), 600))


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(1, 12), st.data(), seeds)
def test_shards_have_two_labels_whatever_the_draw(labels, shards, data, seed):
    clients = data.draw(st.integers(1, labels * shards // 2))
    counts = data.draw(st.lists(st.integers(shards, 40), min_size=labels, max_size=labels))
    y = labels_of(counts)
    split = two_labels_shards(y, clients, shards, seed)
    assert len(split) == clients
    assert_disjoint(split, len(y))
    lengths = {label: {n // shards, -(-n // shards)} for label, n in enumerate(counts)}
    for samples in split:
        kinds, found = np.unique(y[samples], return_counts=True)
        assert len(kinds) == 2
        assert all(n in lengths[kind] for kind, n in zip(kinds, found, strict=True))
    if 2 * clients == labels * shards:
        assert sorted(np.concatenate(split)) == list(range(len(y)))


def literal_shards(y, random):
    """The scheme written out, for draws without a dead end."""
    left = []
    for digit in range(10):
        rows = [row for row, label in enumerate(y) if label == digit]
        size, longer = divmod(len(rows), 20)
        shards = []
        for shard in range(20):
            take = size + (shard < longer)
            shards.append(rows[:take])
            rows = rows[take:]
        left.append(shards)
    clients = []
    for _ in range(100):
        digits = random.choice([d for d in range(10) if left[d]], 2, replace=False)
        clients.append([row for d in digits for row in left[d].pop()])
    return clients


def test_shards_are_those_of_the_paper(mnist_folder):
    y = load_mnist(mnist_folder).y
    split = two_labels_shards(y, seed=6)
    sizes = np.array([len(samples) for samples in split])
    assert sizes.mean() == 600.0
    assert round(float(sizes.std()), 2) == 20.14
    literal = literal_shards(y.tolist(), np.random.RandomState(6))
    assert [samples.tolist() for samples in split] == literal


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_seeds_that_dead_end_are_repaired(seed):
    y = labels_of([61] * 10)
    with pytest.raises(ValueError, match="larger sample"):
        literal_shards(y.tolist(), np.random.RandomState(seed))
    split = two_labels_shards(y, seed=seed)
    assert sorted(np.concatenate(split)) == list(range(610))
    assert all(len(np.unique(y[samples])) == 2 for samples in split)
