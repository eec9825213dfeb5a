"""The study figure's data are the library's numbers; its drawings show them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.figures import Figure, Panel, draw_print, draw_screen, study_figure_data
from fedplan.figures.cost_view import CostView
from fedplan.figures.spec import Bars, Interval, Line, Points, Texts
from fedplan.figures.study import study_costs
from fedplan.participation.uniform import round_energy_j, round_time_s
from fedplan.planning.descent_surface import cheapest_setting, descent_surface
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.building import Experiment, build_experiment
from fedplan.studies.workflow import Outcome, run_study

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


def figure_of(experiment: Experiment, outcome: Outcome, **others: Any) -> Figure:
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


def panels_of(data: Figure) -> dict[str, Panel]:
    return {panel.name: panel for panel in data.panels}


def costs_of(
    experiment: Experiment, outcome: Outcome, others: dict[str, tuple[int, int] | None]
) -> CostView:
    assert experiment.fleet is not None and outcome.setting is not None
    problem = experiment.fleet, experiment.objective, experiment.constraints, outcome.descent
    found = study_costs(*problem, outcome.setting, outcome.pilots, others)
    assert found is not None
    return found


def test_pilots_are_shown_as_measured_and_as_fitted(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    panel = panels_of(figure_of(experiment, outcome))["pilots"]
    assert panel.y.log
    *lines, dashed, target = panel.lines
    assert dashed.name == "fitted, to the target"
    assert set(target.y) == {experiment.stop.target_loss}
    assert len({line.name for line in lines}) == len(lines)
    fits = {part.group: part for part in panel.parts if isinstance(part, Line) and part.group}
    for run, line in zip(outcome.pilots, lines, strict=True):
        assert line.name.startswith(f"K={run.clients_per_round}, E={run.local_steps}")
        assert line.y.tolist() == list(run.losses)
        fit = fits[line.name]
        expected = outcome.descent.rounds(run.clients_per_round, run.local_steps, fit.y)
        assert fit.x == pytest.approx(expected)
        assert fit.y[-1] == pytest.approx(experiment.stop.target_loss)
        assert (np.diff(fit.x) > 0).all() and (np.diff(fit.y) < 0).all()


def test_training_shows_the_prediction_and_the_mean_that_was_measured(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    panel = panels_of(figure_of(experiment, outcome))["training"]
    (predicted,) = [part for part in panel.parts if isinstance(part, Interval)]
    median, measured = [part for part in panel.parts if isinstance(part, Points)]
    assert measured.x[0] == pytest.approx(outcome.measured.rounds)
    assert (predicted.low, predicted.high) == outcome.forecast.rounds_interval
    assert median.x[0] == outcome.forecast.prediction.expected_rounds
    *runs, mean, _ = panel.lines
    seeds = [f"seed {run.seed}" for run in outcome.measured.runs]
    assert [line.hover.split(",")[0] for line in runs] == seeds
    # The mean line comes to the target where the runs do on average, to within a round.
    assert mean.y[-1] == pytest.approx(experiment.stop.target_loss)
    assert mean.x[-1] == pytest.approx(outcome.measured.rounds, abs=1.0)
    assert (np.diff(mean.x) >= 0).all()
    assert panel.x.has(predicted.high) and panel.x.has(float(measured.x[0]))


def test_the_surface_is_the_fitted_cost_over_the_lowest(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    fleet, objective, descent = experiment.fleet, experiment.objective, outcome.descent
    others = {"the paper's method": (20, 12), "best measured": (5, 40)}
    view = costs_of(experiment, outcome, others)
    assert view.clients.log and view.steps.log
    lowest = cheapest_setting(fleet, descent, objective)
    assert lowest is not None
    surface = descent_surface(fleet, descent, objective, view.clients_per_round, view.local_steps)
    near = surface.cost < 40 * lowest.cost
    expected = surface.cost[near] / lowest.cost - 1
    assert view.extra_cost[near] == pytest.approx(expected) and view.extra_cost.min() >= -1e-12
    places = {
        (mark.name, mark.role): (mark.clients_per_round, mark.local_steps) for mark in view.marks
    }
    assert places["chosen", "chosen"] == outcome.setting
    found = (lowest.clients_per_round, lowest.local_steps)
    assert places["lowest, as fitted", "lowest"] == found
    assert places["the paper's method", "paper"] == (20, 12)
    assert places["best measured", "other"] == (5, 40)
    pilots = [(run.clients_per_round, run.local_steps) for run in outcome.pilots]
    marked = [(m.clients_per_round, m.local_steps) for m in view.marks if m.role == "pilot"]
    assert marked == pilots and all(view.has(mark) for mark in view.marks)
    drawn = panels_of(figure_of(experiment, outcome, paper=(20, 12), best_measured=(5, 40)))["cost"]
    assert drawn.title == view.title and drawn.words == view.panel().words


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
    panel = panels_of(figure_of(experiment, outcome))["bill"]
    pilots, predicted, measured = [part for part in panel.parts if isinstance(part, Bars)]
    (whisker,) = [part for part in panel.parts if isinstance(part, Interval)]
    (written,) = [part for part in panel.parts if isinstance(part, Texts)]
    assert panel.x.label == f"cost ({experiment.objective.unit})"
    assert panel.y.names == ("pilots", "training,\npredicted", "training,\nmeasured")
    assert pilots.end[0] == outcome.pilots_bill.cost and not pilots.hatched
    assert measured.end[0] == outcome.measured.bill.cost and not measured.hatched
    assert predicted.end[0] == outcome.forecast.prediction.cost and predicted.hatched
    ends = outcome.forecast.interval(outcome.forecast.prediction.cost)
    assert (whisker.low, whisker.high) == pytest.approx(ends)
    assert written.x.tolist() == [pilots.end[0], whisker.high, measured.end[0]]
    for text, end in zip(written.texts, written.x.tolist(), strict=True):
        time, energy = text.splitlines()[1].split(", ")
        assert time.endswith((" s", " min")) and energy.endswith(" J")
        assert panel.x.has(end) and not text.startswith("→")


def test_a_prediction_far_beyond_what_was_paid_does_not_squash_the_bill(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    low, _ = outcome.forecast.rounds_interval
    far = replace(outcome.forecast, rounds_interval=(low, 1e9))
    data = figure_of(experiment, replace(outcome, forecast=far))
    bill, training = panels_of(data)["bill"], panels_of(data)["training"]
    (written,) = [part for part in bill.parts if isinstance(part, Texts)]
    assert written.texts[1].startswith("→")
    assert written.x[1] < 7 * outcome.measured.bill.cost
    (predicted,) = [part for part in training.parts if isinstance(part, Interval)]
    assert predicted.name.endswith("to 1e+09)")
    assert training.x.high < 7 * max(run.num_rounds for run in outcome.measured.runs)
    draw_print(data).draw_without_rendering()
    assert len(draw_screen(data).data) > 0


def test_joules_are_left_out_where_there_are_none(studies: Any) -> None:
    experiment, outcome = studies["demo"]
    begun = replace(outcome, forecast=None, measured=None)
    free = replace(begun, pilots_bill=replace(outcome.pilots_bill, energy_j=0.0))
    with_energy, without = (
        panels_of(figure_of(experiment, one))["bill"].words for one in (begun, free)
    )
    assert " J" in with_energy and " J" not in without


def test_what_a_study_did_not_come_to_is_left_out(studies: Any) -> None:
    def panels(case: str) -> tuple[list[str], int]:
        found = panels_of(figure_of(*studies[case]))
        return [*found], len(found["bill"].y.names)

    assert panels("demo") == (["pilots", "training", "cost", "bill"], 3)
    assert panels("the paper's pilots") == (["pilots", "training", "bill"], 2)
    assert panels("out of reach") == panels("infeasible") == (["pilots", "bill"], 1)
    paper = figure_of(*studies["the paper's pilots"])
    assert [len(row) for row in paper.rows] == [2, 1]
    found = panels_of(paper)
    assert "fitted" not in found["pilots"].words
    assert not any(isinstance(part, Interval) for part in found["training"].parts)


def test_training_that_did_not_arrive_is_not_said_to_have(studies: Any) -> None:
    experiment, outcome = studies["not reached"]
    found = panels_of(figure_of(experiment, outcome))
    training = found["training"]
    assert "measured" not in " ".join(part.name for part in training.parts)
    (mean,) = [line for line in training.lines if line.name == "their mean"]
    assert mean.y[-1] > experiment.stop.target_loss
    assert found["bill"].y.names[-1] == "training,\nnot reached"


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
