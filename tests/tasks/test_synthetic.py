"""Synthetic(alpha, beta) against the generator written out literally."""

from __future__ import annotations

import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.tasks import synthetic


def literal(alpha, beta, seed, clients=100, features=60, classes=10):
    """The generator as published: full covariance, one client after another."""
    random = np.random.RandomState(seed)
    sizes = random.lognormal(4, 2, clients).astype(int) + 50
    mean_w = random.normal(0, alpha, clients)
    mean_x = random.normal(0, beta, clients)
    sigma = np.diag([(j + 1) ** -1.2 for j in range(features)])
    v = np.zeros((clients, features))
    for k in range(clients):
        v[k] = random.normal(mean_x[k], 1, features)
    xs, ys = [], []
    for k in range(clients):
        w = random.normal(mean_w[k], 1, (features, classes))
        b = random.normal(mean_w[k], 1, classes)
        x = random.multivariate_normal(v[k], sigma, sizes[k])
        xs.append(x)
        ys.append(np.array([np.argmax(row @ w + b) for row in x]))
    return sizes, np.concatenate(xs), np.concatenate(ys)


@pytest.mark.parametrize(("alpha", "beta", "seed"), [(1.0, 1.0, 0), (0.5, 0.0, 7), (0.0, 2.0, 3)])
def test_it_is_the_published_generator_draw_by_draw(alpha, beta, seed):
    sizes, x, y = literal(alpha, beta, seed, clients=20)
    data = synthetic(alpha, beta, seed=seed, num_clients=20)
    assert data.sizes.tolist() == sizes.tolist()
    assert np.abs(data.x - x).max() < 1e-5
    assert np.mean(data.y != y) < 1e-3  # a tie in the last bit may fall either way


def test_sizes_are_drawn_first_and_match_the_recorded_draw():
    data = synthetic(1, 1, seed=2130)
    assert data.num_samples == 24_573
    assert round(float(data.sizes.std())) == 356
    assert data.sizes.min() >= 50
    assert data.name == "Synthetic(1, 1)"
    assert (data.num_features, data.num_classes) == (60, 10)


def test_a_seed_is_a_data_set():
    one, same, other = (synthetic(1, 1, seed=seed, num_clients=5) for seed in (4, 4, 5))
    assert np.array_equal(one.x, same.x) and np.array_equal(one.y, same.y)
    assert not np.array_equal(one.sizes, other.sizes)


def test_given_sizes_are_kept_and_nothing_is_drawn_for_them():
    data = synthetic(1, 1, num_clients=3, num_features=5, num_classes=4, sizes=[7, 1, 30], seed=9)
    assert data.sizes.tolist() == [7, 1, 30]
    random = np.random.RandomState(9)
    random.normal(0, 1, 3)
    means = random.normal(0, 1, 3)
    centre = random.normal(means[0], 1, 5)
    for _ in (1, 2):
        random.normal(0, 1, 5)
    random.normal(0, 1, (5, 4))
    random.normal(0, 1, 4)
    rows = centre + random.normal(0, 1, (7, 5)) * np.arange(1, 6) ** -0.6
    assert np.allclose(data.x[:7], rows, atol=1e-5)


def test_iid_clients_share_one_model_and_one_centre():
    data = synthetic(1, 1, num_clients=4, num_features=6, sizes=[4000] * 4, iid=True, seed=2)
    assert data.name == "Synthetic-IID(1, 1)"
    rows = [data.client_rows(client) for client in range(4)]
    means = np.stack([data.x[row].mean(axis=0) for row in rows])
    assert np.ptp(means, axis=0).max() < 0.1
    shares = np.stack([np.bincount(data.y[row], minlength=10) / 4000 for row in rows])
    assert np.ptp(shares, axis=0).max() < 0.06
    random = np.random.RandomState(2)
    mean_w, mean_x = random.normal(0, 1), random.normal(0, 1)
    centre = random.normal(mean_x, 1, 6)
    w, b = random.normal(mean_w, 1, (6, 10)), random.normal(mean_w, 1, 10)
    assert np.allclose(means.mean(axis=0), centre, atol=0.05)
    assert np.mean(np.argmax(data.x @ w + b, axis=1) == data.y) > 0.999


def test_alpha_and_beta_make_clients_differ():
    def spread(beta):
        data = synthetic(0, beta, num_clients=30, num_features=10, sizes=[200] * 30, seed=1)
        return np.std([data.x[data.client_rows(k)].mean() for k in range(30)])

    assert spread(3.0) > 3 * spread(0.0)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"alpha": -1.0, "beta": float("nan")}, 2),
        ({"num_clients": 0, "num_features": 0, "num_classes": 1, "seed": -1}, 4),
        ({"seed": 2**32}, 1),
        ({"num_clients": 2, "sizes": [1, 2, 3]}, 1),
        ({"num_clients": 2, "sizes": [1, 0]}, 1),
        ({"num_clients": 2, "sizes": [1.5, 2.5]}, 1),
    ],
)
def test_wrong_arguments_are_listed_at_once(changes, count):
    with pytest.raises(InputError) as caught:
        synthetic(**{"alpha": 1.0, "beta": 1.0, **changes})
    assert len(caught.value.problems) == count
