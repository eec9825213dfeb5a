"""Which K, E and groups a search looks at."""

from __future__ import annotations

import pytest

from fedplan.convergence.saturation import Saturation
from fedplan.core.fleet import Fleet
from fedplan.core.problem import Problem
from fedplan.planning.surface import lattice
from fedplan.planning.turns import likely_turns


@pytest.mark.parametrize("ends", [(3, 12), (5, 14), (90, 99)])
def test_a_lattice_that_has_room_for_all_integers_has_them(ends):
    low, high = ends
    assert lattice(low, high, high - low + 1).tolist() == list(range(low, high + 1))


@pytest.mark.parametrize(("comm_time_s", "most"), [(1.0, 1000), (20.0, 2000)])
def test_turns_are_tried_up_to_a_hundred_exchanges_of_steps_or_a_thousand(comm_time_s, most):
    problem = Problem(fleet=Fleet(step_time_s=1.0, comm_time_s=comm_time_s, count=3))
    tried = [choice.prediction.local_steps for choice in likely_turns(problem, Saturation())]
    assert (min(tried), max(tried)) == (1, most)
