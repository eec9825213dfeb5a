"""Who trains when, on the page: the control, the groups, their picture, and what is hidden."""

from __future__ import annotations

import re

import pytest
from explorer_page import SIZES, figure, settle, shown, slide, until
from served import end_server, start_server

from fedplan import Objective, Problem, make_plan
from fedplan.figures.style import group_colours
from fedplan.figures.turns import first_turns
from fedplan.planning.example import EXAMPLE_BOUND, example_fleet
from fedplan.words import share

pytestmark = pytest.mark.e2e

OVER_K = ("frontier", "map", "steps", "clients")
OF_TURNS = ("turns", "bills")


def plan_by(law, weight=0.3, known=EXAMPLE_BOUND):
    problem = Problem(fleet=example_fleet(), objective=Objective.weighted(weight))
    return make_plan(problem, known, participation=law)


def choose(page, law):
    page.check(f"input[name=participation][value={law}]")
    settle(page)


def chosen(page):
    return page.evaluate("document.querySelector('input[name=participation]:checked').value")


def visible_figures(page):
    return [name for name in (*OVER_K, *OF_TURNS, "histogram") if page.is_visible(f"#{name}")]


def into_sight(page, name):
    """Scroll a figure into view and wait for its drawing."""
    page.locator(f"#{name}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#{name} .main-svg")


def test_turns_are_told_in_words_in_a_table_and_in_colours(open_page):
    page = open_page()
    choose(page, "turns")
    plan = plan_by("turns")
    steps = plan.prediction.local_steps
    words = f"{len(plan.groups)} groups take turns, E = {steps} local steps"
    assert page.text_content("#headline") == words
    assert plan.message in page.inner_text("#message")
    rows = page.locator("#groups tbody tr")
    assert rows.count() == len(plan.groups)
    cells = rows.nth(0).locator("th, td").all_inner_texts()
    assert cells[0].strip() == "1" and cells[1] == str(plan.groups[0].clients)
    assert cells[3] == share(plan.groups[0].frequency)
    swatches = page.evaluate(
        """() => [...document.querySelectorAll("#groups .swatch")].map((swatch) =>
             getComputedStyle(swatch).backgroundColor)"""
    )
    colours = group_colours(len(plan.groups))
    assert swatches == [
        f"rgb({', '.join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))})"
        for colour in colours
    ]
    into_sight(page, "histogram")
    bars = page.evaluate(
        """() => { const {marker, y} = document.querySelector("#histogram .plot").data[0];
             return [[...marker.color], [...y]]; }"""
    )
    devices = dict.fromkeys(colours, 0)
    for colour, count in zip(*bars, strict=True):
        devices[colour] += count
    assert list(devices.values()) == [group.clients for group in plan.groups]
    until(
        page,
        "(text) => document.getElementById('live').textContent.startsWith(text)",
        arg=f"{len(plan.groups)} groups take turns, {steps} local steps",
    )


