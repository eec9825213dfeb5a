"""Answers by every law: those of the library, with the pictures that make sense and no others."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import SETUP3
from planned import problem_of
from stored_runs import EXPERIMENT

from fedplan import Constraints, Objective, Problem, Saturation, make_plan
from fedplan.core.setting import Setting
from fedplan.csvfile import Upload
from fedplan.errors import InputError
from fedplan.figures.turns import first_turns
from fedplan.participation import LAWS, uniform
from fedplan.planning.example import EXAMPLE_BOUND, example_fleet
from fedplan.planning.explain import group_table
from fedplan.planning.predict import price_setting
from fedplan.store import Store
from fedplan.web import runs
from fedplan.web.answers import answer, doubts
from fedplan.web.question import Convergence
from fedplan.web.shelf import Shelf
from fedplan.web.state import read_state
from fedplan.words import extra

FLEET = example_fleet()
PROBLEM = Problem(fleet=FLEET, objective=Objective.weighted(0.3))
SAMPLES = b"step_time_s,comm_time_s,step_energy_j,comm_energy_j,samples\n" + b"".join(
    b"0.%d,2,0.1,0.2,%d\n" % (1 + n, 0 if n in (2, 7) else 1 + n % 3) for n in range(9)
)


def ask(shelf, **state):
    return answer(read_state({"energy_weight": 0.3, **state}, shelf))


@pytest.fixture
def no_bound(shelf):
    """What `fedplan serve --fleet` begins with: devices, and nothing measured."""
    return Shelf(shelf.store, shelf.devices, Convergence.unmeasured())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("known", [EXAMPLE_BOUND, None], ids=["bound", "nothing"])
def test_the_plan_is_the_librarys(shelf, law, known):
    found = ask(shelf, participation=law, **({} if known else {"bound": "none"}))
    plan = make_plan(PROBLEM, known, participation=law)
    row = found["rows"][0]
    assert row["clients_per_round"] == plan.prediction.clients_per_round
    for name in ("local_steps", "rounds", "time_s", "energy_j", "cost"):
        assert row[name] == getattr(plan.prediction, name), name
    assert found["message"].startswith(plan.message)
    assert found["participation"]["law"] == plan.participation == law
    assert [row["remark"] for row in found["rows"] if row["role"] == "other"] != []


def test_the_usual_law_is_turns_only_where_nothing_was_measured(shelf, no_bound):
    assert ask(shelf)["participation"]["law"] == "uniform"
    assert ask(shelf, bound="none")["participation"]["law"] == "turns"
    assert ask(no_bound)["participation"]["law"] == "turns"
    own = {"bound": "own", "a0": 3750.0, "b0": 1.0, "c0": 26.0}
    assert ask(no_bound, **own)["participation"]["law"] == "uniform"
    assert ask(no_bound, participation="weighted")["participation"]["law"] == "weighted"


def test_groups_are_those_of_the_plan_in_words_too(shelf):
    found = ask(shelf, participation="turns")
    plan = make_plan(PROBLEM, EXAMPLE_BOUND, participation="turns")
    groups = found["participation"]["groups"]
    assert [group["time_s"] for group in groups] == [group.time_s for group in plan.groups]
    assert len({group["colour"] for group in groups}) == len(groups) > 1
    shown = group_table(plan.groups, title="")  # as in the terminal
    assert found["participation"]["table"] == {"head": shown.head, "rows": shown.rows}
    rounds = found["pictures"]["turns"]["data"][1]
    rows = [
        round(base + height / 2) for base, height in zip(rounds["base"], rounds["y"], strict=True)
    ]
    in_a_row = -(-len(groups) // 20)  # of more than 20 groups some share one
    assert rows == [group // in_a_row for group in first_turns(plan)]


def test_pictures_over_k_and_e_are_for_uniform_sampling_with_a_bound_alone(shelf):
    drawn = {"frontier", "map", "steps", "clients"}
    for law in LAWS:
        for bound in ("given", "none"):
            pictures = ask(shelf, participation=law, bound=bound)["pictures"]
            is_mapped = law == "uniform" and bound == "given"
            shown = {name for name in drawn if pictures[name] is not None}
            assert shown == (drawn if is_mapped else set())
            assert bool(pictures["note"]) is not is_mapped
            for name in ("turns", "bills"):
                assert (pictures[name] is not None) is (law == "turns")


@pytest.mark.parametrize("file", [None, SETUP3.encode(), SAMPLES], ids=["example", "alike", "few"])
def test_every_device_stands_in_the_histogram_with_its_group(shelf, file):
    state = {"participation": "turns"}
    if file is not None:
        state["fleet"], _ = shelf.add_fleet(Upload("mine.csv", file))
    question = read_state({"energy_weight": 0.3, **state}, shelf)
    found = answer(question)
    bars, groups = found["pictures"]["histogram"]["data"][0], found["participation"]["groups"]
    assert {group["colour"] for group in groups} <= set(bars["marker"]["color"])
    of = [text.rpartition("<br>")[2] for text in bars["hovertext"]]
    places = [-1 if text == "without data" else int(text.split()[1]) - 1 for text in of]
    devices = Counter()
    for group, count in zip(places, bars["y"], strict=True):
        devices[group] += count
    idle = int((question.fleet.count * (question.fleet.samples == 0)).sum())
    expected = {place: group["clients"] for place, group in enumerate(groups)}
    assert devices == expected | ({-1: idle} if idle else {})
    # Bars of a bin stand on each other, and a group ends where its slowest device does.
    tops = {}
    for left, base, count in zip(bars["x"], bars["base"], bars["y"], strict=True):
        assert base == tops.get(left, 0)
        tops[left] = base + count
    for place, group in enumerate(groups):
        right = max(
            left + width
            for left, width, one in zip(bars["x"], bars["width"], places, strict=True)
            if one == place
        )
        assert right >= group["time_s"] * 0.999


def test_ones_own_setting_is_compared_with_the_plan_by_turns(shelf):
    state = {"current_clients_per_round": 10, "current_local_steps": 50}
    rows = ask(shelf, participation="turns", **state)["rows"]
    own = price_setting(PROBLEM, EXAMPLE_BOUND, uniform(10, 50))
    (row,) = (row for row in rows if row["role"] == "current")
    assert row["cost"] == own.cost
    assert row["remark"] == extra(own.cost / rows[0]["cost"])


def test_what_is_assumed_moves_the_plan(shelf):
    found = ask(shelf, bound="none", rounds=400, saturation_low=20, saturation_high=80)
    known = Saturation.within(20.0, 80.0, rounds=200.0)
    plan = make_plan(PROBLEM, known)
    assert found["rows"][0]["cost"] == plan.prediction.cost and found["regret"] == plan.regret
    for state, word in (({"rounds": 0}, "rounds"), ({"saturation_low": 300}, "saturation")):
        with pytest.raises(InputError, match=word):
            read_state({"bound": "none", **state}, shelf)


def test_limits_that_nothing_meets_or_that_no_groups_can_keep(shelf):
    for bound in ("given", "none"):
        found = ask(shelf, participation="turns", deadline_s=5.0, bound=bound)
        assert not found["success"] and found["participation"]["groups"] == []
        assert found["pictures"]["turns"] is None
        assert "group" not in found["pictures"]["histogram"]["head"]
    with pytest.raises(InputError, match="cannot be cut into groups"):
        ask(shelf, participation="turns", min_clients_per_round=60, max_clients_per_round=70)


@pytest.mark.parametrize("law", ["shuffled", "weighted"])
def test_what_is_attainable_is_attainable_by_the_law_itself(shelf, law):
    limits = {"deadline_s": 1.0, "energy_budget_j": 1e-3, "max_rounds": 5}
    rows = ask(shelf, participation=law, **limits)["rows"]
    assert [row["role"] for row in rows] == ["attainable"] * 3
    least = dict(zip(limits, rows, strict=True))
    for row in rows:
        own = LAWS[law].of(PROBLEM, row["local_steps"], row["clients_per_round"])
        setting = Setting(participation=own, local_steps=row["local_steps"])
        assert price_setting(PROBLEM, EXAMPLE_BOUND, setting).time_s == row["time_s"]
        assert row["time_s"] >= least["deadline_s"]["time_s"]
        assert row["energy_j"] >= least["energy_budget_j"]["energy_j"]
        assert row["rounds"] >= least["max_rounds"]["rounds"]


def test_scales_stay_while_limits_and_weights_move(shelf):
    scales = ask(shelf, bound="none")["scales"]
    assert ask(shelf, bound="none", deadline_s=900.0, energy_weight=0.8)["scales"] == scales
    plan = make_plan(PROBLEM)
    low, high = scales["deadline_s"][0], scales["deadline_s"][-1]
    assert low < plan.prediction.time_s < high
    assert scales["energy_budget_j"][0] < plan.prediction.energy_j


@pytest.mark.parametrize("law", LAWS)
def test_doubts_are_of_the_law_and_say_what_turns_would_cost(shelf, law):
    found = doubts(read_state({"energy_weight": 0.3, "participation": law}, shelf))
    assert found["sensitivity"]
    for case in found["sensitivity"]:
        assert (case["clients_per_round"] is None) is (law == "turns")
    turns = make_plan(PROBLEM, EXAMPLE_BOUND, participation="turns").prediction.cost
    plan = make_plan(PROBLEM, EXAMPLE_BOUND, participation=law).prediction.cost
    words = f"Groups that take turns would cost {1 - turns / plan:.0%} less."
    assert found["turns"] == ("" if law == "turns" else words)


def test_a_fleet_of_many_devices_is_planned_by_every_law(shelf):
    size = 8193  # one more than are looked at one by one
    for law in LAWS:
        found = ask(shelf, participation=law, fleet="drawn", num_clients=size, max_local_steps=50)
        everyone = next(row for row in found["rows"] if row["name"].startswith("all clients"))
        assert everyone["clients_per_round"] == size
        assert sum(found["pictures"]["histogram"]["data"][0]["y"]) == size


def test_a_planned_study_is_listed_by_its_law(tmp_path):
    url = f"sqlite:///{tmp_path}/fedplan.db"
    plans = [
        {"participation": "turns", "groups": [{}] * 8, "clients_per_round": None},
        {"participation": "shuffled", "groups": [], "clients_per_round": 3},
        {"clients_per_round": 5},  # of a study with pilots
    ]
    with Store(url) as store:
        for number, plan in enumerate(plans):
            study = store.save_study(f"study {number}", {}, EXPERIMENT)
            store.save_step(study, "plan", {"local_steps": 20, "why": "So.", **plan})
    labels = [study["plan"]["label"] for study in reversed(runs.listing(url)["studies"])]
    assert labels == ["8 groups, E=20", "shuffled K=3, E=20", "K=5, E=20"]


def test_uniform_limits_hold_for_the_law_too(shelf):
    found = ask(shelf, participation="turns", max_clients_per_round=3)
    assert max(group["clients"] for group in found["participation"]["groups"]) <= 3
    limits = Constraints(max_clients_per_round=3)
    plan = make_plan(problem_of(FLEET, 0.3, None, limits), EXAMPLE_BOUND, participation="turns")
    assert found["rows"][0]["cost"] == plan.prediction.cost
