"""The law of descents under a harmonic rate: what noise does, and what pilots say of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedplan.convergence.curves import Curve
from fedplan.convergence.noise_law import NoiseLaw
from fedplan.core.learning_rate import LearningRate

RATE = LearningRate(initial=0.1, schedule="harmonic")
LAW = NoiseLaw(num_clients=100, rate=RATE, first_ratio=2.2)
MEANS = np.array([mean for mean, _ in LAW.PRIOR.values()])


def changed(**by):
    return np.array([mean + by.get(name, 0.0) for name, (mean, _) in LAW.PRIOR.items()])


def without(*names):
    return np.array([0.0 if name in names else mean for name, (mean, _) in LAW.PRIOR.items()])


def loss(clients, steps, rounds, parameters=MEANS):
    """Over the target, after so many rounds."""
    at = (np.array([float(x)]) for x in (clients, steps, RATE.time(rounds)))
    return math.exp(float(LAW.losses(parameters, *at)[0]))


@given(
    clients=st.integers(2, 100),
    steps=st.integers(5, 200),
    ratio=st.floats(1.0, 1.8),
    noise=st.floats(-0.5, 0.5),
)
def test_the_time_to_a_loss_is_the_time_at_which_it_is_the_loss(clients, steps, ratio, noise):
    parameters = changed(noise=noise)
    time = float(LAW.time(parameters, clients, steps, ratio))
    at = (np.array([float(x)]) for x in (clients, steps, time))
    assert float(LAW.losses(parameters, *at)[0]) == pytest.approx(math.log(ratio), abs=1e-4)


@given(rounds=st.integers(5, 500), steps=st.integers(5, 200), noise=st.floats(-1, 1))
def test_with_all_clients_there_is_no_noise(rounds, steps, noise):
    quiet = loss(100, steps, rounds)
    assert loss(100, steps, rounds, changed(noise=noise)) == pytest.approx(quiet, rel=1e-6)
    even = without("head_start")
    assert loss(100, steps, rounds, even) <= loss(99, steps, rounds, even) <= 2.2


def test_few_clients_are_ahead_until_their_noise_is_felt():
    """Rounds rise from twenty clients to all of them, and from twenty to three."""
    rounds = [float(RATE.rounds(LAW.time(MEANS, clients, 20, 1.0))) for clients in (3, 20, 100)]
    assert rounds[1] < rounds[2] < rounds[0]
    even = [float(LAW.time(without("head_start"), clients, 20, 1.0)) for clients in (3, 20, 100)]
    assert even == sorted(even, reverse=True)


def test_with_fewer_steps_than_were_ever_seen_the_noise_is_no_larger():
    """Only the part that steps save goes on growing: every K takes as much longer as all do."""
    for clients in (5, 20):
        noisy = [loss(clients, steps, 20, without("head_start")) for steps in (1, 7)]
        quiet = [loss(100, steps, 20) for steps in (1, 7)]
        shares = [(a - b) / (2.2 - b) for a, b in zip(noisy, quiet, strict=True)]
        assert shares[0] == pytest.approx(shares[1], rel=1e-4)


def test_noise_falls_with_the_rate():
    """Where neither K nor E come to count more, a tenth of the rate is a tenth of the noise."""
    plain = without("clients_growth", "steps_growth", "head_start")

    def noise(rounds):
        quiet, noisy = loss(100, 30, rounds, plain), loss(5, 30, rounds, plain)
        return -math.log(1.0 - (noisy - quiet) / (2.2 - quiet))

    assert noise(200) / noise(20) == pytest.approx(
        math.exp(float(RATE.time(20) - RATE.time(200))), rel=1e-3
    )
    assert noise(200) / noise(20) == pytest.approx(0.1, rel=0.05)


def test_too_much_noise_never_arrives():
    assert math.isinf(float(LAW.time(changed(noise=20.0), 2, 30, 1.0)))
    assert math.isinf(float(RATE.rounds(LAW.time(changed(noise=20.0), 2, 30, 1.0))))


@pytest.mark.parametrize("noise", [-0.3, 0.3])
def test_short_runs_with_few_clients_tell_the_noise(noise):
    """From losses that are far from the target, and as far apart as luck would have them."""
    truth = changed(noise=noise)
    luck = np.random.default_rng(1).normal(0.0, 0.03, size=(6, 30))

    def curve(clients, seed):
        losses = (loss(clients, 17, r, truth) * math.exp(luck[seed, r - 1]) for r in range(1, 31))
        return Curve(
            clients_per_round=clients, local_steps=17, seed=seed, losses=(2.2, *losses)
        )  # fmt: skip

    def noise_of(curves):
        open_to_either = LAW.PRIOR | {"noise": (LAW.PRIOR["noise"][0], 0.35)}
        found, covariance = LAW.fit(curves, 1.0, open_to_either)
        place = list(LAW.PRIOR).index("noise")
        return found[place] - MEANS[place], math.sqrt(covariance[place, place])

    before = noise_of([curve(50, 0)])
    found, spread = noise_of([curve(50, 0), *(curve(3, seed) for seed in range(1, 6))])
    assert min(curve(3, 1).losses) > 1.3
    assert spread < 0.6 * before[1] and abs(found - noise) < 2 * spread
    assert abs(found - noise) < abs(before[0] - noise)
