"""Numbers are ranked as a plain sort ranks them, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest

from fedplan.core.fleet import rising_order

RANDOM = np.random.default_rng(4)
MANY = 20_000
CASES = {
    "few": RANDOM.random(100),
    "normal": np.abs(RANDOM.normal(1, 0.3, MANY)),
    "heavy tail": RANDOM.lognormal(0, 3, MANY),
    "one far off": np.append(RANDOM.random(MANY), 1e60),
    "tiny beside huge": 10.0 ** RANDOM.uniform(-300, 60, MANY),
    "close together": 1.0 + RANDOM.random(MANY) * 1e-13,
    "equal": np.full(MANY, 0.5),
    "ties and zeros": np.append(RANDOM.integers(0, 9, MANY) / 3.0, [0.0, -0.0]),
    "every second": np.abs(RANDOM.normal(1, 0.3, 2 * MANY))[::2],
}


@pytest.mark.parametrize("name", CASES)
def test_the_order_is_that_of_a_plain_sort(name):
    values = CASES[name]
    order = rising_order(values)
    assert np.array_equal(np.sort(order), np.arange(values.size))
    assert np.array_equal(values[order], np.sort(values))
