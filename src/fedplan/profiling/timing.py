"""The time of a local step, from calls with few and with many steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from fedplan.errors import FedplanError, require
from fedplan.profiling.meters import Meter, Window, metered
from fedplan.profiling.regression import Measured, fit_line

MOST_SECONDS = 600.0
_LEVELS = 4  # numbers of steps that calls alternate between, the largest of 1, 2, 5, 10, 20, ...
_CALLS_PER_LEVEL = 3  # at least
_MOST_CALLS = 1_000  # every pair of calls is compared
_CALL_SHARE = 1 / 30  # the longest call, as a share of the whole measurement, at least
_RISE = 1.8  # and as a multiple of a call with one step, or its fixed part would hide the steps


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTiming:
    """How long a local step takes.

    fixed_time_s : seconds of a call that do not depend on its steps.
    window : all timed calls together, and what the meter saw of them.
    processor_share : the share of that time that this process had the processor; clearly below 1
        means that other programs had it.
    """

    step_time_s: Measured
    fixed_time_s: float
    num_calls: int
    local_steps: tuple[int, ...]
    window: Window
    processor_share: float


def check_seconds(seconds: float) -> None:
    """Refuse a duration that is not positive, or too long."""
    require({f"0 < seconds <= {MOST_SECONDS:g}": 0 < seconds <= MOST_SECONDS}, seconds=seconds)


def time_steps(
    train: Callable[[int], None], *, seconds: float, meter: Meter | None = None
) -> StepTiming:
    """Time `train(local_steps)`, called for about `seconds` with different numbers of steps.

    The slope of a call's time over its steps is the time of a step; what a call costs besides is
    kept apart. Calls with few and with many steps alternate, so that a machine that slows down as
    it warms up slows all of them alike. Robust regression leaves out calls that something else
    disturbed.
    """
    check_seconds(seconds)
    train(1)  # compiles, fills caches
    levels = _choose_levels(train, seconds)
    steps: list[int] = []
    took: list[float] = []
    started = time.process_time()
    with metered(meter) as window:
        for number in range(_MOST_CALLS):
            level = levels[number % len(levels)]
            took.append(_time_call(train, level))
            steps.append(level)
            if number + 1 >= _CALLS_PER_LEVEL * len(levels) and sum(took) >= seconds:
                break
        processor_s = time.process_time() - started
    line = fit_line(steps, took)
    if line is None or line.slope.low <= 0:
        raise FedplanError(
            f"no step time can be seen: {len(took)} calls with {levels[0]} to {levels[-1]} steps "
            f"do not take longer with more steps. Measure longer than {seconds:g} s, with nothing "
            "else running."
        )
    return StepTiming(
        step_time_s=line.slope,
        fixed_time_s=line.fixed,
        num_calls=len(took),
        local_steps=tuple(levels),
        window=window,
        processor_share=min(1.0, processor_s / window.seconds),
    )


def _choose_levels(train: Callable[[int], None], seconds: float) -> list[int]:
    """The last few of 1, 2, 5, 10, ... up to one whose steps can be told from the call itself."""
    levels = [1]
    one_step_s = _time_call(train, 1)

    def is_long_enough(took_s: float) -> bool:
        tells = took_s >= seconds * _CALL_SHARE and took_s >= _RISE * one_step_s
        return tells or took_s >= seconds

    # There is an end, because a step may take no time at all.
    for level in (digit * 10**power for power in range(9) for digit in (2, 5, 10)):
        levels.append(level)
        # A second call, because something else may have made the first one long.
        if is_long_enough(_time_call(train, level)) and is_long_enough(_time_call(train, level)):
            break
    return levels[-_LEVELS:]


def _time_call(train: Callable[[int], None], local_steps: int) -> float:
    started = time.perf_counter()
    train(local_steps)
    return time.perf_counter() - started
