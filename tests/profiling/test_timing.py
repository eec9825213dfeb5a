"""The time of a step, from work whose cost is known."""

from __future__ import annotations

import time

import numpy as np
import pytest

from fedplan.errors import FedplanError, InputError
from fedplan.profiling import time_steps
from fedplan.profiling.meters import ConstantMeter
from fedplan.studies import read_study
from fedplan.studies.task import build_data, build_local_training


def timed(clock, fixed_s, step_s):
    """Training that takes so long by the tests' own clock, and up to a twentieth more."""
    random = np.random.default_rng(1)

    def train(local_steps):
        clock.now += (fixed_s + step_s * local_steps) * random.uniform(1.0, 1.05)

    return train


def work(fixed_s, step_s):
    """Training that takes so long by the real clock, and more where the machine is busy."""

    def train(local_steps):
        end = time.perf_counter() + fixed_s + step_s * local_steps
        while time.perf_counter() < end:
            pass

    return train


@pytest.mark.parametrize(("fixed_s", "step_s"), [(0.0, 2e-5), (0.01, 1e-3)])
def test_the_slope_is_the_cost_of_a_step_and_the_fixed_part_is_kept_apart(clock, fixed_s, step_s):
    timing = time_steps(timed(clock, fixed_s, step_s), seconds=3.0)
    assert timing.step_time_s.value == pytest.approx(step_s, rel=0.15)
    assert timing.step_time_s.low <= timing.step_time_s.value <= timing.step_time_s.high
    longest = fixed_s + step_s * timing.local_steps[-1]
    assert timing.fixed_time_s == pytest.approx(fixed_s, abs=0.1 * longest)
    assert timing.num_calls >= 3 * len(timing.local_steps) and len(timing.local_steps) >= 2


def test_a_slow_step_is_measured_with_few_and_never_less_than_three_calls_a_level(clock):
    calls, work = [], timed(clock, 0, 0.1)

    def train(local_steps):
        calls.append(local_steps)
        work(local_steps)

    timing = time_steps(train, seconds=0.01)
    assert timing.local_steps == (1, 2) and timing.num_calls == 6
    assert calls[:4] == [1, 1, 2, 2] and len(calls) == 10
    assert timing.step_time_s.value == pytest.approx(0.1, rel=0.15)


def test_a_disturbed_call_in_six_changes_nothing(clock):
    calls, work = 0, timed(clock, 0.0, 1e-3)

    def train(local_steps):
        nonlocal calls
        calls += 1
        work(local_steps)
        clock.now += 0.3 if calls % 6 == 0 else 0.0

    timing = time_steps(train, seconds=4.0)
    assert timing.step_time_s.value == pytest.approx(1e-3, rel=0.15)


def test_a_process_that_waits_for_the_processor_shows():
    assert time_steps(work(0, 1e-3), seconds=0.2).processor_share > 0.1
    asleep = time_steps(lambda steps: time.sleep(1e-3 * steps), seconds=0.2)
    assert asleep.processor_share < 0.5


def test_work_without_a_cost_is_said_to_have_none():
    with pytest.raises(FedplanError, match="do not take longer with more steps"):
        time_steps(lambda steps: work(0.03 / steps, 0.0)(steps), seconds=0.01)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 601.0])
def test_a_measurement_has_a_length(seconds):
    with pytest.raises(InputError, match="seconds"):
        time_steps(work(0, 1e-3), seconds=seconds)


def test_joules_are_those_of_the_timed_calls():
    timing = time_steps(work(0, 1e-3), seconds=0.2, meter=ConstantMeter(3.0))
    assert timing.window.watts == pytest.approx(3.0, rel=0.01)
    assert timing.window.seconds >= 0.2


def test_a_studys_median_client_is_what_is_measured():
    study = read_study("demo")
    training = build_local_training(study)
    sizes = sorted(build_data(study.task).sizes)
    assert training.num_samples == sizes[(len(sizes) - 1) // 2]
    assert training.num_clients == len(sizes) == 20
    timing = time_steps(training, seconds=0.3)
    assert 1e-8 < timing.step_time_s.value < 1e-2
    lenet = build_local_training(read_study("setup2", ["data=mnist-mini"]))
    assert lenet.num_parameters == 61_706
