"""Notebook habits: how results show themselves, become frames, and are plotted."""

from __future__ import annotations

import html
import pickle
import re
import sys

import pytest
from planned import make_plan, problem_of, sensitivity

import fedplan
from fedplan import Bound, Constraints, Fleet, Pilot, figures
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.errors import InputError, MissingExtraError
from fedplan.notebook import Rows
from fedplan.participation import uniform
from fedplan.planning.frontier import FrontierPoint
from fedplan.planning.sensitivity import WhatIf

FLEET = Fleet(
    step_time_s=[0.1, 0.2, 0.4],
    comm_time_s=[2.0, 1.0, 3.0],
    step_energy_j=0.5,
    comm_energy_j=2.0,
    count=[3, 1, 2],
    device=["<b>", "two", "three"],
)
BOUND = Bound(a0=1000.0, b0=1.0, c0=10.0)
PLAN = make_plan(FLEET, BOUND, energy_weight=0.2)
NONE = make_plan(FLEET, BOUND, constraints=Constraints(deadline_s=1e-3))
PILOTS = [
    Pilot(clients_per_round=k, local_steps=e, upper_loss=1.5, lower_loss=1.3,
          rounds_to_upper=a, rounds_to_lower=b)
    for k, e, a, b in [(3, 30, 40, 70), (20, 20, 60, 98), (20, 45, 40, 66), (3, 70, 30, 62)]
]  # fmt: skip
ESTIMATE = fedplan.estimate_bound(PILOTS, 100)
FRONTIER = fedplan.compute_frontier(FLEET, BOUND)
CASES = sensitivity(FLEET, BOUND, PLAN, energy_weight=0.2)
ROUNDS = [
    RoundRecord(round=r, loss=None if r == 1 else 2.0 / (1 + r), accuracy=None,
                cohort=(1, 2) if r else (), seconds=1.5 * bool(r), joules=0.0)
    for r in range(4)
]  # fmt: skip
RUN = RunRecord(setting=uniform(2, 5), seed=7, status="target", rounds=tuple(ROUNDS))
HOSTILE = RunRecord(
    setting=uniform(2, 5), seed=7, status="unavailable", rounds=(),
    message="<script>alert(1)</script>",
)  # fmt: skip
SHOWN = [PLAN, NONE, FLEET, BOUND, ESTIMATE, FRONTIER, CASES, RUN, HOSTILE]


