"""The study figure's data are the library's numbers; its drawings show them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.figures import StudyFigure, draw_print, draw_screen, study_figure_data
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.building import Experiment, build_experiment
from fedplan.studies.workflow import Outcome, run_study
from fedplan.theory.cost import round_energy_j, round_time_s
from fedplan.theory.descent_surface import cheapest_setting, descent_surface

PAPER = ("pilots=paper", "pairs=[[5, 10], [10, 20], [15, 60]]", "upper-loss=1.8", "lower-loss=0.9")
CASES = {
    "demo": (),
    "one seed": ("seeds=1",),
    "not reached": ("rounds=14", "seeds=2"),
    "the paper's pilots": PAPER,
    "energy": ("energy-weight=1.0",),
    "a deadline": ("deadline-s=500",),
    "out of reach": ("target-loss=0.001", "rounds=30"),
    "infeasible": ("deadline-s=3",),
    "prices": ("price-hour=3", "price-kwh=0.3"),
}


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Experiment, Outcome]]:
    """Every case, run; those of equal settings share their runs."""
    done = {}
    with Store(f"sqlite:///{tmp_path_factory.mktemp('studies')}/runs.db") as store:
        for name, overrides in CASES.items():
            experiment = build_experiment(read_study("demo", overrides))
            done[name] = experiment, run_study(experiment, store)
    return done


def figure_of(experiment: Experiment, outcome: Outcome, **others: Any) -> StudyFigure:
    measured = outcome.measured
    assert experiment.fleet is not None and experiment.stop.target_loss is not None
    return study_figure_data(
        experiment.fleet,
        experiment.objective,
        name="demo",
        target_loss=experiment.stop.target_loss,
        constraints=experiment.constraints,
        pilots=outcome.pilots,
        pilots_bill=outcome.pilots_bill,
        descent=outcome.descent,
        setting=outcome.setting,
        forecast=outcome.forecast,
        runs=() if measured is None else measured.runs,
        training_bill=None if measured is None else measured.bill,
        note=outcome.message,
        **others,
    )


def test_pilots_are_shown_as_measured_and_as_fitted(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    panel = figure_of(experiment, outcome).pilots
    assert panel is not None and panel.fitted and panel.loss.log
    assert panel.target_loss == experiment.stop.target_loss
    assert len({line.name for line in panel.lines}) == len(panel.lines)
    for run, line in zip(outcome.pilots, panel.lines, strict=True):
        assert line.name.startswith(f"K={run.clients_per_round}, E={run.local_steps}")
        assert line.measured.losses.tolist() == list(run.losses)
        expected = outcome.descent.rounds(run.clients_per_round, run.local_steps, line.fit)
        assert line.fit_at == pytest.approx(expected)
        assert line.fit[-1] == pytest.approx(experiment.stop.target_loss)
        assert (np.diff(line.fit_at) > 0).all() and (np.diff(line.fit) < 0).all()


def test_training_shows_the_prediction_and_the_mean_that_was_measured(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    panel = figure_of(experiment, outcome).training
    assert panel is not None and panel.predicted is not None
    assert panel.measured == pytest.approx(outcome.measured.rounds)
    assert (panel.predicted.low, panel.predicted.high) == outcome.forecast.rounds_interval
    assert panel.predicted.median == outcome.forecast.prediction.expected_rounds
    assert [line.seed for line in panel.lines] == [run.seed for run in outcome.measured.runs]
    # The mean line comes to the target where the runs do on average, to within a round.
    assert panel.mean[-1] == pytest.approx(experiment.stop.target_loss)
    assert panel.mean_at[-1] == pytest.approx(outcome.measured.rounds, abs=1.0)
    assert (np.diff(panel.mean_at) >= 0).all()
    assert panel.rounds.has(panel.predicted.high) and panel.rounds.has(panel.measured)


def test_the_surface_is_the_fitted_cost_over_the_lowest(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    fleet, objective, descent = experiment.fleet, experiment.objective, outcome.descent
    panel = figure_of(experiment, outcome, paper=(20, 12), best_measured=(5, 40)).cost
    assert panel is not None and panel.clients.log and panel.steps.log
    lowest = cheapest_setting(fleet, descent, objective)
    assert lowest is not None
    surface = descent_surface(fleet, descent, objective, panel.clients_per_round, panel.local_steps)
    near = surface.cost < 40 * lowest.cost
    expected = surface.cost[near] / lowest.cost - 1
    assert panel.extra_cost[near] == pytest.approx(expected) and panel.extra_cost.min() >= -1e-12
    places = {
        (mark.name, mark.role): (mark.clients_per_round, mark.local_steps) for mark in panel.marks
    }
    assert places["chosen", "chosen"] == outcome.setting
    found = (lowest.clients_per_round, lowest.local_steps)
    assert places["lowest, as fitted", "lowest"] == found
    assert places["the paper's method", "paper"] == (20, 12)
    assert places["best measured", "other"] == (5, 40)
    pilots = [(run.clients_per_round, run.local_steps) for run in outcome.pilots]
    marked = [(m.clients_per_round, m.local_steps) for m in panel.marks if m.role == "pilot"]
    assert marked == pilots and all(panel.has(mark) for mark in panel.marks)


@pytest.mark.parametrize("case", ["demo", "a deadline", "energy"])
def test_the_lowest_is_the_cheapest_of_all_that_is_allowed(studies: Any, case: str) -> None:
    experiment, outcome = studies[case]
    fleet, objective, descent = experiment.fleet, experiment.objective, outcome.descent
    limits = experiment.constraints
    found = cheapest_setting(fleet, descent, objective, limits)
    assert found is not None
    fewest, _, least, most = descent.reach
    ks, es = np.arange(fewest, 21), np.arange(least, most + 1)
    surface = descent_surface(fleet, descent, objective, ks, es)
    met = limits.met(surface.time_s, surface.energy_j, surface.expected_rounds)
    assert found.cost == pytest.approx(surface.cost[met].min())
    k, e = found.clients_per_round, found.local_steps
    rounds = float(descent.rounds(k, e))
    assert found.expected_rounds == rounds
    assert found.time_s == pytest.approx(rounds * round_time_s(fleet, k, e))
    assert found.energy_j == pytest.approx(rounds * float(round_energy_j(fleet, k, e)))


def test_the_bill_has_what_pilots_and_training_cost(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    expected = outcome.forecast.prediction.expected_rounds
    near = replace(outcome.forecast, rounds_interval=(0.7 * expected, 1.5 * expected))
    outcome = replace(outcome, forecast=near)
    panel = figure_of(experiment, outcome).bill
    pilots, predicted, measured = panel.bars
    assert panel.cost.label == f"cost ({experiment.objective.unit})"
    assert pilots.cost == outcome.pilots_bill.cost and not pilots.predicted
    assert measured.cost == outcome.measured.bill.cost
    assert predicted.cost == outcome.forecast.prediction.cost
    assert predicted.interval == outcome.forecast.interval(predicted.cost)
    for bar in panel.bars:
        time, energy = panel.text(bar).splitlines()[1].split(", ")
        assert time.endswith((" s", " min")) and energy.endswith(" J")
        assert panel.end(bar) == max(bar.cost, *(bar.interval or (0.0,)), 0.0)
        assert panel.cost.has(panel.end(bar)) and not panel.goes_on(bar)


def test_a_prediction_far_beyond_what_was_paid_does_not_squash_the_bill(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    low, _ = outcome.forecast.rounds_interval
    far = replace(outcome.forecast, rounds_interval=(low, 1e9))
    data = figure_of(experiment, replace(outcome, forecast=far))
    predicted, measured = data.bill.bars[1:]
    assert data.bill.goes_on(predicted) and data.bill.text(predicted).startswith("→")
    assert data.bill.end(predicted) < 7 * measured.cost
    assert data.training is not None and data.training.predicted is not None
    assert data.training.predicted.name.endswith("to 1e+09)")
    assert data.training.rounds.high < 7 * max(run.num_rounds for run in outcome.measured.runs)
    draw_print(data).draw_without_rendering()
    assert len(draw_screen(data).data) > 0


def test_joules_are_left_out_where_there_are_none(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    bar = figure_of(experiment, outcome).bill.bars[0]
    assert "J" in bar.text(with_energy=True) and "J" not in bar.text(with_energy=False)


def test_what_a_study_did_not_come_to_is_left_out(studies: Any) -> None:
    def panels(case: str) -> tuple[bool, bool, int]:
        data = figure_of(*studies[case])
        return data.training is not None, data.cost is not None, len(data.bill.bars)

    assert panels("demo") == (True, True, 3)
    assert panels("the paper's pilots") == (True, False, 2)
    assert panels("out of reach") == panels("infeasible") == (False, False, 1)
    paper = figure_of(*studies["the paper's pilots"])
    assert paper.rows == (2, 1) and paper.pilots is not None and not paper.pilots.fitted
    assert paper.training is not None and paper.training.predicted is None


def test_training_that_did_not_arrive_is_not_said_to_have(studies: Any) -> None:
    data = figure_of(*studies["not reached"])
    assert data.training is not None and data.training.measured is None
    assert data.training.mean.size and data.training.mean[-1] > data.training.target_loss
    assert data.bill.bars[-1].name == "training,\nnot reached"


@pytest.mark.parametrize("case", CASES)
def test_both_drawings_have_a_panel_for_everything_there_is(studies: Any, case: str) -> None:
    data = figure_of(*studies[case])
    figure = draw_print(data)
    figure.draw_without_rendering()
    titles = [axes.get_title("left") for axes in figure.axes if axes.get_title("left")]
    assert titles == [panel.title for panel in data.panels]
    screen = draw_screen(data)
    assert [note.text for note in screen.layout.annotations][: len(titles)] == titles
    assert len({trace.xaxis for trace in screen.data}) == len(data.panels)
    for trace in screen.data:
        assert all(x is None or math.isfinite(x) for x in np.ravel(trace.x).tolist())


@pytest.mark.parametrize("case", CASES)
def test_legends_cover_no_curve_and_nothing_leaves_the_paper(studies: Any, case: str) -> None:
    data = figure_of(*studies[case])
    figure = draw_print(data)
    for _ in range(2):  # as for a file: the layout of the second has settled
        figure.draw_without_rendering()
    width, height = figure.get_size_inches() * figure.dpi
    for axes in figure.axes:
        texts = [text for text in axes.texts if text.get_text()]
        boxes = [text.get_window_extent() for text in texts]
        if (legend := axes.get_legend()) is not None:
            boxes.append(legend.get_window_extent())
        for box in boxes:
            assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width + 1 and box.y1 <= height
        if legend is not None and axes.get_ylabel() == "training loss" and case != "out of reach":
            area = legend.get_window_extent()
            for line in axes.lines:
                if len(line.get_xdata()) > 2:
                    points = axes.transData.transform(np.column_stack(line.get_data()))
                    inside = [area.contains(*point) for point in points]
                    assert not any(inside), line.get_label()


def test_a_study_without_any_loss_cannot_be_drawn(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    with pytest.raises(InputError, match="at least one loss"):
        study_figure_data(
            experiment.fleet,
            experiment.objective,
            name="demo",
            target_loss=0.6,
            pilots=(),
            pilots_bill=outcome.pilots_bill,
        )
