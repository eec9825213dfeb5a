"""The built-in example is the fleet that the paper describes."""

from __future__ import annotations

import pytest

from fedplan.planning.example import example_fleet


@pytest.mark.parametrize(
    ("quantity", "mean"),
    [("step_time_s", 0.1), ("comm_time_s", 2.0), ("step_energy_j", 1e-3), ("comm_energy_j", 0.02)],
)
def test_every_quantity_spreads_by_a_third_of_its_mean(quantity, mean):
    values = getattr(example_fleet(), quantity)
    assert values.size == 100 and values.mean() == pytest.approx(mean, rel=0.1)
    assert values.std() == pytest.approx(mean / 3, rel=0.2)
