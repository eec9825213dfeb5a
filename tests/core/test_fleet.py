"""Fleets: validation, counts, summaries and random draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan import Fleet, InputError, draw_fleet, with_stragglers
from fedplan.core.fleet import QUANTITIES


def test_one_number_stands_for_every_device():
    fleet = Fleet(step_time_s=[1.0, 2.0, 3.0], comm_time_s=0.5, step_energy_j=7.0)
    assert fleet.comm_time_s.tolist() == [0.5] * 3
    assert fleet.step_energy_j.tolist() == [7.0] * 3
    assert fleet.comm_energy_j.tolist() == [0.0] * 3
    assert len(fleet) == 3


def test_every_wrong_column_is_reported_with_its_first_wrong_entry():
    with pytest.raises(InputError) as caught:
        Fleet(
            step_time_s=[1.0, 0.0, 0.0],
            comm_time_s=[1.0, -1.0, 1.0],
            step_energy_j=[math.nan, 1.0, 1.0],
            comm_energy_j=[1.0, 1.0, math.inf],
            count=[1, 2, 1.5],
            device=["a", "b"],
        )
    problems = {problem.column: problem.message for problem in caught.value.problems}
    assert set(problems) == {*QUANTITIES, "count", "device"}
    assert "> 0" in problems["step_time_s"]
    assert "entry 1" in problems["step_time_s"]
    assert "2 such entries" in problems["step_time_s"]
    assert ">= 0" in problems["comm_time_s"]
    assert "entry 2" in problems["count"]


@pytest.mark.parametrize(
    "columns",
    [
        {"step_time_s": [1.0, 2.0], "comm_time_s": [1.0, 2.0, 3.0]},
        {"step_time_s": [[1.0], [2.0]], "comm_time_s": 1.0},
        {"step_time_s": [], "comm_time_s": 1.0},
        {"step_time_s": ["fast"], "comm_time_s": 1.0},
    ],
    ids=["unequal lengths", "a matrix", "no devices", "words"],
)
def test_columns_that_do_not_fit_together_are_refused(columns):
    with pytest.raises(InputError):
        Fleet(**columns)


def test_a_fleet_owns_its_values():
    times = np.array([1.0, 2.0])
    fleet = Fleet(step_time_s=times, comm_time_s=1.0)
    times[0] = 99.0
    assert fleet.step_time_s.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        fleet.step_time_s[0] = 5.0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 100), st.integers(1, 30)), min_size=1, max_size=8))
def test_a_summary_with_counts_is_that_of_the_expanded_fleet(groups):
    values, count = (np.array(column) for column in zip(*groups, strict=True))
    expanded = np.sort(np.repeat(values, count))
    found = Fleet(step_time_s=values, comm_time_s=1.0, count=count).summary()["step_time_s"]
    assert found["mean"] == pytest.approx(expanded.mean())
    assert found["sd"] == pytest.approx(expanded.std(), abs=1e-6 * expanded.max())
    assert (found["min"], found["max"]) == (expanded[0], expanded[-1])
    for name, share in (("median", 0.5), ("p95", 0.95)):
        rank = math.ceil(share * expanded.size - 1e-9)
        assert found[name] == expanded[rank - 1]


@pytest.mark.parametrize("law", ["normal", "lognormal"])
def test_a_drawn_fleet_has_the_moments_asked_for(law):
    fleet = draw_fleet(
        200_000,
        step_time_s=(0.1, 0.02),
        comm_time_s=(2.0, 0.4),
        step_energy_j=(1e-3, 2e-4),
        comm_energy_j=(5.0, 0.0),
        law=law,
        seed=3,
    )
    for name, (mean, sd) in {
        "step_time_s": (0.1, 0.02),
        "comm_time_s": (2.0, 0.4),
        "step_energy_j": (1e-3, 2e-4),
    }.items():
        values = getattr(fleet, name)
        assert values.mean() == pytest.approx(mean, rel=0.01)
        assert values.std() == pytest.approx(sd, rel=0.02)
    assert set(fleet.comm_energy_j) == {5.0}
    assert abs(np.corrcoef(fleet.step_time_s, fleet.comm_time_s)[0, 1]) < 0.02


@pytest.mark.parametrize("law", ["normal", "lognormal"])
def test_a_drawn_fleet_is_positive_however_wide_its_spread(law):
    fleet = draw_fleet(5000, step_time_s=(1.0, 3.0), comm_time_s=(0.1, 5.0), law=law, seed=1)
    assert fleet.step_time_s.min() > 0
    assert fleet.comm_time_s.min() > 0


def test_a_normal_draw_is_drawn_again_where_negative_not_cut_off():
    values = draw_fleet(100_000, step_time_s=(1.0, 1.0), comm_time_s=(1.0, 0.0)).step_time_s
    # Mean of a normal(1, 1) given that it is positive: 1 + phi(1) / Phi(1).
    density, share = math.exp(-0.5) / math.sqrt(2 * math.pi), 0.5 * math.erfc(-1 / math.sqrt(2))
    assert values.mean() == pytest.approx(1 + density / share, rel=0.01)


def test_the_same_seed_draws_the_same_fleet_and_another_does_not():
    spread = {"step_time_s": (1.0, 0.2), "comm_time_s": (1.0, 0.2)}
    one, same, other = (draw_fleet(50, **spread, seed=seed) for seed in (1, 1, 2))
    assert one.step_time_s.tolist() == same.step_time_s.tolist()
    assert one.step_time_s.tolist() != other.step_time_s.tolist()
    assert one.step_time_s.tolist() != one.comm_time_s.tolist()


def test_a_drawn_column_does_not_depend_on_the_others():
    narrow = draw_fleet(20, step_time_s=(1.0, 0.0), comm_time_s=(1.0, 0.3), seed=5)
    wide = draw_fleet(20, step_time_s=(1.0, 0.9), comm_time_s=(1.0, 0.3), seed=5)
    assert narrow.comm_time_s.tolist() == wide.comm_time_s.tolist()


def test_wrong_draws_are_all_listed():
    with pytest.raises(InputError) as caught:
        draw_fleet(0, step_time_s=(1.0, -1.0), comm_time_s=(math.nan, 0.0), law="cauchy")
    assert len(caught.value.problems) == 4


def test_stragglers_are_slower_and_cost_the_same_energy():
    fleet = draw_fleet(
        200, step_time_s=(1.0, 0.3), comm_time_s=(2.0, 0.5), step_energy_j=(1.0, 0.1), seed=4
    )
    slow = with_stragglers(fleet, 0.1, 6.0)
    ratio = slow.round_times_s(7) / fleet.round_times_s(7)
    assert sorted(set(ratio.round(12).tolist())) == [1.0, 6.0]
    assert (ratio > 2).sum() == 20
    assert slow.step_energy_j.tolist() == fleet.step_energy_j.tolist()
    assert with_stragglers(fleet, 0.0, 6.0).step_time_s.tolist() == fleet.step_time_s.tolist()
    with pytest.raises(InputError) as caught:
        with_stragglers(fleet, 1.5, 0.5)
    assert len(caught.value.problems) == 2
