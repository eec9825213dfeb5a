"""The fit figure's data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedplan.convergence.bound import rounds_for_gap
from fedplan.convergence.estimation import estimate_bound
from fedplan.convergence.pilots import Pilot
from fedplan.errors import InputError
from fedplan.figures import Figure, fit_figure_data
from fedplan.figures.fit import FitInterval, fit_intervals
from fedplan.figures.spec import Line, Points


def measured(clients: int, steps: int, iterations: float) -> Pilot:
    return Pilot(
        clients_per_round=clients,
        local_steps=steps,
        upper_loss=2.0,
        lower_loss=1.0,
        rounds_to_upper=10,
        rounds_to_lower=10 + iterations / steps,
    )


def curves_of(data: Figure) -> dict[int, Line]:
    """The fitted curve of each K."""
    lines = [part for part in data.panels[0].parts if isinstance(part, Line)]
    return {int(line.name.removeprefix("K=")): line for line in lines}


def intervals_of(data: Figure) -> list[Line]:
    """The lines from end to end, that of the estimates apart."""
    return [part for part in data.panels[1].parts if isinstance(part, Line) and part.hover]


def test_curves_are_the_bound_s_iterations(pilots: list[Pilot], fit_data: Figure) -> None:
    bound = estimate_bound(pilots, 100).bound
    assert bound is not None
    assert [*curves_of(fit_data)] == [3, 20]
    for clients, curve in curves_of(fit_data).items():
        rounds = rounds_for_gap(bound, clients, curve.x, 100)
        np.testing.assert_allclose(curve.y, rounds * curve.x)


def test_bands_span_every_plausible_bound(pilots: list[Pilot], fit_data: Figure) -> None:
    for clients, curve in curves_of(fit_data).items():
        every = [
            rounds_for_gap(bound, clients, curve.x, 100) * curve.x
            for bound in estimate_bound(pilots, 100).plausible
        ]
        np.testing.assert_allclose(curve.low, np.min(every, axis=0))
        np.testing.assert_allclose(curve.high, np.max(every, axis=0))


def test_every_pilot_is_on_the_axes(pilots: list[Pilot], fit_data: Figure) -> None:
    panel = fit_data.panels[0]
    points = [part for part in panel.parts if isinstance(part, Points)]
    drawn = {
        place for part in points for place in zip(part.x.tolist(), part.y.tolist(), strict=True)
    }
    assert drawn == {(pilot.local_steps, pilot.iterations) for pilot in pilots}
    assert all(panel.x.has(x) and panel.y.has(y) for x, y in drawn)
    assert fit_data.title.startswith("Local steps a client needs from loss 1.5 to 1.3: 4 pilots")


def test_intervals_are_the_estimate_s(pilots: list[Pilot], fit_data: Figure) -> None:
    estimate = estimate_bound(pilots, 100)
    shown = {interval.name: interval for interval in fit_intervals(estimate)}
    assert list(shown) == ["a0", "b0", "c0", "a0 / b0"]
    assert estimate.bound is not None
    assert shown["a0"].estimate == estimate.bound.a0
    assert (shown["c0"].low, shown["c0"].high) == estimate.intervals["c0"]
    assert shown["a0 / b0"].estimate == estimate.ratio
    assert fit_data.panels[1].y.names == tuple(interval.label for interval in shown.values())
    assert [tuple(line.x) for line in intervals_of(fit_data)] == [
        interval.relative[::2] for interval in shown.values()
    ]


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
    panel = data.panels[1]
    points = [part for part in panel.parts if isinstance(part, Points)]
    arrows = [part for part in points if part.look.symbol == "triangle-right"]
    assert "c0" in [panel.y.names[int(part.y[0])].split(" = ")[0] for part in arrows]
    assert all(part.x[0] == panel.x.high for part in arrows)
    assert {line.x[1] for line in intervals_of(data)} >= {panel.x.high}


def test_pairs_of_pilots_are_drawn_in_the_pilots_own_units(pilots: list[Pilot]) -> None:
    estimate = estimate_bound(pilots, 100, method="pairwise")
    data = fit_figure_data(pilots, estimate, 100)
    assert [interval.name for interval in fit_intervals(estimate)] == ["a0 / b0"]
    assert data.panels[1].title == "Range over pairs of pilots"
    # Plausible ratios come with b0 = 1, far below the measurements.
    assert all((curve.low > 0.2 * curve.y).all() for curve in curves_of(data).values())


def test_at_most_eight_curves_are_drawn() -> None:
    pilots = [
        measured(clients, steps, 3000 + steps**2 * (1 + 20 / clients))
        for clients in range(1, 21)
        for steps in (5, 40)
    ]
    data = fit_figure_data(pilots, estimate_bound(pilots, 100), 100)
    clients = [*curves_of(data)]
    assert len(clients) == 8 and clients[0] == 1 and clients[-1] == 20


def test_without_a_fit_there_are_pilots_alone() -> None:
    pilots = [measured(3, 10, 400.0)] * 2
    data = fit_figure_data(pilots, estimate_bound(pilots, 100), 100)
    (panel,) = data.panels
    assert panel.title == "Pilots" and not curves_of(data)
    assert "Add a pilot" in data.note


def test_no_pilots_is_an_input_error(pilots: list[Pilot]) -> None:
    with pytest.raises(InputError, match="needs pilots"):
        fit_figure_data([], estimate_bound(pilots, 100), 100)
