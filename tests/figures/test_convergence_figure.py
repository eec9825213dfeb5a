"""The figure of convergence: means over seeds, their bands, and the target."""

from __future__ import annotations

import math

import pytest

from fedplan.core.records import RoundRecord, RunRecord, Status
from fedplan.errors import InputError
from fedplan.figures import Figure, Panel, convergence_data, draw_print, draw_screen
from fedplan.figures.spec import Line
from fedplan.participation import uniform


def run_of(
    setting: tuple[int, int],
    losses: list[float | None],
    seed: int = 0,
    status: Status = "rounds",
    seconds: float = 0.0,
    accuracy: float | None = None,
) -> RunRecord:
    rounds = tuple(
        RoundRecord(
            round=r,
            loss=loss,
            accuracy=None if accuracy is None else accuracy * r,
            cohort=(),
            seconds=seconds if r else 0.0,
            joules=0.0,
        )
        for r, loss in enumerate(losses)
    )
    clients, steps = setting
    return RunRecord(setting=uniform(clients, steps), seed=seed, status=status, rounds=rounds)


def drawn(data: Figure) -> Figure:
    """The same, once both drawings are made."""
    draw_print(data).draw_without_rendering()
    names = [trace.name for trace in draw_screen(data).data if trace.showlegend]
    assert set(names) >= {line.name for panel in data.panels for line in lines_of(panel)}
    return data


def named_lines(panel: Panel) -> list[Line]:
    return [part for part in panel.parts if isinstance(part, Line) and part.name]


def lines_of(panel: Panel) -> list[Line]:
    """The lines but that of the target."""
    return [line for line in named_lines(panel) if line.look is not None]


def test_a_line_is_the_mean_over_seeds_and_its_band_one_standard_deviation() -> None:
    runs = [
        run_of((2, 5), [4.0, 2.0, 1.0], 0, seconds=10.0, accuracy=0.1),
        run_of((2, 5), [4.0, 3.0, 2.0], 1, seconds=20.0, accuracy=0.2),
        run_of((8, 5), [4.0, 1.0], 0, seconds=30.0, accuracy=0.3),
        run_of((8, 5), [9.0], 1, "diverged"),
    ]
    data = drawn(convergence_data(runs, title="mine", target_loss=0.5))
    labels = [(panel.x.label, panel.y.label) for panel in data.panels]
    against = ("round", "time (s)")
    assert labels == [(x, y) for y in ("training loss", "accuracy") for x in against]
    assert [len(row) for row in data.rows] == [2, 2]
    assert not any(panel.own_legend for panel in data.panels)
    first, alone = lines_of(data.panels[0])
    assert (first.name, alone.name) == ("K=2, E=5", "K=8, E=5")
    assert first.x.tolist() == [0, 1, 2] and first.y.tolist() == [4.0, 2.5, 1.5]
    assert first.high - first.y == pytest.approx([0.0, math.sqrt(0.5), math.sqrt(0.5)])
    assert alone.y.tolist() == [4.0, 1.0] and not alone.high.size
    in_time = named_lines(data.panels[1])[0]
    assert in_time.x[-1] == 20.0  # where half of the runs have ended
    assert in_time.y[-1] == pytest.approx((1.0 + 3.0) / 2)
    accuracy = named_lines(data.panels[2])[0]
    assert accuracy.y == pytest.approx([0.0, 0.15, 0.3])
    target = named_lines(data.panels[0])[-1]
    assert target.name == "target 0.5" and set(target.y) == {0.5}
    assert len(named_lines(data.panels[2])) == 2


def test_panels_of_convergence_are_those_the_runs_have_numbers_for() -> None:
    data = drawn(convergence_data([run_of((2, 5), [2.0, None, 1.0])], title="mine"))
    assert [panel.x.label for panel in data.panels] == ["round"]
    assert named_lines(data.panels[0])[0].y.tolist() == [2.0, 1.5, 1.0]
    with pytest.raises(InputError, match="a run with a loss"):
        convergence_data([run_of((2, 5), [2.0], status="diverged")], title="mine")


def test_a_band_below_nought_is_drawn_too() -> None:
    runs = [run_of((2, 5), [2.0, 0.01], 0), run_of((2, 5), [2.0, 0.5], 1)]
    assert drawn(convergence_data(runs, title="mine")).panels[0].y.low > 0


@pytest.mark.parametrize("losses", [[-1.0, -3.0], [1.0, -1.0], [0.0, 0.0]])
def test_losses_below_zero_are_on_the_axis(losses: list[float | None]) -> None:
    (panel,) = drawn(convergence_data([run_of((2, 5), losses)], title="t")).panels
    assert all(panel.y.has(loss) for loss in losses if loss is not None)
