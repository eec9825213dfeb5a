"""The sweep figure's data, and its drawings."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fedplan.errors import InputError
from fedplan.figures import Figure, draw_print, draw_screen, sweep_figure_data
from fedplan.figures.spec import Boxes, Part, Texts
from fedplan.figures.style import HEAT, between

COSTS = {(1, 5): 3.0, (1, 40): 100.0, (8, 5): math.inf, (8, 40): 2.0}


def figure(**changes: object) -> Figure:
    request = {"best": (8, 40), "name": "mine", "reached": {(8, 5): "2/3"}, "note": "why"}
    return sweep_figure_data(COSTS, **(request | changes))  # type: ignore[arg-type]


def parts_of(data: Figure, kind: type[Part]) -> list[Any]:
    return [part for part in data.panels[0].parts if isinstance(part, kind)]


def texts_of(data: Figure) -> dict[tuple[int, int], str]:
    """What stands in each cell, by column and row."""
    return {
        (int(x), int(y)): text
        for part in parts_of(data, Texts)
        for x, y, text in zip(part.x, part.y, part.texts, strict=True)
    }


def test_cells_stand_in_the_order_of_their_values_and_say_what_they_cost() -> None:
    panel, _ = figure().panels
    assert panel.y.names == ("1", "8") and panel.x.names == ("5", "40")
    expected = {(0, 0): "+50%", (1, 0): "50x", (0, 1): "2/3", (1, 1): "best"}
    assert texts_of(figure()) == expected
    arrived, missed, frame = parts_of(figure(), Boxes)
    assert arrived.left.tolist() == [-0.5, 0.5, 0.5] and arrived.bottom.tolist() == [
        -0.5,
        -0.5,
        0.5,
    ]
    assert (missed.left[0], missed.bottom[0]) == (-0.5, 0.5) and missed.hatched
    assert 0.5 < frame.left[0] < 0.6 and 0.5 < frame.bottom[0] < 0.6
    assert arrived.hover[:2] == ("K=1, E=5\n+50%", "K=1, E=40\n50x")


def test_shades_follow_the_log_of_the_ratio_up_to_the_top() -> None:
    colours = parts_of(figure(), Boxes)[0].colours
    assert colours == (between(HEAT, math.log10(1.5)), HEAT[-1], HEAT[0])
    _, scale = figure().panels
    assert (scale.y.low, scale.y.high) == (1.0, 10.0)
    strip = scale.parts[0].colours
    assert (strip[0], strip[-1]) == (HEAT[0], HEAT[-1])


def test_a_cell_cheaper_than_the_best_is_as_light_as_it_is() -> None:
    data = sweep_figure_data({(1, 5): 0.9, (2, 5): 1.0}, best=(2, 5), name="mine")
    assert parts_of(data, Boxes)[0].colours == (HEAT[0], HEAT[0])
    assert texts_of(data) == {(0, 0): "-10%", (0, 1): "best"}
    assert data.panels[1].y.high == 2.0


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
    boxes = [trace for trace in draw_screen(data).data if trace.xaxis == "x"]
    assert sum(len(trace.x) for trace in boxes) == len(costs) + (best is not None)


def test_the_best_is_framed_and_named() -> None:
    axes = draw_print(figure()).axes[0]
    assert {text.get_text() for text in axes.texts} == {"+50%", "50x", "2/3", "best"}
    _, missed, frame, _ = draw_screen(figure()).data
    assert frame.marker.line.width > 0 and frame.x[0] == pytest.approx(0.5, abs=0.1)
    assert missed.hovertext[0] == "K=8, E=5<br>a seed did not reach the target"


def test_nothing_is_no_figure() -> None:
    with pytest.raises(InputError, match="at least one cell"):
        sweep_figure_data({}, best=None, name="mine")


def test_a_sweep_of_turns_speaks_of_groups():
    data = sweep_figure_data({(2, 5): 3.0, (4, 5): 2.0}, best=(4, 5), name="demo", by_groups=True)
    panel, _ = data.panels
    assert panel.y.label == "groups that take turns"
    assert "4 groups, E=5" in str(panel.parts[0].hover)
