"""The study figure's data are the study's numbers; its drawings show them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scripted import follow_script

from fedplan.errors import InputError
from fedplan.figures import draw_print, draw_screen
from fedplan.figures.spec import Boxes, Line, Points, Texts
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment
from fedplan.studies.figures import outcome_figure
from fedplan.studies.workflow import run_study

PAPER = ("course=paper", "pairs=[[5, 10], [10, 20], [15, 60]]", "upper-loss=1.8", "lower-loss=0.9")
CASES = {
    "demo": (),
    "one seed": ("seeds=1",),
    "not reached": ("rounds=14", "seeds=2", "target-loss=0.1"),
    "turns": ("participation=turns", "seeds=2"),
    "uniform": ("participation=uniform", "seeds=2"),
    "paper": PAPER,
    "energy": ("energy-weight=1.0",),
    "prices": ("price-hour=3", "price-kwh=0.3"),
    "pilots alone": (*PAPER[:2], "upper-loss=1.8", "lower-loss=0.001", "rounds=20"),
}


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Every case, run by a course of given decisions; those of equal settings share their runs."""
    done = {}
    with pytest.MonkeyPatch.context() as patch:
        follow_script(patch, foretold=(60.0, (30.0, 90.0)))
        with Store(f"sqlite:///{tmp_path_factory.mktemp('studies')}/runs.db") as store:
            for name, overrides in CASES.items():
                experiment = build_experiment(read_study("demo", overrides))
                done[name] = experiment, run_study(experiment, store)
    return done


def panels_of(data):
    found = {}
    for panel in data.panels:
        found.setdefault(panel.name, panel)
    return found


def parts_of(panel, kind, name=None):
    return [p for p in panel.parts if isinstance(p, kind) and (name is None or p.name == name)]


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_drawn_for_print_and_for_the_screen(studies, name):
    data = outcome_figure(*studies[name])
    assert draw_print(data).get_axes() and draw_screen(data).data


@pytest.mark.parametrize(
    ("name", "panels"),
    [
        ("demo", {"training", "steps", "turns", "bill", ""}),
        ("not reached", {"training", "steps", "bill"}),
        ("turns", {"training", "turns", "bill", ""}),
        ("uniform", {"training", "bill"}),
        ("paper", {"training", "bill"}),
    ],
)
def test_what_a_study_did_not_come_to_has_no_panel(studies, name, panels):
    assert {panel.name for panel in outcome_figure(*studies[name]).panels} == panels


@pytest.mark.parametrize("name", ["demo", "energy", "prices"])
def test_losses_stand_over_what_had_been_paid(studies, name):
    experiment, outcome = studies[name]
    panel = panels_of(outcome_figure(experiment, outcome))["training"]
    first = outcome.measured.runs[0]
    (line,) = parts_of(panel, Line, f"seed {first.seed}")
    bill = experiment.objective.of_round(first.time_s, first.energy_j, first.taken_part)
    assert line.x[-1] == pytest.approx(float(bill)) and line.x[0] == 0
    assert line.y[-1] == first.final_loss
    assert len(parts_of(panel, Line, "other seeds")) == len(outcome.measured.runs) - 1


def test_marks_stand_where_decisions_changed(studies):
    experiment, outcome = studies["demo"]
    panel = panels_of(outcome_figure(experiment, outcome))["training"]
    (marks,) = parts_of(panel, Points, "re-planned")
    first = outcome.measured.runs[0]
    paid = np.cumsum([record.seconds for record in first.rounds])
    assert marks.x == pytest.approx([paid[5], paid[10]])
    assert marks.y.tolist() == [first.rounds[5].loss, first.rounds[10].loss]
    assert marks.hover[0] == "from round 6: 4 groups, 40 local steps"


def test_local_steps_are_those_of_every_round(studies):
    panel = panels_of(outcome_figure(*studies["one seed"]))["steps"]
    (line,) = parts_of(panel, Line)
    assert line.y[:10].tolist() == [20.0] * 10 and line.x[:4].tolist() == [0.0, 1.0, 1.0, 2.0]
    assert line.y[10] == 40 and line.y[-1] == 30


def test_the_end_foretold_is_an_interval_at_the_target(studies):
    experiment, outcome = studies["one seed"]
    panel = panels_of(outcome_figure(experiment, outcome))["training"]
    (interval,) = parts_of(panel, Line, "the end, as predicted")
    expected = outcome.forecast.interval_of(outcome.forecast.bill.cost)
    assert set(interval.y) == {experiment.stop.target_loss} and interval.x[0] == expected[0]
    assert interval.x[1] <= expected[1]


def test_the_bill_is_all_in_and_stands_beside_others(studies):
    experiment, outcome = studies["energy"]
    panels = [p for p in outcome_figure(experiment, outcome).panels if p.name == "bill"]
    ends = parts_of(panels[-1], Boxes)[0].right.tolist()
    others = [other.prediction.cost for other in outcome.alternatives]
    assert ends == pytest.approx([outcome.all_in.cost, *others])
    (written,) = parts_of(panels[-1], Texts)
    assert len(written.texts) == 4 and panels[0].y.names[0].startswith("trained, all in")


def test_the_papers_bill_has_pilots_and_training(studies):
    experiment, outcome = studies["paper"]
    (panel, *_) = [p for p in outcome_figure(experiment, outcome).panels if p.name == "bill"]
    assert [name.partition("\n")[0] for name in panel.y.names] == ["all in", "pilots", "training"]
    ends = parts_of(panel, Boxes)[0].right.tolist()
    assert ends[0] == pytest.approx(ends[1] + ends[2])


def test_a_figure_needs_a_loss(studies):
    experiment, outcome = studies["demo"]
    runs = tuple(replace(run, rounds=()) for run in outcome.measured.runs)
    silent = replace(outcome, measured=replace(outcome.measured, runs=runs))
    with pytest.raises(InputError, match="at least one loss"):
        outcome_figure(experiment, silent)
