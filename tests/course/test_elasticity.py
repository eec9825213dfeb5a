"""Saturation from updates after all and after half of the local steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from course.made import told
from hypothesis import given
from hypothesis import strategies as st

from fedplan.core.signal import Signal, Sketch
from fedplan.course.elasticity import Window, saturation_of


@given(st.floats(1.0, 500.0), st.integers(2, 2000))
def test_the_saturation_of_a_law_that_saturates_is_found(saturation, steps):
    """The way after E steps is E / (1 + E / s), whose elasticity at E is s / (s + E)."""
    elasticity = saturation / (saturation + steps)
    whole = np.array([2.0, 1.0])
    found = saturation_of(whole, whole / 2**elasticity, steps)
    assert found == pytest.approx(saturation, rel=1e-6)


def test_steps_that_gain_nothing_or_everything():
    whole = np.array([1.0, 0.0])
    assert saturation_of(whole, whole, 10) == 0.0
    assert saturation_of(whole, 2 * whole, 10) == 0.0  # more steps lead back
    assert saturation_of(whole, whole / 2, 10) == math.inf
    assert saturation_of(0 * whole, whole, 10) == 0.0
    assert saturation_of(whole, 0 * whole, 10) == math.inf


def test_it_is_the_length_of_the_sum_that_counts():
    """Two clients that undo each other say nothing; what is left of both does."""
    one, other = np.array([10.0, 1.0]), np.array([-10.0, 1.0])
    window = Window()
    for update, half in ((one, np.array([5.0, 0.9])), (other, np.array([-5.0, 0.9]))):
        window.add(Signal(whole=update, halfway=half), 10, most=2)
    elasticity = math.log2(2.0 / 1.8)
    assert window.saturation() == pytest.approx(10 * elasticity / (1 - elasticity))


def test_old_rounds_are_let_go():
    window = Window()
    for number in range(5):
        window.add(told(number + 1, 1.0, elasticity=0.9).signal, 10, most=3)
    assert len(window) == 3
    window.add(told(6, 1.0, elasticity=0.2).signal, 10, most=1)
    assert window.saturation() == pytest.approx(10 * 0.2 / 0.8)


@pytest.mark.parametrize("size", [256])
def test_a_sketch_keeps_the_ratio_of_lengths(size):
    random = np.random.default_rng(1)
    sketch = Sketch(20_000, seed=5, size=size)
    errors = []
    for _ in range(40):
        whole = random.normal(size=20_000)
        half = 0.6 * whole + 0.2 * random.normal(size=20_000)
        true = np.linalg.norm(whole) / np.linalg.norm(half)
        errors.append(np.linalg.norm(sketch(whole)) / np.linalg.norm(sketch(half)) / true - 1)
    assert np.abs(errors).max() < 0.1 and abs(np.mean(errors)) < 0.01


def test_server_and_clients_have_the_same_sketch_and_seeds_differ():
    update = np.linspace(-1, 1, 500)
    assert np.array_equal(Sketch(500, seed=3)(update), Sketch(500, seed=3)(update))
    assert not np.allclose(Sketch(500, seed=3)(update), Sketch(500, seed=4)(update))
