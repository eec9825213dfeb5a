"""What rounds tell of devices: costs that outliers do not move, and that follow slower devices."""

from __future__ import annotations

import pytest

from fedplan.core.fleet import Fleet
from fedplan.core.records import Observation
from fedplan.profiling import fleet_of, observed_costs
from fedplan.profiling.observed import Ledger, drifted


def observe(client, steps, train, trip, joules=None, problem=""):
    return Observation(
        client=client, local_steps=steps, train_seconds=train, round_trip_seconds=trip,
        joules=joules, problem=problem,
    )  # fmt: skip


def test_costs_are_robust_to_outliers_and_failures():
    seen = [observe(0, e, 1 + 0.5 * e, 3 + 0.5 * e, 2.0 * e) for e in (2, 10) * 5]
    seen += [observe(0, 10, 90.0, 95.0), observe(0, 2, None, None, problem="late")]
    costs = observed_costs(seen).devices
    assert costs[0].step_time_s.value == pytest.approx(0.5)
    assert costs[0].exchange_s.value == pytest.approx(2.0)
    fleet = fleet_of(costs, ["a", "b"])  # the second never answered
    assert fleet.step_time_s.tolist() == pytest.approx([0.5, 0.5])
    assert fleet.comm_time_s.tolist() == pytest.approx([3.0, 3.0])
    slower = drifted(costs, [observe(0, 10, 18.0, 20.0)] * 3)[0]
    assert slower.step_time_s.value == pytest.approx(1.5)
    assert slower.exchange_s.value == pytest.approx(2.0)
    assert drifted(costs, [observe(0, 10, 18.0, 20.0)]) == costs


def test_nothing_is_known_before_the_first_answer():
    ledger = Ledger()
    ledger.hear([observe(0, 10, None, None, problem="late")])
    assert ledger.fleet(2) is None and ledger.samples(2).tolist() == [1.0, 1.0]


def test_earlier_costs_count_until_two_numbers_of_steps_were_seen():
    known = Fleet(step_time_s=[1.0, 2.0], comm_time_s=[3.0, 4.0])
    ledger = Ledger([30, 10])
    ledger.hear([observe(0, 10, 5.0, 6.0)])
    assert ledger.fleet(2, known).step_time_s.tolist() == [1.0, 2.0]
    ledger.hear([observe(0, 20, 10.0, 11.0)])
    fleet = ledger.fleet(3, known)
    assert fleet.step_time_s.tolist() == pytest.approx([0.5, 2.0, 1.25])
    assert fleet.samples.tolist() == [30, 10, 20]


def test_earlier_costs_of_identical_devices_are_those_of_each():
    known = Fleet(step_time_s=[1.0, 2.0], comm_time_s=[3.0, 4.0], count=[2, 1])
    assert Ledger().fleet(3, known).comm_time_s.tolist() == [3.0, 3.0, 4.0]
