"""The fit figure's data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.figures import FitFigure, fit_figure_data
from fedplan.figures.fit import FitInterval
from fedplan.theory.convergence import rounds_for_gap
from fedplan.theory.estimation import estimate_bound
from fedplan.theory.pilots import Pilot


def measured(clients: int, steps: int, iterations: float) -> Pilot:
    return Pilot(
        clients_per_round=clients,
        local_steps=steps,
        upper_loss=2.0,
        lower_loss=1.0,
        rounds_to_upper=10,
        rounds_to_lower=10 + iterations / steps,
    )


def test_curves_are_the_bound_s_iterations(pilots: list[Pilot], fit_data: FitFigure) -> None:
    bound = estimate_bound(pilots, 100).bound
    assert bound is not None
    assert [curve.clients_per_round for curve in fit_data.curves] == [3, 20]
    for curve in fit_data.curves:
        rounds = rounds_for_gap(bound, curve.clients_per_round, curve.local_steps, 100)
        np.testing.assert_allclose(curve.iterations, rounds * curve.local_steps)


def test_bands_span_every_plausible_bound(pilots: list[Pilot], fit_data: FitFigure) -> None:
    for curve in fit_data.curves:
        every = [
            rounds_for_gap(bound, curve.clients_per_round, curve.local_steps, 100)
            * curve.local_steps
            for bound in estimate_bound(pilots, 100).plausible
        ]
        np.testing.assert_allclose(curve.low, np.min(every, axis=0))
        np.testing.assert_allclose(curve.high, np.max(every, axis=0))


def test_every_pilot_is_on_the_axes(fit_data: FitFigure) -> None:
    for pilot in fit_data.pilots:
        assert fit_data.steps.has(pilot.local_steps)
        assert fit_data.iterations.has(pilot.iterations)
    assert fit_data.title.startswith("Local steps a client needs from loss 1.5 to 1.3: 4 pilots")


def test_intervals_are_the_estimate_s(pilots: list[Pilot], fit_data: FitFigure) -> None:
    estimate = estimate_bound(pilots, 100)
    shown = {interval.name: interval for interval in fit_data.intervals}
    assert list(shown) == ["a0", "b0", "c0", "a0 / b0"]
    assert estimate.bound is not None
    assert shown["a0"].estimate == estimate.bound.a0
    assert (shown["c0"].low, shown["c0"].high) == estimate.intervals["c0"]
    assert shown["a0 / b0"].estimate == estimate.ratio


def test_an_interval_is_relative_to_its_estimate_and_may_be_open() -> None:
    closed = FitInterval(name="a0", estimate=2000.0, low=1000.0, high=3000.0)
    assert closed.relative == (0.5, 1.0, 1.5)
    assert closed.label == "a0 = 2,000\n(1,000 to 3,000)"
    opened = FitInterval(name="a0 / b0", estimate=4.0, low=1.0, high=math.inf)
    assert opened.relative == (0.25, 1.0, math.inf)
    assert opened.label.endswith("(1 or more)")
    assert FitInterval(name="c0", estimate=0.0, low=0.0, high=3.0).relative == (0, 0, math.inf)


def test_an_open_interval_is_beyond_the_axis() -> None:
    pilots = [measured(10, steps, 3000 + 5 * steps**2) for steps in (5, 20, 40)]
    data = fit_figure_data(pilots, estimate_bound(pilots, 100), 100)
    opened = [i.name for i in data.intervals if not data.ratio.has(i.relative[2])]
    assert "c0" in opened


def test_pairs_of_pilots_are_drawn_in_the_pilots_own_units(pilots: list[Pilot]) -> None:
    estimate = estimate_bound(pilots, 100, method="pairwise")
    data = fit_figure_data(pilots, estimate, 100)
    assert [interval.name for interval in data.intervals] == ["a0 / b0"]
    assert data.intervals_title == "Range over pairs of pilots"
    for curve in data.curves:  # plausible ratios come with b0 = 1, far below the measurements
        assert (curve.low > 0.2 * curve.iterations).all()


def test_at_most_eight_curves_are_drawn() -> None:
    pilots = [
        measured(clients, steps, 3000 + steps**2 * (1 + 20 / clients))
        for clients in range(1, 21)
        for steps in (5, 40)
    ]
    data = fit_figure_data(pilots, estimate_bound(pilots, 100), 100)
    assert [curve.clients_per_round for curve in data.curves][:: len(data.curves) - 1] == [1, 20]
    assert len(data.curves) == 8


def test_without_a_fit_there_are_pilots_alone() -> None:
    pilots = [measured(3, 10, 400.0)] * 2
    data = fit_figure_data(pilots, estimate_bound(pilots, 100), 100)
    assert data.curves == () and data.intervals == ()
    assert "Add a pilot" in data.note


def test_no_pilots_is_an_input_error(pilots: list[Pilot]) -> None:
    with pytest.raises(InputError, match="needs pilots"):
        fit_figure_data([], estimate_bound(pilots, 100), 100)
