"""The best local steps by a saturation, beside every number of steps tried."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan.convergence.saturation import Saturation, best_constant_steps

COSTS = st.floats(1e-3, 1e3)


@settings(max_examples=100, deadline=None)
@given(COSTS, COSTS, st.floats(0.1, 1e3))
def test_no_other_steps_cost_less(per_step, per_round, saturation):
    known = Saturation(saturation=saturation)
    best = known.best_steps(per_step, per_round)
    tried = best * np.geomspace(1e-3, 1e3, 601)
    costs = (per_step * tried + per_round) * known.full_rounds(tried)
    least = (per_step * best + per_round) * float(known.full_rounds(best))
    assert least == pytest.approx(costs.min(), rel=1e-9)


@pytest.mark.parametrize(("per_round", "steps"), [(2.0, math.inf), (0.0, 1.0)])
def test_where_steps_are_free_all_are_taken_and_where_rounds_are_too_just_one(per_round, steps):
    assert Saturation().best_steps(0.0, per_round) == steps
    assert best_constant_steps(80.0, None, 0.0, per_round) == steps
