"""The sweep figure's data, and its drawings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.figures import SweepFigure, draw_print, draw_screen, sweep_figure_data

COSTS = {(1, 5): 3.0, (1, 40): 100.0, (8, 5): math.inf, (8, 40): 2.0}


def figure(**changes: object) -> SweepFigure:
    request = {"best": (8, 40), "name": "mine", "reached": {(8, 5): "2/3"}, "note": "why"}
    return sweep_figure_data(COSTS, **(request | changes))  # type: ignore[arg-type]


def test_cells_stand_in_the_order_of_their_values_and_say_what_they_cost() -> None:
    data = figure()
    assert data.clients_per_round == (1, 8) and data.local_steps == (5, 40)
    assert data.ratio.tolist() == [[1.5, 50.0], [math.inf, 1.0]]
    assert data.labels == (("+50%", "50x"), ("2/3", "best")) and data.best == (1, 1)
    assert data.has_missed and data.top == 10.0


def test_shades_follow_the_log_of_the_ratio_up_to_the_top() -> None:
    shade = figure().shade
    assert shade[1, 1] == 0 and shade[0, 1] == 1 and np.isnan(shade[1, 0])
    assert shade[0, 0] == pytest.approx(math.log10(1.5))
    ticks = figure().ticks
    assert ticks[0] == (0.0, "same cost") and ticks[-1] == (1.0, "10x or more")
    assert [place for place, _ in ticks] == sorted(place for place, _ in ticks)


def test_a_cell_cheaper_than_the_best_is_as_light_as_it_is() -> None:
    data = sweep_figure_data({(1, 5): 0.9, (2, 5): 1.0}, best=(2, 5), name="mine")
    assert data.shade.tolist() == [[0.0], [0.0]] and data.labels == (("-10%",), ("best",))
    assert data.ticks[-1] == (1.0, "2x")


@pytest.mark.parametrize(
    ("costs", "best"),
    [
        (COSTS, (8, 40)),
        ({(1, 5): math.inf}, None),
        ({(1, 5): 1.0}, (1, 5)),
        ({(k, e): float(k * e) for k in range(1, 31) for e in range(1, 41)}, (1, 1)),
        ({(1, 5): 1.0, (2, 7): 2.0}, (1, 5)),  # a grid with gaps
    ],
)
def test_both_drawings_show_the_data(
    costs: dict[tuple[int, int], float], best: tuple[int, int] | None
) -> None:
    data = sweep_figure_data(costs, best=best, name="mine", note="why")
    printed = draw_print(data)
    printed.canvas.draw()
    assert printed.axes[0].get_xlabel() == "local steps E"
    (heat,) = draw_screen(data).data
    assert np.array(heat.z).shape == data.ratio.shape


def test_the_best_is_framed_and_named() -> None:
    axes = draw_print(figure()).axes[0]
    assert [text.get_text() for text in axes.texts] == ["+50%", "50x", "2/3", "best"]
    screen = draw_screen(figure())
    (frame,) = screen.layout.shapes
    assert (frame.x0, frame.y0) == (0.5, 0.5)
    assert screen.data[0].customdata[1][0] == "a seed did not reach the target"


def test_nothing_is_no_figure() -> None:
    with pytest.raises(InputError, match="at least one cell"):
        sweep_figure_data({}, best=None, name="mine")
