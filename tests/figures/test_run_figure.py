"""The run figure's data, and its drawings."""

from __future__ import annotations

import numpy as np
import pytest

from fedplan.core.records import RoundRecord, RunRecord, Status
from fedplan.errors import InputError
from fedplan.figures import Panel, draw_print, draw_screen, run_figure_data
from fedplan.figures.spec import Line
from fedplan.participation import uniform


def run_of(
    losses: list[float | None],
    seed: int = 0,
    status: Status = "rounds",
    seconds: float = 0.0,
    joules: float = 0.0,
) -> RunRecord:
    rounds = tuple(
        RoundRecord(
            round=r,
            loss=loss,
            accuracy=None,
            cohort=(),
            seconds=seconds if r else 0.0,
            joules=joules if r else 0.0,
        )
        for r, loss in enumerate(losses)
    )
    return RunRecord(setting=uniform(3, 7), seed=seed, status=status, rounds=rounds)


def named_lines(panel: Panel) -> list[Line]:
    return [part for part in panel.parts if isinstance(part, Line) and part.name]


def lines_of(panel: Panel) -> list[Line]:
    """The lines of the runs."""
    return [line for line in named_lines(panel) if not line.name.startswith(("median", "target"))]


def median_of(panel: Panel) -> Line | None:
    return next((line for line in named_lines(panel) if line.name == "median"), None)


def test_panels_are_those_the_runs_have_numbers_for() -> None:
    def labels(**costs: float) -> list[str]:
        data = run_figure_data([run_of([2.0, 1.0], **costs)], name="mine")
        return [panel.x.label for panel in data.panels]

    assert labels() == ["round"]
    assert labels(seconds=400.0) == ["round", "time (min)"]
    assert labels(seconds=9.0, joules=5e3) == ["round", "time (s)", "energy (kJ)"]


def test_a_line_is_the_losses_at_their_rounds_seconds_and_joules() -> None:
    run = run_of([2.0, None, 1.0, 0.5], seconds=3.0, joules=2.0)
    rounds, time, energy = run_figure_data([run], name="mine").panels
    for panel, at in ((rounds, [0, 2, 3]), (time, [0, 6, 9]), (energy, [0, 4, 6])):
        (line,) = lines_of(panel)
        assert line.x.tolist() == at and line.y.tolist() == [2.0, 1.0, 0.5]
        assert median_of(panel) is None  # one run is its own median


def test_the_median_keeps_the_last_loss_of_runs_that_ended_and_ends_with_half_of_them() -> None:
    runs = [
        run_of([4.0, 1.0], 0, "target"),
        run_of([4.0, 3.0, 1.0], 1, "target"),
        run_of([4.0, 3.5, 3.0, 1.0], 2, "target"),
    ]
    panel = run_figure_data(runs, name="mine", target_loss=1.0).panels[0]
    median = median_of(panel)
    assert median is not None
    assert median.x.tolist() == [0, 1, 2] and median.y.tolist() == [4.0, 3.0, 1.0]


def test_a_run_that_diverged_counts_as_infinite() -> None:
    good = [run_of([4.0, 2.0, 1.0], seed) for seed in (0, 1)]
    panel = run_figure_data([*good, run_of([4.0], 2, "diverged")], name="mine").panels[0]
    assert [line.name == "diverged" for line in lines_of(panel)] == [False, False, True]
    median = median_of(panel)
    assert median is not None and median.y.tolist() == [4.0, 2.0, 1.0]
    most = run_figure_data([good[0], *[run_of([4.0], s, "diverged") for s in (1, 2)]], name="mine")
    assert median_of(most.panels[0]) is None


def test_everything_is_on_the_axes() -> None:
    runs = [run_of([2.3, 9.0, 0.4 + s / 10], s, seconds=50.0 + s) for s in range(4)]
    data = run_figure_data(runs, name="mine", target_loss=0.1)
    for panel in data.panels:
        assert panel.y.has(9.0) and panel.y.has(0.1) and panel.y.log
        assert all(panel.x.has(at) for line in lines_of(panel) for at in line.x.tolist())
        assert {line.name for line in lines_of(panel)} == {"4 runs, one for each seed"}
    assert data.title == "mine: K=3, E=7"


def test_long_runs_are_thinned_but_keep_their_ends() -> None:
    losses: list[float | None] = [float(x) for x in np.geomspace(2.0, 0.1, 5001)]
    panel = run_figure_data([run_of(losses, s) for s in range(3)], name="mine").panels[0]
    for line in lines_of(panel):
        assert len(line.x) == 400 and line.x[[0, -1]].tolist() == [0, 5000]
    median = median_of(panel)
    assert median is not None and len(median.x) == 400 and (median.x % 1 == 0).all()
    assert median.y[-1] == pytest.approx(0.1)


@pytest.mark.parametrize("seeds", [1, 2, 3, 50])
@pytest.mark.parametrize("costs", [{}, {"seconds": 2.0}, {"seconds": 2.0, "joules": 1.0}])
def test_both_drawings_show_every_run_the_median_and_the_target(
    seeds: int, costs: dict[str, float]
) -> None:
    runs = [run_of([2.0, 1.5, 1.0 + s / 100], s, **costs) for s in range(seeds)]
    data = run_figure_data(runs, name="mine", target_loss=0.9, note="A note.")
    expected = seeds + (seeds > 2) + 1
    figure = draw_print(data)
    figure.draw_without_rendering()
    assert len(figure.axes) == len(data.panels) == 1 + len(costs)
    assert all(len(axes.lines) == expected for axes in figure.axes)
    name = "seed 0" if seeds == 1 else f"{seeds} runs, one for each seed"
    names = [name, *(["median"] if seeds > 2 else []), "target 0.9"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == names
    screen = draw_screen(data)
    assert len(screen.data) == expected * len(data.panels)
    explained = sorted((t.legendrank, t.name) for t in screen.data if t.showlegend)
    assert [name for _, name in explained] == names


def test_runs_that_got_nowhere_are_drawn_too() -> None:
    data = run_figure_data([run_of([2.3], s, "diverged") for s in range(3)], name="mine")
    draw_print(data).draw_without_rendering()
    assert {trace.name for trace in draw_screen(data).data} == {"diverged"}


def test_runs_without_any_loss_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match="at least one loss"):
        run_figure_data([run_of([], 0, "diverged")], name="mine")