def test_the_picture_of_turns_has_every_round_as_long_as_its_group_takes(open_page):
    page = open_page("#participation=turns")
    into_sight(page, "turns")
    plan = plan_by("turns")
    order = first_turns(plan)
    lengths = page.evaluate(
        """() => document.querySelector("#turns .plot").data
             .filter((trace) => trace.type === "bar" && trace.xaxis === "x")
             .flatMap((trace) => trace.x.map((start, place) =>
               [start, trace.base[place] + trace.y[place] / 2, trace.width[place]]))"""
    )
    in_a_row = -(-len(plan.groups) // 20)
    rows = -(-len(plan.groups) // in_a_row)
    turns = sorted(bar for bar in lengths if bar[1] < rows)  # the rest is uniform
    assert [round(row) for _, row, _ in turns] == [group // in_a_row for group in order]
    seconds = [plan.groups[group].time_s for group in order]
    assert [length for *_, length in turns] == pytest.approx(seconds, rel=1e-3)
    assert f"{len(order)} rounds in turns" in page.inner_text("#turns > p")
    page.click("#turns details summary")
    page.wait_for_selector("#turns tbody tr")  # it is filled once it is open
    assert page.locator("#turns tbody tr").count() == len(order)
    into_sight(page, "bills")
    page.click("#bills details summary")
    page.wait_for_selector("#bills tbody tr")
    rows = page.locator("#bills tbody tr").all_inner_texts()
    assert len(rows) == 6 and rows[0].startswith("in turns") and "time to target:" in rows[0]


def test_switching_laws_shows_what_each_has_and_leaves_nothing_dead(open_page):
    page = open_page()
    assert chosen(page) == "uniform"
    page.click("#bound-part summary")
    for law in ("turns", "weighted", "shuffled", "uniform"):
        choose(page, law)
        assert chosen(page) == law
        is_uniform = law == "uniform"
        wanted = OVER_K if is_uniform else OF_TURNS * (law == "turns")
        assert visible_figures(page) == [*wanted, "histogram"]
        assert page.is_visible("#method") is is_uniform
        assert page.is_visible("#no-map") is not is_uniform
        assert page.is_visible("#groups-part") is (law == "turns")
        assert page.is_visible(".slowest") is (law in ("uniform", "shuffled"))
        plan = plan_by(law)
        if law != "turns":
            assert shown(page) == plan.setting.pair
        text = page.locator("#rows tr[data-role=chosen] td").all_inner_texts()
        assert text[1] == str(plan.prediction.local_steps)
        until(page, "!document.getElementById('doubts').classList.contains('stale')")
        heads = page.locator("#sensitivity thead th").all_inner_texts()
        assert ("best K" in heads) is (law != "turns")
    into_sight(page, "map")
    k, e = plan_by("uniform").setting.pair
    assert figure(page, "map")[f"fedplan: K={k}, E={e}"]["x"] == [e]


def test_what_turns_would_save_is_said_beside_the_other_laws(open_page):
    page = open_page()
    saved = 1 - plan_by("turns").prediction.cost / plan_by("uniform").prediction.cost
    page.wait_for_selector(f"#law-other:text('would cost {saved:.0%} less')")
    choose(page, "turns")
    assert page.text_content("#law-other") == ""


def test_the_law_is_kept_in_the_link_and_moves_with_sliders(open_page):
    page = open_page()
    choose(page, "turns")
    slide(page, "energy_weight", 0.7)
    settle(page)
    plan = plan_by("turns", 0.7)
    assert f"{len(plan.groups)} groups" in page.inner_text("#headline")
    until(page, "location.hash.includes('participation=turns')")
    until(page, "location.hash.includes('energy_weight=0.7')")
    other = open_page(page.evaluate("location.hash"))
    assert chosen(other) == "turns"
    assert other.inner_text("#rows") == page.inner_text("#rows")
    assert other.inner_text("#groups") == page.inner_text("#groups")
    other.click("#reset")
    until(other, "document.querySelector('input[name=participation]:checked').value === 'uniform'")


def test_where_nothing_was_measured_groups_take_turns(open_page, tmp_path):
    (tmp_path / "fleet.csv").write_text(
        "step_time_s,comm_time_s,step_energy_j,comm_energy_j\n"
        + "".join(f"{0.1 * n:.1f},2,0.1,0.2\n" for n in range(1, 13))
    )
    made = start_server(tmp_path, "--fleet", "fleet.csv")
    try:
        page = open_page(at=made)
        assert chosen(page) == "turns" and visible_figures(page) == [*OF_TURNS, "histogram"]
        assert "nothing measured" in page.inner_text("#basis")
        page.click("#bound-part summary")
        assert not page.is_visible("#method") and not page.is_visible("#a0")
        before = page.inner_text("#rows")
        page.fill("#rounds", "1000")
        settle(page)
        assert page.inner_text("#rows") != before
        assert "--rounds 1000.0" in page.inner_text("#command")
        page.select_option("#bound", "own")
        settle(page)
        assert chosen(page) == "uniform" and page.is_visible("#a0")
        assert visible_figures(page) == [*OVER_K, "histogram"]
        assert not page.is_visible("#rounds")
        page.close()  # or it asks a server that is gone
    finally:
        assert end_server(made) == 0


def test_a_bound_can_be_left_out_of_the_example_too(open_page):
    page = open_page()
    page.click("#bound-part summary")
    page.select_option("#bound", "none")
    settle(page)
    plan = plan_by(None, known=None)
    assert chosen(page) == "turns" and plan.message in page.inner_text("#message")
    with page.expect_download() as download:  # the example's command would bring its bound
        page.click("#download")
    assert download.value.suggested_filename == "example-fleet.csv"
    page.select_option("#bound", "given")
    settle(page)
    assert chosen(page) == "uniform" and page.is_visible("#map")


def test_groups_that_cannot_be_made_and_limits_that_cannot_be_met_are_said(open_page):
    page = open_page("#participation=turns")
    page.fill("#min_clients_per_round", "60")
    page.fill("#max_clients_per_round", "70")
    page.wait_for_selector("#problems li:text('cannot be cut into groups')")
    page.fill("#min_clients_per_round", "")
    page.fill("#max_clients_per_round", "")
    page.wait_for_selector("#problems", state="hidden")
    page.fill("#deadline_s", "10")
    page.wait_for_selector("text=No setting meets the limits")
    settle(page)
    assert visible_figures(page) == ["histogram"] and not page.is_visible("#groups-part")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_turns_fit_the_screen(open_page, size, scheme):
    page = open_page("#participation=turns&fleet=drawn&num_clients=700", size, scheme)
    into_sight(page, "turns")
    into_sight(page, "histogram")
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    for name in OF_TURNS:
        into_sight(page, name)
        edges = page.evaluate(
            """(name) => {
                 const box = document.querySelector(`#${name} .plot`).getBoundingClientRect();
                 return [...document.querySelectorAll(`#${name} .plot text`)]
                   .map((text) => text.getBoundingClientRect())
                   .filter(({width}) => width)
                   .flatMap(({left, right}) => [left - box.left, box.right - right]); }""",
            name,
        )
        assert min(edges) >= -1  # no text is cut off
    if size == "phone":
        assert page.locator("#answer").bounding_box()["height"] <= 90
        assert re.match(r"\d+ groups take turns", page.inner_text("#headline"))


def test_the_picture_shrinks_where_the_screen_becomes_narrow(open_page):
    page = open_page("#participation=turns")
    into_sight(page, "turns")
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator("#turns").scroll_into_view_if_needed()
    until(page, "document.querySelector('#turns .main-svg').getBoundingClientRect().width < 700")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
