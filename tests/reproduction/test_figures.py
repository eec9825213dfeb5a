"""The figures of a reproduction: their panels, from tables alone, and the tables themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedplan.core.records import RoundRecord, RunRecord
from fedplan.errors import InputError
from fedplan.figures import Figure, draw_print
from fedplan.figures.spec import Line, Points, Texts
from fedplan.participation import uniform
from fedplan_reproduction.curves import curve_points
from fedplan_reproduction.folder import draw
from fedplan_reproduction.grid import TrainedGrid
from fedplan_reproduction.panels import cost_panel, training_figure, weights_figure
from fedplan_reproduction.published import FIGURES
from fedplan_reproduction.tables import TrainedRun, read_rows, write_rows
from fedplan_reproduction.weights import BEST, FEDPLAN, PAPER, Priced

WEIGHTS = (0.0, 0.45, 1.0)
NEVER = (math.inf,) * 3
NAMES = (
    "clients_per_round", "local_steps", "seed", "status", "rounds", "time_s", "energy_j",
    "test_accuracy",
)  # fmt: skip


def priced(method, relative, pair=(None, None), error=0.0):
    """What a method costs at each weight, where the lowest cost measured is 2."""
    return [
        Priced(
            energy_weight=weight,
            method=method,
            clients_per_round=pair[0],
            local_steps=pair[1],
            cost=2.0 * ratio,
            error=2.0 * error,
            time_s=10.0 * ratio,
            energy_j=3.0 * ratio,
            relative_cost=ratio,
            rounds=100.0 * ratio,
        )
        for weight, ratio in zip(WEIGHTS, relative, strict=True)
    ]


ROWS = [
    TrainedRun(**dict(zip(NAMES, (k, e, seed, "target", 9, k + e + seed, k * e, 0.9), strict=True)))
    for k in (1, 4)
    for e in (10, 20, 40)
    for seed in (0, 1)
]
LOST = TrainedRun(**dict(zip(NAMES, (9, 10, 0, "rounds", 9, 1.0, 1.0, None), strict=True)))


CLOSE = [
    TrainedRun(**dict(zip(NAMES, (5, e, 0, "target", 9, 4.6 + e, 5 * e, 0.9), strict=True)))
    for e in (10, 40)
]
EARLY = TrainedRun(**dict(zip(NAMES, (7, 10, 0, "target", 9, 12.0, 70.0, 0.9), strict=True)))


def lines_of(panel):
    """The lines that have a name."""
    return [part for part in panel.parts if isinstance(part, Line) and part.name]


def named(panel):
    """The lines of a panel by what stands at their ends, or in the legend."""
    found = {line.name: line for line in lines_of(panel)}
    unnamed = [part for part in panel.parts if isinstance(part, Line) and not part.name]
    for text in (part for part in panel.parts if isinstance(part, Texts)):
        found[text.texts[0]] = next(line for line in unnamed if line.colour == text.colour)
    return found


def drawn(data: Figure) -> Figure:
    """The same, once it is drawn."""
    draw_print(data).draw_without_rendering()
    return data


def test_rows_are_read_as_they_were_written(tmp_path):
    write_rows(tmp_path / "runs.csv", TrainedRun, [*ROWS, LOST])
    assert read_rows(tmp_path / "runs.csv", TrainedRun) == [*ROWS, LOST]
    plans = priced(PAPER, NEVER, (4, 20))
    write_rows(tmp_path / "plans.csv", Priced, plans)
    assert read_rows(tmp_path / "plans.csv", Priced) == plans
    with pytest.raises(InputError, match="cannot be read again"):
        read_rows(tmp_path / "runs.csv", Priced)


def test_cost_over_k_and_e_has_every_setting_that_arrives_and_marks_every_method():
    plans = [
        *priced(FEDPLAN, (0.5,) * 3),
        *priced(PAPER, (7.0,) * 3, (4, 20)),
        *priced(BEST, (1.0,) * 3, (1, 10)),
    ]
    summaries = [row.summary for row in (*ROWS, LOST)]
    panel = cost_panel(summaries, plans, 0.0, title="", published=FIGURES["setup1"])
    lines = named(panel)
    assert "K=9" not in lines
    assert lines["K=4"].x.tolist() == [10, 20, 40] and lines["K=4"].y.tolist() == [14.5, 24.5, 44.5]
    assert lines["fedplan, 1"].y.tolist() == [1.0, 1.0]
    assert {"published best, 141.5", "published plan, 145.2"} < lines.keys()
    spots = {part.name: (part.x[0], part.y[0]) for part in panel.parts if isinstance(part, Points)}
    assert spots == {
        "paper's plan: K=4, E=20, 14": (20, 14),
        "best measured: K=1, E=10, 2": (10, 2),
    }
    energy = cost_panel(summaries, plans, 1.0, title="")
    assert named(energy)["K=4"].y.tolist() == [40, 80, 160]


def test_names_of_lines_that_end_side_by_side_stand_apart_and_those_that_end_early_in_the_legend():
    summaries = [row.summary for row in (*ROWS, *CLOSE, EARLY)]
    panel = cost_panel(summaries, priced(PAPER, (7.0,) * 3, (4, 20)), 0.0, title="")
    texts = [part for part in panel.parts if isinstance(part, Texts)]
    assert {part.texts[0] for part in texts} == {"K=1", "K=4", "K=5"}
    assert [line.name for line in lines_of(panel)] == ["K=7"]
    places = np.sort(panel.y.shares([part.y[0] for part in texts]))
    assert np.diff(places).min() > 0.04
    ends = panel.y.shares([line.y[-1] for line in named(panel).values()])
    assert np.abs(places - np.sort(ends)[-3:]).max() < 0.1


def test_figure_5_has_five_panels_and_leaves_out_what_never_arrives():
    plans = [
        *priced(FEDPLAN, (0.5, 0.6, 0.7), error=0.02),
        *priced(PAPER, (1.5, math.inf, 1.2), (4, 20)),
        *priced(BEST, (1.0,) * 3, (1, 10)),
    ]
    summaries = [row.summary for row in ROWS]
    data = drawn(weights_figure(summaries, plans, title="mine", note=""))
    assert [panel.title[:3] for panel in data.panels] == ["(a)", "(b)", "(c)", "(d)", "(e)"]
    ours, paper, _ = lines_of(data.panels[3])
    assert ours.y.tolist() == [0.5, 0.6, 0.7] and ours.high == pytest.approx([0.52, 0.62, 0.72])
    assert math.isnan(paper.y[1])
    assert lines_of(data.panels[4])[0].x.tolist() == pytest.approx([5.0, 6.0, 7.0])
    lost = [*plans[:3], *priced(PAPER, NEVER), *plans[6:]]
    last = drawn(weights_figure(summaries, lost, title="", note="")).panels[-1]
    assert [line.name for line in lines_of(last)] == [FEDPLAN, BEST]


def run_of(k, e, seed, losses):
    return RunRecord(
        setting=uniform(k, e),
        seed=seed,
        status="target",
        rounds=tuple(
            RoundRecord(round=r, loss=loss, test_accuracy=1 - loss / 4, seconds=float(bool(r)))
            for r, loss in enumerate(losses)
        ),
    )


def test_curves_are_means_over_seeds_that_end_where_half_of_the_runs_have():
    runs = (run_of(2, 5, 0, [2.0, 1.0]), run_of(2, 5, 1, [2.0, 1.5, 1.0]), run_of(2, 9, 0, [2, 1]))
    grid = TrainedGrid(summaries={}, runs=[], shown=runs, shown_clients=2, shown_steps=5)
    points = curve_points(grid, {FEDPLAN: [run_of(1, 1, 0, [2.0, 0.5])]})
    found = {
        panel: list(dict.fromkeys(point.line for point in points if point.panel == panel))
        for panel in "abde"
    }
    both, one = ["K=2, E=5", "K=2, E=9", FEDPLAN], ["K=2, E=5", FEDPLAN]
    assert found == {"a": both, "b": one, "d": both, "e": one}
    line = [point for point in points if (point.panel, point.line) == ("a", "K=2, E=5")]
    assert line[0].value == 2.0 and line[-1].seconds == 1.5
    assert line[-1].value == pytest.approx((1.0 + 1.25) / 2)
    figure = training_figure(
        points, [row.summary for row in ROWS], [], FIGURES["setup1"], target_loss=1.0, title="",
        note="",
    )  # fmt: skip
    assert [panel.title[:3] for panel in drawn(figure).panels] == [f"({x})" for x in "abcde"]


def test_a_line_without_two_points_is_left_out():
    runs = (run_of(2, 5, 0, [2.0]),)
    grid = TrainedGrid(summaries={}, runs=[], shown=runs, shown_clients=2, shown_steps=5)
    assert curve_points(grid, {}) == []


def test_a_folder_of_another_setup_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read again"):
        draw(tmp_path, "setup1")
