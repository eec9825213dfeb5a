"""Figures of lines: cost against the energy weight, convergence, total time."""

from __future__ import annotations

import math

import pytest

from fedplan.core.records import RoundRecord, RunRecord, Status
from fedplan.errors import InputError
from fedplan.figures import (
    Figure,
    MethodCosts,
    Panel,
    TotalTime,
    convergence_data,
    cost_against_weight_data,
    draw_print,
    draw_screen,
    total_time_data,
)
from fedplan.figures.spec import Line, Texts
from fedplan.participation import uniform

WEIGHTS = [0.0, 0.5, 1.0]


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


def lines_of(panel: Panel) -> list[Line]:
    """The lines but that of the target."""
    return [line for line in panel.lines if line.look is not None]


def test_costs_and_their_errors_are_those_given() -> None:
    data = drawn(
        cost_against_weight_data(
            WEIGHTS,
            {
                "fedplan": MethodCosts(
                    relative_cost=[1.0, 1.1, 1.02],
                    relative_error=[0.01, 0.02, 0.03],
                    time_s=[10.0, 20.0, 40.0],
                    energy_j=[9.0, 4.0, 1.0],
                ),
                "paper": MethodCosts(
                    relative_cost=[1.5, math.nan, 1.2],
                    time_s=[20.0, 30.0, 60.0],
                    energy_j=[10.0, 6.0, 3.0],
                ),
                "best measured": MethodCosts(relative_cost=[1.0, 1.0, 1.0]),
            },
        )
    )
    cost, trade = data.panels
    assert [line.name for line in cost.lines] == ["fedplan", "paper", "best measured"]
    assert cost.lines[0].x.tolist() == WEIGHTS and cost.lines[0].y.tolist() == [1.0, 1.1, 1.02]
    assert cost.lines[0].high == pytest.approx([1.01, 1.12, 1.05]) and not cost.lines[1].high.size
    assert cost.y.has(0.99) and cost.y.has(1.5)
    assert [line.name for line in trade.lines] == ["fedplan", "paper"]
    assert trade.lines[0].x.tolist() == [10.0, 20.0, 40.0]
    (ends,) = [part for part in trade.parts if isinstance(part, Texts)]
    assert ends.texts == ("0", "1") and ends.x.tolist() == [20.0, 60.0]  # the slower method's
    assert (trade.x.label, trade.y.label) == ("time to target (s)", "energy to target (J)")


def test_a_method_that_never_arrives_has_no_place_in_the_trade_off() -> None:
    never = [math.nan] * 3
    lost = MethodCosts(relative_cost=never, time_s=never, energy_j=never)
    arrives = MethodCosts(relative_cost=[1.0] * 3, time_s=[9.0, 10.0, 90.0], energy_j=[3.0] * 3)
    _, trade = drawn(cost_against_weight_data(WEIGHTS, {"a": lost, "b": arrives})).panels
    assert [line.name for line in trade.lines] == ["b"] and trade.x.log
    (alone,) = cost_against_weight_data(
        WEIGHTS, {"a": lost, "b": MethodCosts(relative_cost=[1.0] * 3)}
    ).panels
    assert len(alone.lines) == 2


def test_arrays_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match=r"relative_cost of paper must have shape \(3,\)"):
        cost_against_weight_data(WEIGHTS, {"paper": MethodCosts(relative_cost=[1.0, 2.0])})
    with pytest.raises(InputError, match="at least one number"):
        cost_against_weight_data(WEIGHTS, {"paper": MethodCosts(relative_cost=[math.nan] * 3)})


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
    in_time = data.panels[1].lines[0]
    assert in_time.x[-1] == 20.0  # where half of the runs have ended
    assert in_time.y[-1] == pytest.approx((1.0 + 3.0) / 2)
    accuracy = data.panels[2].lines[0]
    assert accuracy.y == pytest.approx([0.0, 0.15, 0.3])
    target = data.panels[0].lines[-1]
    assert target.name == "target 0.5" and set(target.y) == {0.5}
    assert len(data.panels[2].lines) == 2


def test_panels_of_convergence_are_those_the_runs_have_numbers_for() -> None:
    data = drawn(convergence_data([run_of((2, 5), [2.0, None, 1.0])], title="mine"))
    assert [panel.x.label for panel in data.panels] == ["round"]
    assert data.panels[0].lines[0].y.tolist() == [2.0, 1.5, 1.0]
    with pytest.raises(InputError, match="a run with a loss"):
        convergence_data([run_of((2, 5), [2.0], status="diverged")], title="mine")


def test_a_band_below_nought_is_drawn_too() -> None:
    runs = [run_of((2, 5), [2.0, 0.01], 0), run_of((2, 5), [2.0, 0.5], 1)]
    assert drawn(convergence_data(runs, title="mine")).panels[0].y.low > 0


def test_total_time_has_a_line_for_every_k_and_for_every_e() -> None:
    totals = [
        TotalTime(clients_per_round=k, local_steps=e, mean_s=600.0 * k + e, sd_s=k)
        for k in (2, 8)
        for e in (30, 10, 90)
    ]
    data = drawn(total_time_data(totals, title="mine"))
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
    for panel in drawn(total_time_data(totals, title="mine")).panels:
        assert panel.y.log and panel.y.has(8500.0) and panel.y.has(48.0) and not panel.y.has(10.0)


def test_total_time_of_a_single_setting_is_refused() -> None:
    with pytest.raises(InputError, match="two settings"):
        total_time_data([TotalTime(clients_per_round=2, local_steps=3, mean_s=1.0)], title="mine")
