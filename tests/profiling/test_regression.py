"""Robust lines and medians, and how often their intervals hold the truth."""

from __future__ import annotations

import math
import random

from fedplan.profiling.regression import fit_line, median_of


def test_a_line_needs_two_numbers_of_steps_and_a_rise():
    assert fit_line([3, 3, 3], [1.0, 2.0, 3.0]) is None
    assert fit_line([1, 2, 3, 4], [4.0, 3.0, 2.0, 1.0]) is None
    assert fit_line([], []) is None


def test_the_interval_of_a_median_holds_it_nine_times_in_ten():
    draw = random.Random(1)
    held = 0
    for _ in range(200):
        measured = median_of([math.exp(draw.gauss(0, 1)) for _ in range(25)])
        held += measured.low <= 1.0 <= measured.high
    assert held >= 170


def test_the_interval_of_a_slope_holds_it_nine_times_in_ten():
    draw = random.Random(1)
    held = 0
    for _ in range(200):
        steps = [10, 20, 50, 100] * 8
        line = fit_line(steps, [1 + 0.1 * e + draw.gauss(0, 0.5) for e in steps])
        held += line.slope.low <= 0.1 <= line.slope.high
    assert held >= 170
