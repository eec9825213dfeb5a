"""Units, numbers and axes read well."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedplan.figures import Panel, alone, draw_print
from fedplan.figures.axes import count_axis, fit_axis, near, tick_text
from fedplan.words import NO_UNIT, energy_unit, extra, number, quantity, time_unit

sizes = st.floats(1e-12, 1e30)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12.0, "12 s"), (299.0, "299 s"), (1237.7, "20.6 min"), (13166.9, "3.66 h"), (0.0, "0 s")],
)
def test_time_is_shown_in_seconds_minutes_or_hours(seconds: float, text: str) -> None:
    assert quantity(seconds, time_unit(seconds)) == text


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        (213.0, "213 J"),
        (53_700.0, "53.7 kJ"),
        (5.4e6, "5.4 MJ"),
        (7.2e7, "20 kWh"),
        (3.6e12, "1e+06 kWh"),
        (0.0, "0 J"),
    ],
)
def test_energy_is_shown_in_joules_or_kilowatt_hours(joules: float, text: str) -> None:
    assert quantity(joules, energy_unit(joules)) == text


def test_thousands_are_separated() -> None:
    assert number(13166.9) == "13,167"
    assert tick_text(50_000) == "50,000"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.0, "same cost"),
        (1.0021, "+0.2%"),
        (1.262, "+26%"),
        (0.79, "-21%"),
        (2.84, "+184%"),
        (9.85, "9.8x the cost"),
        (12.43, "12x the cost"),
        (1234.4, "1,234x the cost"),
    ],
)
def test_extra_cost_is_short(ratio: float, text: str) -> None:
    assert extra(ratio) == text


@given(values=st.lists(sizes, min_size=1, max_size=5))
def test_an_axis_shows_every_value_and_is_logarithmic_past_a_factor_of_ten(
    values: list[float],
) -> None:
    axis = fit_axis("time", NO_UNIT, values)
    assert all(axis.has(value) for value in values)
    assert axis.log == (max(values) / min(values) > 10)
    assert axis.low < axis.high and (axis.low > 0 or not axis.log)
    assert ((axis.shares(values) >= 0) & (axis.shares(values) <= 1)).all()


@given(values=st.lists(sizes, min_size=1, max_size=5), far=sizes)
def test_what_is_beyond_an_axis_is_pinned_inside_its_edge(values: list[float], far: float) -> None:
    axis = fit_axis("time", NO_UNIT, values)
    assert axis.low <= axis.kept(far) <= axis.high
    assert (axis.side(far) == 0) == (axis.kept(far) == far)


def test_a_single_value_below_zero_has_an_axis() -> None:
    axis = fit_axis("loss", NO_UNIT, [-2.0])
    assert axis.low < axis.high and axis.has(-2.0)


def test_a_quantity_that_is_zero_throughout_has_an_axis() -> None:
    axis = fit_axis("energy to target", energy_unit(0.0), [0.0, 0.0])
    assert axis.all_zero and not axis.log and axis.has(0.0)
    assert near([0.0], 0.0) and not near([0.0], 1.0)


def test_a_count_axis_ends_at_its_counts_and_never_collapses() -> None:
    axis = count_axis("K", 1, 100)
    assert (axis.low, axis.high, axis.log) == (1, 100, True)
    assert count_axis("K", 4, 4).low < 4 < count_axis("K", 4, 4).high


@given(low=sizes, ratio=st.floats(1.0, 1e3), times=st.floats(1.0, 1e6))
def test_marks_widen_an_axis_only_as_far_as_the_frontier_stays_readable(
    low: float, ratio: float, times: float
) -> None:
    core = [low, low * ratio]
    assert near(core, low) and near(core, low * ratio)
    assert near(core, low * ratio * times) == near(core, low / times) or times < 1 + 1e-9
    if times > 1.01 * max(ratio**1.5, 2.0):
        assert not near(core, low * ratio * times)


@pytest.mark.parametrize(
    ("ends", "whole"),
    [
        ((1.05, 2.3), False),
        ((0.365, 2.5), False),
        ((1.0, 1.1), False),
        ((0.011, 0.1), False),
        ((1, 4), True),
        ((8, 60), True),
        ((90, 100), True),
        ((7, 9), True),
    ],
)
def test_a_short_logarithmic_axis_has_a_few_round_ticks(
    ends: tuple[float, float], whole: bool
) -> None:
    axis = fit_axis("loss", NO_UNIT, ends, log=True)
    if whole:
        axis = replace(count_axis("K", int(ends[0]), int(ends[1])), log=True)
    drawn = draw_print(alone(Panel(x=axis, y=axis, parts=()))).axes[0]
    ticks = [tick for tick in drawn.get_xticks() if axis.has(tick)]
    assert 3 <= len(ticks) <= 8
    assert not whole or all(float(tick).is_integer() for tick in ticks)
