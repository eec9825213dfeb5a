"""The figure of turns: who trains when, beside uniform sampling."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.figures import (
    Figure,
    TurnBill,
    alone,
    draw_print,
    draw_screen,
    save_figure,
    turns_figure_data,
)
from fedplan.figures.save import page_figure
from fedplan.figures.spec import Boxes


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    clients: int
    data_share: float
    frequency: float
    time_s: float


SLOW = Group(clients=2, data_share=0.2, frequency=0.2, time_s=40.0)
QUICK = Group(clients=5, data_share=0.5, frequency=0.5, time_s=4.0)
MIDDLE = Group(clients=3, data_share=0.3, frequency=0.3, time_s=9.0)
GROUPS = [SLOW, QUICK, MIDDLE]
ORDER = [1, 2, 1, 0, 1, 1, 2, 1, 2, 1]
TURNS = TurnBill(name="turns", rounds=400.0, time_s=4200.0, energy_j=9e4, cost=4200.0)
UNIFORM = TurnBill(
    name="best uniform (K=4, E=20)", rounds=300.0, time_s=9000.0, energy_j=8e4, cost=9000.0
)


@pytest.fixture(scope="module")
def data() -> Figure:
    return turns_figure_data(GROUPS, ORDER, [TURNS, UNIFORM], note="Made up.")


def boxes_of(data: Figure, panel: int = 0) -> list[Boxes]:
    return [part for part in data.panels[panel].parts if isinstance(part, Boxes)]


def rows_of(boxes: Boxes) -> list[int]:
    return ((boxes.bottom + boxes.top) / 2).round().astype(int).tolist()


def test_every_round_is_a_bar_as_long_as_its_group_takes(data: Figure) -> None:
    rounds, uniform = boxes_of(data)
    ranked = [QUICK, MIDDLE, SLOW]  # the fastest on top
    assert [ranked[row] for row in rows_of(rounds)] == [GROUPS[group] for group in ORDER]
    lengths = [GROUPS[group].time_s for group in ORDER]
    assert (rounds.right - rounds.left).tolist() == pytest.approx(lengths)
    assert rounds.left[1:].tolist() == pytest.approx(rounds.right[:-1])  # one after the other
    assert rounds.right[-1] == pytest.approx(sum(lengths))
    # Uniform rounds are as long as its bill says, and only whole ones count.
    assert (uniform.right - uniform.left)[:3].tolist() == pytest.approx([30.0] * 3)
    assert uniform.right[-1] == pytest.approx(sum(lengths))
    assert len(set(uniform.colours[:3])) == 1 and uniform.colours[3] != uniform.colours[0]
    assert set(rows_of(uniform)) == {4}


def test_the_title_says_how_many_rounds_fit(data: Figure) -> None:
    expected = "In the same 91 s: 10 rounds in turns, 3 of best uniform (K=4, E=20)"
    assert data.panels[0].title == expected
    assert data.panels[0].words.startswith(expected)


def test_groups_have_their_devices_and_data_in_the_same_rows(data: Figure) -> None:
    timeline, devices, shares = data.rows[0]
    assert devices.y == shares.y == timeline.y
    assert timeline.y.names == ("fastest  1", "2", "slowest  3", "", "best uniform\n(K=4, E=20)")
    rounds, _ = boxes_of(data)
    colours = dict(zip(rows_of(rounds), rounds.colours, strict=True))
    for place, values in ((1, [5, 3, 2]), (2, [0.5, 0.3, 0.2])):
        (sizes,) = boxes_of(data, place)
        assert sizes.right.tolist() == values
        assert sizes.colours == tuple(colours[row] for row in range(3))


def test_bills_stand_beside_each_other_with_their_numbers(data: Figure) -> None:
    assert [panel.x.label for panel in data.rows[1]] == [
        "time to target (min)",
        "energy to target (kJ)",
        "cost (s)",
    ]
    assert [panel.parts[-1].texts for panel in data.rows[1]] == [
        ("70 min", "150 min  (2.1x)"),
        ("90 kJ", "80 kJ  (-11%)"),
        ("4,200", "9,000  (2.1x)"),  # the unit, which may be long, stands at the axis
    ]
    free = [replace(bill, energy_j=0.0) for bill in (TURNS, UNIFORM)]
    assert len(turns_figure_data(GROUPS, ORDER, free).rows[1]) == 2


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html"])
def test_it_is_saved_as_any_kind_of_file(data: Figure, tmp_path: Path, suffix: str) -> None:
    save_figure(data, tmp_path / f"turns{suffix}")
    assert (tmp_path / f"turns{suffix}").stat().st_size > 1000


def test_both_drawings_have_every_bar(data: Figure) -> None:
    paper = draw_print(data)
    paper.draw_without_rendering()
    assert len(paper.axes) == 6
    assert len(paper.axes[0].patches) == len(ORDER) + 4
    traces = [trace for trace in draw_screen(data).data if trace.type == "bar"]
    assert sum(len(trace.x) for trace in traces if trace.xaxis == "x") == len(ORDER) + 4
    assert traces[0].hovertext[3].startswith("round 4, group 3: 2 devices")


@pytest.mark.parametrize("count", [1, 2, 8, 20, 23, 70, 227])
def test_no_text_overlaps_another_or_leaves_the_paper(count: int) -> None:
    share = 1 / count
    groups = [
        Group(clients=100 // count, data_share=share, frequency=share, time_s=float(time_s))
        for time_s in np.geomspace(3.0, 60.0, count)
    ]
    data = turns_figure_data(groups, [*range(count)] * 2, [TURNS, UNIFORM])
    paper = draw_print(data)
    for _ in range(2):  # as for a file: the layout of the second has settled
        paper.draw_without_rendering()
    width, height = paper.get_size_inches() * paper.dpi
    boxes = []
    for axes in paper.axes:
        ticks = [text for text in axes.get_yticklabels() if text.get_visible()]
        texts = [text for text in (*axes.texts, *ticks) if text.get_text()]
        boxes += [text.get_window_extent() for text in texts]
        assert all(text.get_window_extent().x1 <= axes.bbox.x1 + 2 for text in axes.texts)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(b.x0 >= -1 and b.y0 >= -1 and b.x1 <= width + 1 and b.y1 <= height for b in boxes)


def many_groups(count: int) -> list[Group]:
    return [
        Group(clients=1 + place % 3, data_share=1 / count, frequency=1 / count, time_s=1.0 + place)
        for place in range(count)
    ]


@pytest.mark.parametrize(("count", "rows", "second"), [(21, 11, "3 to 4"), (227, 19, "13 to 24")])
def test_of_many_groups_those_of_like_speed_share_a_row(count: int, rows: int, second: str) -> None:
    groups = many_groups(count)
    order = [*range(0, count, 7)]
    data = turns_figure_data(groups, order, [TURNS, UNIFORM])
    timeline, devices, shares = data.rows[0]
    names = timeline.y.names[:-2]
    assert len(names) == rows and names[1] == second and names[-1].startswith("slowest  ")
    bounds = [[int(word) for word in name.split() if word.isdigit()] for name in names]
    rounds = boxes_of(data)[0]
    for row, group in zip(rows_of(rounds), order, strict=True):
        assert bounds[row][0] <= group + 1 <= bounds[row][-1]
    assert len(set(rounds.colours)) == len(order)  # as in the table of groups
    for panel, total in ((devices, sum(group.clients for group in groups)), (shares, 1.0)):
        assert sum(panel.parts[0].right) == pytest.approx(total)
    assert data.size[1] < 12


def test_one_panel_below_the_other_has_names_that_fit_a_phone() -> None:
    long = replace(UNIFORM, name="a tenth of the clients, one epoch (10 steps)")
    data = alone(*turns_figure_data(GROUPS, ORDER, [TURNS, UNIFORM, long]).rows[1])
    assert [len(row) for row in data.rows] == [1, 1, 1]
    assert not any(panel.shares_y for panel in data.panels)
    expected = "a tenth of the\nclients, one epoch\n(10 steps)\n300 rounds"
    for panel in data.panels:
        assert panel.y.names[1:] == ("best uniform\n(K=4, E=20)\n300 rounds", expected)


def test_for_a_page_it_is_lists_and_numbers_without_titles(data: Figure) -> None:
    drawn = page_figure(data)
    assert json.loads(json.dumps(drawn, allow_nan=False)) == drawn
    assert len(drawn["data"]) == len(draw_screen(data).data)
    texts = [note["text"] for note in drawn["layout"]["annotations"]]
    assert "4,200" in texts and data.panels[0].title not in texts
    assert drawn["layout"]["height"] < draw_screen(data).layout.height


def test_many_rounds_are_cut_to_those_that_can_be_told_apart() -> None:
    data = turns_figure_data(GROUPS, ORDER * 20, [TURNS, UNIFORM])
    assert "60 rounds in turns" in data.panels[0].title


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"groups": []}, "needs groups"),
        ({"order": []}, "0 rounds"),
        ({"bills": [TURNS]}, "1 bills"),
        ({"order": [0, 3]}, "groups 0 to 2, but got 3"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes: dict[str, Any], reason: str) -> None:
    request = {"groups": GROUPS, "order": ORDER, "bills": [TURNS, UNIFORM]}
    with pytest.raises(InputError, match=reason):
        turns_figure_data(**(request | changes))
