"""The sweep figure's data, and its drawings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.figures import Figure, draw_print, draw_screen, sweep_figure_data
from fedplan.figures.spec import Cells

COSTS = {(1, 5): 3.0, (1, 40): 100.0, (8, 5): math.inf, (8, 40): 2.0}


def figure(**changes: object) -> Figure:
    request = {"best": (8, 40), "name": "mine", "reached": {(8, 5): "2/3"}, "note": "why"}
    return sweep_figure_data(COSTS, **(request | changes))  # type: ignore[arg-type]


def cells_of(data: Figure) -> Cells:
    ((cells,),) = (panel.parts for panel in data.panels)
    assert isinstance(cells, Cells)
    return cells


def test_cells_stand_in_the_order_of_their_values_and_say_what_they_cost() -> None:
    (panel,), cells = figure().panels, cells_of(figure())
    assert panel.y.names == ("1", "8") and panel.x.names == ("5", "40")
    assert cells.texts == (("+50%", "50x"), ("2/3", "best")) and cells.framed == (1, 1)
    assert cells.hatched.tolist() == [[False, False], [True, False]]
    assert cells.hovers[0] == ("K=1, E=5\n+50%", "K=1, E=40\n50x")


def test_shades_follow_the_log_of_the_ratio_up_to_the_top() -> None:
    cells = cells_of(figure())
    shade = cells.shades
    assert shade[1, 1] == 0 and shade[0, 1] == 1 and np.isnan(shade[1, 0])
    assert shade[0, 0] == pytest.approx(math.log10(1.5))
    assert cells.scale[0] == (0.0, "same cost") and cells.scale[-1] == (1.0, "10x or more")
    assert [place for place, _ in cells.scale] == sorted(place for place, _ in cells.scale)


def test_a_cell_cheaper_than_the_best_is_as_light_as_it_is() -> None:
    cells = cells_of(sweep_figure_data({(1, 5): 0.9, (2, 5): 1.0}, best=(2, 5), name="mine"))
    assert cells.shades.tolist() == [[0.0], [0.0]] and cells.texts == (("-10%",), ("best",))
    assert cells.scale[-1] == (1.0, "2x")


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
    assert np.array(heat.z).shape == cells_of(data).shades.shape


def test_the_best_is_framed_and_named() -> None:
    axes = draw_print(figure()).axes[0]
    assert [text.get_text() for text in axes.texts] == ["+50%", "50x", "2/3", "best"]
    screen = draw_screen(figure())
    (frame,) = screen.layout.shapes
    assert (frame.x0, frame.y0) == (0.5, 0.5)
    assert screen.data[0].customdata[1][0] == "K=8, E=5<br>a seed did not reach the target"


def test_nothing_is_no_figure() -> None:
    with pytest.raises(InputError, match="at least one cell"):
        sweep_figure_data({}, best=None, name="mine")


def test_a_sweep_of_turns_speaks_of_groups():
    data = sweep_figure_data({(2, 5): 3.0, (4, 5): 2.0}, best=(4, 5), name="demo", by_groups=True)
    (panel,) = data.panels
    assert panel.y.label == "groups that take turns"
    assert "4 groups, E=5" in str(panel.parts[0].hovers)
