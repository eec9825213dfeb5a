"""What the page is told is what the library computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import PILOTS, SETUP3
from planned import make_plan, sensitivity

from fedplan import (
    Bound,
    Constraints,
    Fleet,
    Objective,
    Prices,
    compute_frontier,
    cost_surface,
    draw_fleet,
    estimate_bound,
    predict,
    read_pilots,
    with_stragglers,
)
from fedplan.csvfile import Upload
from fedplan.participation.slowest import expected_slowest
from fedplan.planning.example import EXAMPLE_BOUND, example_fleet
from fedplan.web.answers import answer, doubts
from fedplan.web.state import read_state

FLEET = example_fleet()


def ask(shelf, **state):
    return answer(read_state(state, shelf))


def row_of(found, role):
    return next(row for row in found["rows"] if row["role"] == role)


def is_row_of(row, prediction):
    same = (prediction.clients_per_round, prediction.local_steps, prediction.rounds)
    assert (row["clients_per_round"], row["local_steps"], row["rounds"]) == same
    for name in ("time_s", "energy_j", "cost"):
        assert row[name] == pytest.approx(getattr(prediction, name), rel=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("method", ["exact", "paper"])
def test_a_weight(shelf, weight, method):
    found = ask(shelf, energy_weight=weight, method=method)
    plan = make_plan(FLEET, EXAMPLE_BOUND, energy_weight=weight, method=method)
    is_row_of(found["rows"][0], plan.prediction)
    assert found["message"].startswith(plan.message)


def test_prices_limits_and_ones_own_setting(shelf):
    found = ask(
        shelf,
        objective="prices",
        price_hour=2.0,
        price_kwh=0.3,
        co2_per_kwh=400.0,
        deadline_s=1400.0,
        max_clients_per_round=40,
        current_clients_per_round=10,
        current_local_steps=50,
    )
    prices = Prices(per_hour=2.0, per_kwh=0.3, co2_g_per_kwh=400.0)
    limits = Constraints(deadline_s=1400.0, max_clients_per_round=40)
    plan = make_plan(FLEET, EXAMPLE_BOUND, prices=prices, constraints=limits)
    is_row_of(row_of(found, "chosen"), plan.prediction)
    own = predict(FLEET, EXAMPLE_BOUND, prices.objective(), 10, 50)
    is_row_of(row_of(found, "current"), own)
    assert not row_of(found, "current")["feasible"]  # it takes longer than the deadline
    assert own.time_s > 1400
    assert found["binding"] == list(plan.binding)
    paper = next(other for other in plan.alternatives if "paper" in other.name)
    is_row_of(row_of(found, "paper"), paper.prediction)
    assert "CO2" in row_of(found, "chosen")["words"]["co2"]


def test_a_drawn_fleet_with_stragglers(shelf):
    found = ask(
        shelf,
        fleet="drawn",
        num_clients=300,
        spread=0.5,
        law="lognormal",
        straggler_share=0.1,
        straggler_slowdown=8,
        fleet_seed=5,
        energy_weight=0.2,
    )
    means = {"step_time_s": 0.1, "comm_time_s": 2.0, "step_energy_j": 1e-3, "comm_energy_j": 2e-2}
    fleet = draw_fleet(
        300, law="lognormal", seed=5, **{name: (mean, 0.5 * mean) for name, mean in means.items()}
    )
    plan = make_plan(with_stragglers(fleet, 0.1, 8.0), EXAMPLE_BOUND, energy_weight=0.2)
    is_row_of(found["rows"][0], plan.prediction)


def test_uploaded_fleet_and_pilots_plan_for_the_least_regret(shelf, pilots_csv):
    fleet_id, devices = shelf.add_fleet(Upload("mine.csv", SETUP3.encode()))
    pilots_id, _ = shelf.add_pilots(Upload("pilots.csv", PILOTS.encode()))
    fleet = Fleet(
        step_time_s=0.1, comm_time_s=2, step_energy_j=0.001, comm_energy_j=0.02, count=100
    )
    assert len(devices.fleet) == len(fleet)
    for method, how in (("robust", "joint"), ("paper", "pairwise")):
        found = ask(shelf, fleet=fleet_id, pilots=pilots_id, energy_weight=0.4, method=method)
        estimate = estimate_bound(read_pilots(pilots_csv), 100, method=how)
        plan = make_plan(fleet, estimate, energy_weight=0.4, method=method)
        is_row_of(found["rows"][0], plan.prediction)
        assert found["regret"] == plan.regret
    low, high = estimate_bound(read_pilots(pilots_csv), 100).intervals["a0"]
    scale = ask(shelf, fleet=fleet_id, pilots=pilots_id)["scales"]["a0"]
    assert low <= scale[0] * 1.01 and scale[-1] <= high * 1.01  # sliders stay in the interval


def test_nothing_meets_the_limits(shelf):
    found = ask(shelf, deadline_s=10.0, energy_budget_j=1e9, energy_weight=0.1)
    plan = make_plan(
        FLEET,
        EXAMPLE_BOUND,
        energy_weight=0.1,
        constraints=Constraints(deadline_s=10.0, energy_budget_j=1e9),
    )
    assert not found["success"] and found["message"].startswith(plan.message)
    attainable = [row for row in found["rows"] if row["role"] == "attainable"]
    assert [row["time_s"] for row in attainable][:1] == [
        pytest.approx(plan.best_attainable["deadline_s"].time_s)
    ]
    assert found["pictures"]["steps"] is None and found["pictures"]["clients"] is None
    names = {trace["name"] for trace in found["pictures"]["frontier"]["data"]}
    assert "over a limit" in names and "frontier" not in names


def test_the_map_is_the_cost_surface(shelf):
    found = ask(shelf, energy_weight=0.3)["pictures"]["map"]
    row, column = 30, 25
    drawn = found["data"][0]
    k, e, extra = drawn["y"][row], drawn["x"][column], drawn["customdata"][row][column]
    near = [
        float(cost_surface(FLEET, EXAMPLE_BOUND, Objective.weighted(0.3), [a], [b]).cost[0, 0])
        for a in (math.floor(k), math.ceil(k))
        for b in (math.floor(e), math.ceil(e))
    ]
    plan = make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.3)
    ratios = np.array(near) / plan.prediction.cost - 1
    assert ratios.min() - 0.01 <= extra <= ratios.max() + 0.01
    chosen = next(trace for trace in found["data"] if trace["name"].startswith("fedplan"))
    assert (*chosen["y"], *chosen["x"]) == plan.setting.pair


def test_the_curves_are_cuts_of_the_surface_and_bands_hold_every_other_bound(shelf):
    pictures = ask(shelf, energy_weight=0.3)["pictures"]
    curves = {name: pictures[name]["data"] for name in ("steps", "clients")}
    k, e = make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.3).setting.pair
    objective = Objective.weighted(0.3)
    for name, ks, es in (
        ("steps", [k], curves["steps"][1]["x"]),
        ("clients", curves["clients"][1]["x"], [e]),
    ):
        for bound, key in (
            (EXAMPLE_BOUND, "y"),
            (Bound(a0=3750, b0=1, c0=52), None),
            (Bound(a0=7500, b0=1, c0=26), None),
        ):
            cost = cost_surface(FLEET, bound, objective, ks, es).cost.ravel()
            ratio = cost / predict(FLEET, bound, objective, k, e).cost
            band, line, _ = curves[name]
            if key:
                assert line["y"] == pytest.approx(ratio.tolist(), rel=1e-4)
            high, low = np.split(np.array(band["y"]), 2)
            assert (low[::-1] <= ratio * 1.0001).all()
            assert (high >= ratio * 0.9999).all()


def test_the_frontier_of_a_small_fleet_is_the_whole_frontier(shelf):
    shelf_id, _ = shelf.add_fleet(
        Upload(
            "few.csv",
            b"step_time_s,comm_time_s,step_energy_j,comm_energy_j\n"
            + b"".join(b"0.%d,2,0.1,0.%d\n" % (1 + n % 7, 1 + n % 5) for n in range(40)),
        )
    )
    found = ask(shelf, fleet=shelf_id, energy_weight=0.3)["pictures"]["frontier"]
    fleet = shelf.find_fleet(shelf_id).fleet
    points = compute_frontier(fleet, EXAMPLE_BOUND)
    drawn = [key for trace in found["data"] for key in trace.get("customdata", ())]
    assert sorted(drawn) == sorted([p.clients_per_round, p.local_steps] for p in points)


def test_a_large_fleet_is_planned_exactly_whatever_was_asked_before(shelf):
    states = [
        {"energy_weight": weight, **more}
        for weight in (0.1, 0.5)
        for more in ({}, {"deadline_s": 2000.0}, {"min_clients_per_round": 30}, {})
    ]
    means = {"step_time_s": 0.1, "comm_time_s": 2.0, "step_energy_j": 1e-3, "comm_energy_j": 2e-2}
    fleet = draw_fleet(5000, seed=1, **{n: (mean, 0.33 * mean) for n, mean in means.items()})
    for state in states:
        found = ask(shelf, fleet="drawn", num_clients=5000, **state)
        limits = Constraints(**{k: v for k, v in state.items() if k != "energy_weight"})
        plan = make_plan(
            fleet, EXAMPLE_BOUND, energy_weight=state["energy_weight"], constraints=limits
        )
        is_row_of(found["rows"][0], plan.prediction)


def test_what_ifs_and_stragglers(shelf):
    found = ask(shelf, energy_weight=0.3)
    plan = make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.3)
    cases = sensitivity(FLEET, EXAMPLE_BOUND, plan, energy_weight=0.3)
    asked = doubts(read_state({"energy_weight": 0.3}, shelf))["sensitivity"]
    assert [(c["name"], c["regret"]) for c in asked] == [
        (case.name, pytest.approx(case.regret)) for case in cases
    ]
    bars, _, waiting = found["pictures"]["histogram"]["data"]
    assert sum(bars["y"]) == 100
    k, e = plan.setting.pair
    times = FLEET.round_times_s(e)
    waits = float(expected_slowest(times, [k])[0])
    assert waiting["x"] == pytest.approx([waits, waits], rel=1e-4)
    # Of K clients out of N the slowest device is one with probability K / N.
    name, *_, share = found["pictures"]["slowest"][0]
    assert name == f"row {np.argmax(times) + 1}"
    assert share == f"{k / 100:.1%}"