def cells(page):
    """What a reader sees of a table, cell by cell."""
    return [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", page)]


@pytest.mark.parametrize("value", SHOWN, ids=lambda value: type(value).__name__)
def test_reprs_are_one_short_line_and_html_is_small_and_safe(value):
    assert len(repr(value)) < 300 and "\n" not in repr(value)
    page = value._repr_html_()
    assert len(page) < 12_000 and page.count("<table") == page.count("</table>") == 1
    assert not re.search(r"<script|<style|https?:|colou?r:(?! inherit)|src=", page)


def test_what_is_shown_is_what_was_found():
    clients, steps = PLAN.setting.pair
    assert repr(PLAN).startswith(
        f"<Plan: participation uniform, clients_per_round {clients}, local_steps {steps}, "
    )
    assert repr(NONE) == "<Plan: status infeasible (exact)>"
    shown = cells(PLAN._repr_html_())
    assert shown[shown.index("local_steps") + 1] == str(steps)
    assert NONE.message.split(".")[0] in NONE._repr_html_()
    low, high = ESTIMATE.intervals["a0"]
    assert f"a0 {ESTIMATE.bound.a0:,.4g} ({low:,.4g} to {high:,.4g})" in repr(ESTIMATE)
    assert cells(FLEET._repr_html_())[7:9] == ["step_time_s", "0.2167"]
    assert repr(FRONTIER) == f"<{len(FRONTIER)} rows of FrontierPoint>"
    assert "&lt;script&gt;" in HOSTILE._repr_html_()


def test_a_table_shows_its_first_rows_and_says_how_many_more():
    case = WhatIf(name="<i>", clients_per_round=1, local_steps=2, regret=0.5)
    page = Rows([case] * 50, WhatIf)._repr_html_()
    assert page.count("&lt;i&gt;") == 20 and "... and 30 more" in page
    assert "<i>" not in page


def test_rows_are_still_a_list():
    assert list(FRONTIER) == FRONTIER and isinstance(FRONTIER[0], FrontierPoint)
    again = pickle.loads(pickle.dumps(FRONTIER))  # noqa: S301
    assert again == FRONTIER and repr(again) == repr(FRONTIER)
    assert fedplan.compute_frontier(FLEET, BOUND, constraints=Constraints(deadline_s=1e-3)) == []


FRAMES = {
    "fleet": (FLEET.to_frame, "count", [3, 1, 2]),
    "frontier": (FRONTIER.to_frame, "time_s", [point.time_s for point in FRONTIER]),
    "none": (Rows((), FrontierPoint).to_frame, "local_steps", []),
    "sensitivity": (CASES.to_frame, "regret", [case.regret for case in CASES]),
    "run": (RUN.to_frame, "seconds", [0.0, 1.5, 1.5, 1.5]),
}


@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize("name", FRAMES)
def test_tables_become_frames_of_what_is_installed(monkeypatch, library, name):
    installed = pytest.importorskip(library)
    if library == "pandas":
        monkeypatch.setitem(sys.modules, "polars", None)
    make, column, values = FRAMES[name]
    frame = make()
    assert isinstance(frame, installed.DataFrame)
    assert list(frame[column]) == values and frame.shape[0] == len(values)


def test_a_surface_becomes_a_row_a_setting():
    pytest.importorskip("polars")
    objective = fedplan.Objective.weighted(0.5)
    surface = fedplan.cost_surface(FLEET, BOUND, objective, [1, 2], [3, 4, 5])
    frame = surface.to_frame()
    for row in zip(*(frame[name] for name in ("clients_per_round", "local_steps", "cost")),
                   strict=True):  # fmt: skip
        k, e, cost = row
        expected = fedplan.predict(FLEET, BOUND, objective, int(k), int(e))
        assert cost == pytest.approx(expected.cost)


def test_without_a_library_the_line_to_type_is_said(monkeypatch):
    for library in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fedplan\[frames\]'"):
        FLEET.to_frame()


PLOTS = {
    "plan": lambda **kind: figures.plot_plan(PLAN, problem_of(FLEET, 0.2), BOUND, **kind),
    "frontier": lambda **kind: figures.plot_frontier(FRONTIER, **kind),
    "fit": lambda **kind: figures.plot_fit(ESTIMATE, PILOTS, 100, **kind),
    "convergence": lambda **kind: figures.plot_convergence([RUN], target_loss=0.6, **kind),
    "costs": lambda **kind: figures.plot_costs({(1, 5): 3.0, (2, 5): 2.0}, **kind),
}


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_is_called_the_same_way(name):
    from matplotlib.figure import Figure
    from plotly.graph_objects import Figure as ScreenFigure

    screen, paper = PLOTS[name](), PLOTS[name](backend="matplotlib")
    assert isinstance(screen, ScreenFigure) and screen.data
    assert isinstance(paper, Figure) and paper.axes
    with pytest.raises(InputError, match="'plotly' or 'matplotlib', but got 'bokeh'"):
        PLOTS[name](backend="bokeh")


def test_every_plot_is_exported():
    exported = {name for name in figures.__all__ if name.startswith("plot_")}
    assert exported == {f"plot_{name}" for name in PLOTS}


def test_an_outcome_shows_what_a_study_came_to(tmp_path):
    from fedplan.store import Store
    from fedplan.studies import read_study
    from fedplan.studies.experiment import build_experiment
    from fedplan.studies.workflow import run_study

    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        outcome = run_study(build_experiment(read_study("demo", ["seeds=1"])), store)
    assert repr(outcome).startswith("<Outcome: status reached, course online, began with ")
    assert html.escape(outcome.message) in outcome._repr_html_()
