"""The figures of a reproduction: cost against the energy weight, and total time."""

from __future__ import annotations

import math

import pytest

from fedplan.errors import InputError
from fedplan.figures import Figure, draw_print, draw_screen
from fedplan.figures.spec import Texts
from fedplan_reproduction.total_time import TotalTime, total_time_data
from fedplan_reproduction.weights import BEST, FEDPLAN, PAPER, Priced
from fedplan_reproduction.weights_figure import weights_figure

WEIGHTS = [0.0, 0.5, 1.0]


def priced(method: str, relative, times, energies, errors=(0.0, 0.0, 0.0)) -> list[Priced]:
    """What a method costs at each weight, where the lowest cost measured is 2."""
    return [
        Priced(
            energy_weight=weight,
            method=method,
            setting=None,
            cost=2.0 * relative[place],
            error=2.0 * errors[place],
            time_s=times[place],
            energy_j=energies[place],
            relative_cost=relative[place],
        )
        for place, weight in enumerate(WEIGHTS)
    ]


def drawn(data: Figure) -> Figure:
    """The same, once both drawings are made."""
    draw_print(data).draw_without_rendering()
    names = [trace.name for trace in draw_screen(data).data if trace.showlegend]
    assert set(names) >= {line.name for panel in data.panels for line in panel.lines}
    return data


def test_costs_and_their_errors_are_those_given() -> None:
    found = [
        *priced(FEDPLAN, [1.0, 1.1, 1.02], [10.0, 20.0, 40.0], [9.0, 4.0, 1.0], [0.01, 0.02, 0.03]),
        *priced(PAPER, [1.5, math.inf, 1.2], [20.0, math.inf, 60.0], [10.0, math.inf, 3.0]),
        *priced(BEST, [1.0] * 3, [math.inf] * 3, [math.inf] * 3),
    ]
    data = drawn(weights_figure(found, title="mine", note=""))
    cost, trade = data.panels
    assert [line.name for line in cost.lines] == ["fedplan", "paper", "best measured"]
    assert cost.lines[0].x.tolist() == WEIGHTS and cost.lines[0].y.tolist() == [1.0, 1.1, 1.02]
    assert cost.lines[0].high == pytest.approx([1.01, 1.12, 1.05])
    assert math.isnan(cost.lines[1].y[1])
    assert cost.y.label == "cost / the lowest measured" and cost.y.has(0.99) and cost.y.has(1.5)
    assert [line.name for line in trade.lines] == ["fedplan", "paper"]
    assert trade.lines[0].x.tolist() == [10.0, 20.0, 40.0]
    (ends,) = [part for part in trade.parts if isinstance(part, Texts)]
    assert ends.texts == ("0", "1") and ends.x.tolist() == [20.0, 60.0]  # the slower method's
    assert (trade.x.label, trade.y.label) == ("time to target (s)", "energy to target (J)")


def test_a_method_that_never_arrives_has_no_place_in_the_trade_off() -> None:
    never = [math.inf] * 3
    lost = [*priced(FEDPLAN, never, never, never), *priced(PAPER, never, never, never)]
    arrives = priced(BEST, [1.0] * 3, [9.0, 10.0, 90.0], [3.0] * 3)
    _, trade = drawn(weights_figure([*lost, *arrives], title="mine", note="")).panels
    assert [line.name for line in trade.lines] == ["best measured"] and trade.x.log
    nowhere = priced(BEST, [1.0] * 3, never, never)
    (alone,) = weights_figure([*lost, *nowhere], title="mine", note="").panels
    assert len(alone.lines) == 3
    with pytest.raises(InputError, match="at least one number"):
        weights_figure([*lost, *priced(BEST, never, never, never)], title="mine", note="")


def test_total_time_has_a_line_for_every_k_and_for_every_e() -> None:
    totals = [
        TotalTime(clients_per_round=k, local_steps=e, mean_s=600.0 * k + e, sd_s=k)
        for k in (2, 8)
        for e in (30, 10, 90)
    ]
    data = drawn(total_time_data(totals, title="mine", note=""))
    over_e, over_k = data.panels
    assert [line.name for line in over_e.lines] == ["K=2", "K=8"]
    assert all(panel.own_legend for panel in data.panels)
    assert over_e.lines[1].x.tolist() == [10, 30, 90]
    assert over_e.lines[1].y.tolist() == [4810.0, 4830.0, 4890.0]
    assert (over_e.lines[1].y - over_e.lines[1].low).tolist() == [8.0] * 3
    assert [line.name for line in over_k.lines] == ["E=10", "E=30", "E=90"]
    assert over_k.lines[0].y.tolist() == [1210.0, 4810.0] and over_k.y.label.endswith("(min)")


def test_total_times_far_above_the_others_do_not_squash_them() -> None:
    times = {1: (4000.0, 4500.0), 10: (60.0, 5.0), 20: (50.0, 2.0)}
    totals = [
        TotalTime(clients_per_round=k, local_steps=e, mean_s=mean, sd_s=sd)
        for k, (mean, sd) in times.items()
        for e in (10, 20)
    ]
    for panel in drawn(total_time_data(totals, title="mine", note="")).panels:
        assert panel.y.log and panel.y.has(8500.0) and panel.y.has(48.0) and not panel.y.has(10.0)


def test_total_time_of_a_single_setting_is_refused() -> None:
    alone = TotalTime(clients_per_round=2, local_steps=3, mean_s=1.0)
    with pytest.raises(InputError, match="two settings"):
        total_time_data([alone], title="mine", note="")
