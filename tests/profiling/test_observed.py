"""Costs from observations: the truth under noise and outliers, and nothing that cannot be."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan.core.records import Observation
from fedplan.profiling import observed_costs

cost = st.floats(1e-3, 1e2)
any_number = st.floats(allow_nan=True, allow_infinity=True)


def observe(e, *, step=0.5, fixed=0.2, comm=2.0, joules=None, client=0, noise=0.0):
    train = (fixed + step * e) * (1 + noise)
    return Observation(
        client=client, local_steps=e, train_seconds=train, round_trip_seconds=train + comm,
        joules=joules,
    )  # fmt: skip


@settings(deadline=None)  # scipy is loaded on first use
@given(
    step=cost,
    fixed_share=st.floats(0, 4),
    comm_share=st.floats(0.01, 4),
    power=cost,
    seed=st.integers(0, 10**6),
)
def test_the_truth_is_found_under_noise_and_outliers(
    step, fixed_share, comm_share, power, seed
):  # fmt: skip
    # Of 40 steps, so that the steps can be seen at all beside noise that is a share of the whole.
    fixed, comm = fixed_share * step * 40, comm_share * step * 40
    draw = random.Random(seed)
    seen = []
    for number in range(60):
        e = draw.choice((5, 10, 20, 40))
        noise = draw.gauss(0, 0.01)
        energy = power * (comm + step * e) * (1 + draw.gauss(0, 0.01))
        one = observe(e, step=step, fixed=fixed, comm=comm, joules=energy, noise=noise)
        if number % 10 == 0:  # a tenth of the rounds met something else
            one = observe(e, step=30 * step, fixed=fixed, comm=50 * comm, joules=20 * energy)
        seen.append(one)
    costs = observed_costs(seen).devices[0]
    scale = step * 40 + fixed  # noise is a share of the whole
    assert costs.step_time_s.value == pytest.approx(step, rel=0.03, abs=0.002 * scale)
    assert costs.exchange_s.value == pytest.approx(comm, rel=0.01)
    assert costs.fixed_time_s.value == pytest.approx(fixed, abs=0.05 * scale)
    assert costs.comm_time_s.value == costs.exchange_s.value + costs.fixed_time_s.value
    scale_j = power * (comm + step * 40)
    assert costs.step_energy_j.value == pytest.approx(power * step, rel=0.03, abs=0.002 * scale_j)
    assert costs.comm_energy_j.value == pytest.approx(power * comm, rel=0.1, abs=0.05 * scale_j)
    assert costs.num_observations == 60


observations = st.lists(
    st.builds(
        Observation,
        client=st.integers(0, 3),
        local_steps=st.one_of(st.integers(-1, 50), any_number),
        train_seconds=st.one_of(cost, any_number, st.none()),
        round_trip_seconds=st.one_of(st.floats(50, 200), any_number, st.none()),
        joules=st.one_of(st.none(), cost, any_number),
        problem=st.sampled_from(["", "", "", "late"]),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(observations)
def test_nothing_is_negative_and_every_value_lies_in_its_interval(seen):
    found = observed_costs(seen)
    believed = sum(device.num_observations for device in found.devices.values())
    assert believed + len(found.rejected) == len(seen)
    for device in found.devices.values():
        assert device.step_time_s.value > 0
        for part in (
            device.step_time_s, device.exchange_s, device.fixed_time_s, device.comm_time_s,
            device.step_energy_j, device.comm_energy_j,
        ):  # fmt: skip
            if part is not None:
                assert 0 <= part.low <= part.value <= part.high < math.inf and part.spread >= 0


@settings(deadline=None)
@given(observations, st.randoms(use_true_random=False))
def test_the_order_of_observations_is_irrelevant(seen, shuffle):
    other = list(seen)
    shuffle.shuffle(other)
    assert observed_costs(seen) == observed_costs(other)


def test_one_number_of_steps_gives_the_ratio_and_says_how_little_that_is():
    costs = observed_costs([observe(10, fixed=1.0, joules=14.0) for _ in range(8)]).devices[0]
    step = costs.step_time_s
    assert (step.value, step.low, step.high) == pytest.approx((0.6, 0.3, 0.9))
    fixed = costs.fixed_time_s
    assert (fixed.value, fixed.low, fixed.high) == pytest.approx((0.0, 0.0, 3.0))
    assert costs.step_energy_j.value == pytest.approx(1.4)
    assert (costs.comm_energy_j.value, costs.comm_energy_j.high) == pytest.approx((0.0, 7.0))
    both = observed_costs([observe(e, fixed=1.0) for e in (10, 20) * 4]).devices[0]
    assert both.step_time_s.value == 0.5 and both.step_time_s.spread < costs.step_time_s.spread
    assert both.step_energy_j is None and both.comm_energy_j is None


def test_steps_that_cannot_be_seen_beside_the_rest_may_cost_next_to_nothing():
    seen = [observe(e, step=1e-9, fixed=1.0 - 0.001 * e, joules=5.0) for e in (10, 20, 40) * 3]
    costs = observed_costs(seen).devices[0]
    assert costs.step_time_s.value == pytest.approx(0.96 / 40) and costs.step_time_s.low == 0.0
    assert costs.step_energy_j.low == 0.0 < costs.step_energy_j.value


def test_two_observations_are_no_certainty():
    costs = observed_costs([observe(10), observe(20)]).devices[0]
    assert costs.step_time_s.value == pytest.approx(0.5) and costs.step_time_s.spread >= 0.5


def test_devices_are_told_apart():
    slow = [observe(e, step=5.0, client=9) for e in (5, 10, 20)]
    quick = [observe(e, step=0.1, client=2) for e in (5, 10, 20)]
    devices = observed_costs([*slow, *quick]).devices
    assert list(devices) == [2, 9]
    assert devices[9].step_time_s.value == pytest.approx(50 * devices[2].step_time_s.value)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"local_steps": 0}, "local_steps"),
        ({"local_steps": 2.5}, "local_steps"),
        ({"local_steps": math.inf}, "local_steps"),
        ({"train_seconds": math.nan}, "train_seconds"),
        ({"train_seconds": -1.0}, "train_seconds"),
        ({"train_seconds": 0.0}, "train_seconds"),
        ({"train_seconds": 1e9, "round_trip_seconds": 2e9}, "train_seconds"),
        ({"round_trip_seconds": 0.5}, "round_trip_seconds"),
        ({"round_trip_seconds": math.inf}, "round_trip_seconds"),
        ({"train_seconds": None}, "train_seconds"),
        ({"round_trip_seconds": None}, "round_trip_seconds"),
        ({"problem": "no answer within 60 s"}, "not used: no answer within 60 s"),
        ({"joules": -1.0}, "joules"),
        ({"joules": math.nan}, "joules"),
        ({"joules": 1e30}, "joules"),
    ],
)
def test_what_cannot_be_is_left_out_and_named(change, word):
    values = {"local_steps": 10, "train_seconds": 1.0, "round_trip_seconds": 2.0, "joules": 1.0}
    wrong = Observation(client=4, **(values | change))
    found = observed_costs([wrong, *(observe(e, client=4) for e in (10, 20))])
    assert found.devices[4].num_observations == 2
    assert len(found.rejected) == 1 and found.rejected[0].startswith("client 4: ")
    assert word in found.rejected[0]
    assert observed_costs([wrong]).devices == {}
