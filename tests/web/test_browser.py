"""The page in a real browser: what it shows is what the library computes, whoever moves what."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from conftest import PILOTS, SETUP3
from explorer_page import SIZES, figure, settle, shown, slide, until
from planned import make_plan
from served import end_server, start_server
from stored_runs import EXPERIMENT, make_run

from fedplan import Constraints, Prices, compute_frontier, draw_fleet, estimate_bound
from fedplan.core.records import RoundRecord
from fedplan.participation import uniform
from fedplan.planning.example import EXAMPLE_BOUND, example_fleet
from fedplan.store import Store
from fedplan.tables import read_fleet, read_pilots
from fedplan.web.shelf import Shelf
from fedplan.web.state import read_state

pytestmark = pytest.mark.e2e

FLEET = example_fleet()


def star(page):
    """Where the frontier and the map show the plan."""
    names = [name for name in figure(page, "map") if name and name.startswith("fedplan: ")]
    return tuple(int(n.replace(",", "")) for n in re.findall(r"=([\d,]+)(?=,|$)", names[0]))


def test_moving_sliders_shows_what_the_library_computes(open_page):
    page = open_page()
    assert shown(page) == make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.3).setting.pair
    for weight in (0.0, 0.55, 1.0):
        slide(page, "energy_weight", weight)
        plan = make_plan(FLEET, EXAMPLE_BOUND, energy_weight=weight)
        assert shown(page) == plan.setting.pair == star(page)
        trace = figure(page, "map")[f"fedplan: K={plan.setting.pair[0]}, E={plan.setting.pair[1]}"]
        assert (trace["y"], trace["x"]) == ([plan.setting.pair[0]], [plan.setting.pair[1]])
        assert plan.message in page.inner_text("#message")
    page.fill("#deadline_s", "1400")
    limits = Constraints(deadline_s=1400.0)
    plan = make_plan(FLEET, EXAMPLE_BOUND, energy_weight=1.0, constraints=limits)
    assert shown(page) == plan.setting.pair == star(page)
    assert "over a limit" in figure(page, "frontier")
    page.fill("#max_clients_per_round", "20")
    page.fill("#deadline_s", "")
    limits = Constraints(max_clients_per_round=20)
    plan = make_plan(FLEET, EXAMPLE_BOUND, energy_weight=1.0, constraints=limits)
    assert shown(page) == plan.setting.pair
    points = compute_frontier(FLEET, EXAMPLE_BOUND, constraints=limits)
    page.click("#frontier details summary")
    rows = page.locator("#frontier tbody tr th").all_inner_texts()
    ours = [f"K={p.clients_per_round}, E={p.local_steps}" for p in points]
    assert rows == ours


def test_prices_and_ones_own_setting(open_page):
    page = open_page()
    page.check("input[name=objective][value=prices]")
    page.fill("#price_hour", "5")
    page.fill("#price_kwh", "0.5")
    page.fill("#price_client_round", "0.001")
    page.fill("#current_clients_per_round", "10")
    page.fill("#current_local_steps", "50")
    prices = Prices(per_hour=5.0, per_kwh=0.5, per_client_round=0.001)
    assert shown(page) == make_plan(FLEET, EXAMPLE_BOUND, prices=prices).setting.pair
    assert page.inner_text("#rows tr[data-role=current] td:nth-child(2)") == "10"
    assert "your setting" in " ".join(filter(None, figure(page, "map")))


def test_a_click_on_the_frontier_takes_that_setting(open_page):
    page = open_page()
    page.wait_for_selector("#frontier .main-svg")
    page.locator("#frontier").scroll_into_view_if_needed()
    x, y = page.evaluate(
        """() => {
          const plot = document.querySelector("#frontier .plot");
          const {x, y} = plot.data.find((trace) => trace.name === "frontier");
          const {xaxis, yaxis} = plot._fullLayout;
          const corner = plot.getBoundingClientRect();
          return [corner.x + xaxis._offset + xaxis.d2p(x.at(-1)),
                  corner.y + yaxis._offset + yaxis.d2p(y.at(-1))];
        }"""
    )
    page.mouse.move(x + 40, y - 40)
    page.mouse.move(x, y, steps=5)
    page.wait_for_selector("#frontier .hovertext")
    page.mouse.click(x, y)
    until(page, "document.getElementById('current_local_steps').value !== ''")
    last = compute_frontier(FLEET, EXAMPLE_BOUND)[-1]
    settle(page)
    assert page.input_value("#current_clients_per_round") == str(last.clients_per_round)
    assert page.input_value("#current_local_steps") == str(last.local_steps)
    row = page.inner_text("#rows tr[data-role=current]")
    assert row.startswith("your setting")


def test_nothing_meets_the_limits(open_page):
    page = open_page()
    page.fill("#deadline_s", "10")
    page.wait_for_selector("text=No setting meets the limits")
    limits = Constraints(deadline_s=10.0)
    plan = make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.3, constraints=limits)
    assert plan.message in page.inner_text("#message")
    assert page.is_hidden("#steps") and page.is_visible("#frontier")
    page.fill("#deadline_s", "")
    assert shown(page) == make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.3).setting.pair


def test_a_good_and_a_bad_file(open_page, tmp_path):
    page = open_page()
    (tmp_path / "fleet.csv").write_text(SETUP3)
    (tmp_path / "pilots.csv").write_text(PILOTS)
    bad = tmp_path / "bad.csv"
    bad.write_text("step_time_s,comm_time_s,step_energy_j,comm_energy_j\n0,1,1,1\n1,-2,1,x\n")
    page.click("#fleet-part summary")
    page.set_input_files("#fleet-file", bad)
    page.wait_for_selector("#problems li")
    problems = page.locator("#problems li").all_inner_texts()
    assert len(problems) == 3 and all("bad.csv, line" in problem for problem in problems)
    page.set_input_files("#fleet-file", tmp_path / "fleet.csv")
    page.wait_for_selector("#problems", state="hidden")
    page.click("#bound-part summary")
    page.set_input_files("#pilots-file", tmp_path / "pilots.csv")
    page.wait_for_selector("text=regret at most")
    fleet = read_fleet(tmp_path / "fleet.csv")
    estimate = estimate_bound(read_pilots(tmp_path / "pilots.csv"), 100)
    assert shown(page) == make_plan(fleet, estimate, energy_weight=0.3).setting.pair
    page.select_option("#bound", "own")
    settle(page)
    a0 = float(page.input_value("#a0"))
    assert a0 == pytest.approx(estimate.bound.a0, rel=1e-5)
    slide(page, "a0", "0")
    settle(page)
    low, high = estimate.intervals["a0"]
    assert low * 0.99 <= float(page.input_value("#a0")) <= high


def test_drawing_a_fleet_and_what_is_copied(open_page, fedplan, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = open_page()
    page.click("#fleet-part summary")
    page.select_option("#fleet", "drawn")
    page.fill("#num_clients", "40")
    slide(page, "straggler_share", 0.2)
    setting = shown(page)
    assert "40 devices" in page.inner_text("#basis")
    with page.expect_download() as download:
        page.click("#download")
    download.value.save_as(tmp_path / "drawn-fleet.csv")
    page.click("text=Copy command")
    page.wait_for_selector("text=Copied")
    command = page.evaluate("navigator.clipboard.readText()")
    printed = fedplan(*shlex.split(command)[1:], "--format", "json").json
    assert (printed["clients_per_round"], printed["local_steps"]) == setting
    page.click("text=Copy Python")
    until(page, "document.getElementById('copied').textContent.includes('python')")
    names = {}
    exec(page.evaluate("navigator.clipboard.readText()"), names)  # noqa: S102
    assert names["plan"].setting.pair == setting
    assert names["plan"].message in page.inner_text("#message")
    drawn = names["fleet"]
    assert len(drawn) == 40 and isinstance(
        drawn, type(draw_fleet(2, step_time_s=(1, 0), comm_time_s=(1, 0)))
    )


def test_a_drawn_fleet_begins_with_the_servers_usual_values(open_page):
    page = open_page()
    page.click("#fleet-part summary")
    page.select_option("#fleet", "drawn")
    shown(page)
    shelf = Shelf("sqlite:///unused.db")
    asked = json.loads(page.evaluate("document.documentElement.dataset.shown"))
    usual = read_state({"fleet": "drawn"}, shelf).devices
    assert read_state(asked, shelf).devices.python == usual.python


def test_a_link_restores_the_view(open_page):
    page = open_page()
    slide(page, "energy_weight", 0.62)
    page.fill("#max_local_steps", "12")
    page.fill("#current_clients_per_round", "7")
    page.fill("#current_local_steps", "9")
    page.click("#fleet-part summary")
    page.select_option("#fleet", "drawn")
    page.fill("#num_clients", "64")
    before = shown(page)
    until(page, "location.hash.includes('num_clients=64')")
    fragment = page.evaluate("location.hash")
    other = open_page(fragment)
    assert shown(other) == before
    for key in ("energy_weight", "max_local_steps", "current_local_steps", "num_clients"):
        assert other.input_value(f"#{key}") == page.input_value(f"#{key}"), key
    assert other.inner_text("#rows") == page.inner_text("#rows")
    other.click("#reset")
    assert shown(other) == make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.3).setting.pair


def test_the_keyboard_alone(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "answer"
    page.focus("#energy_weight-slider")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert page.input_value("#energy_weight") == "0.35"
    assert shown(page) == make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.35).setting.pair
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "energy_weight"
    page.keyboard.press("Control+a")
    page.keyboard.type("0.8")
    plan = make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.8)
    assert shown(page) == plan.setting.pair
    # The plan is said to who cannot see it.
    k, e = plan.setting.pair
    until(
        page,
        "(text) => document.getElementById('live').textContent.startsWith(text)",
        arg=f"{k} clients per round, {e} local steps",
    )
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    # The whole page can be walked through; nothing keeps the focus.
    seen = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"show-runs", "deadline_s", "command", "python", "rows", "BODY"} - seen <= {
        "rows",
        "BODY",
    }


def test_every_control_has_a_name_and_every_figure_a_table(open_page):
    page = open_page()
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button")].filter((control) =>
             !(control.labels?.length || control.getAttribute("aria-label") ||
               control.textContent.trim())
           ).map((control) => control.outerHTML)"""
    )
    assert nameless == []
    settle(page)
    for name in ("frontier", "map", "steps", "clients", "histogram"):
        assert page.locator(f"#{name} details table tbody tr").count() > 3, name
    assert page.evaluate("document.documentElement.lang") == "en"


def test_wrong_numbers_are_all_said_and_marked(open_page):
    page = open_page()
    page.fill("#energy_weight", "7")
    page.fill("#deadline_s", "-5")
    until(page, "document.querySelectorAll('#problems li').length === 2")
    for key in ("energy_weight", "deadline_s"):
        assert page.get_attribute(f"#{key}", "aria-invalid") == "true"
    page.fill("#energy_weight", "0.3")
    page.fill("#deadline_s", "")
    page.wait_for_selector("#problems", state="hidden")
    assert page.get_attribute("#energy_weight", "aria-invalid") is None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_in_light_and_dark(open_page, size, scheme):
    page = open_page("#current_clients_per_round=10&current_local_steps=50", size, scheme)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= SIZES[size][0]
    assert page.locator("#histogram .main-svg").count() == 0  # out of sight, and not drawn yet
    page.locator("#histogram").scroll_into_view_if_needed()
    page.wait_for_selector("#histogram .main-svg")
    # Text and page differ enough to be read: 4.5 to 1, by the WCAG.
    contrast = page.evaluate(
        """() => {
          const linear = (part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
          const light = (rgb) => rgb.match(/[\\d.]+/g).slice(0, 3)
            .map((part) => linear(Number(part) / 255))
            .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
          const card = light(getComputedStyle(document.querySelector("#answer")).backgroundColor);
          const names = ["#headline", "#headline b", "#numbers dt", "#message", "#basis", ".skip"];
          return names.map((name) => {
            const ink = light(getComputedStyle(document.querySelector(name)).color);
            return (Math.max(ink, card) + 0.05) / (Math.min(ink, card) + 0.05);
          });
        }"""
    )
    assert min(contrast) >= 4.5, contrast


def test_on_a_phone_the_answer_is_two_lines_and_wide_tables_scroll_in_their_boxes(open_page):
    page = open_page("#current_clients_per_round=10&current_local_steps=50", "phone")
    assert page.locator("#answer").bounding_box()["height"] <= 90
    k, e = shown(page)
    words = f"Use K = {k} of 100 clients per round, E = {e} local steps"
    assert page.text_content("#headline") == words  # all of it is read out
    assert page.locator("#numbers div:visible").count() == 4
    page.locator("#frontier summary").click()
    page.wait_for_selector("#frontier details table")
    boxes = page.evaluate(
        """() => [...document.querySelectorAll("#plan-view table")]
          .filter((table) => table.rows.length)
          .map((table) => table.closest(".scroll"))
          .map((box) => box && [box.tabIndex, box.getAttribute("role"),
            Boolean(box.getAttribute("aria-label") ?? box.getAttribute("aria-labelledby")),
            getComputedStyle(box).overflowX])"""
    )
    assert len(boxes) >= 4
    assert all(box == [0, "region", True, "auto"] for box in boxes)
    page.focus(".scroll:has(#rows)")
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('.scroll:has(#rows)').scrollLeft > 0")


def test_runs_are_compared_and_seen_while_they_go_on(open_page, browser, tmp_path):
    url = f"sqlite:///{tmp_path}/fedplan.db"
    record = {"accuracy": None, "cohort": (1, 2)}
    with Store(url) as store:
        for seed in range(3):
            store.save_run(EXPERIMENT, make_run(seed=seed, rounds=8))
        store.save_study("mine", {"training": {"target-loss": 0.25}}, EXPERIMENT)
        made = start_server(tmp_path, "--store", url)
        try:
            page = open_page(at=made)
            page.click("#show-runs")
            page.wait_for_selector("#runs tbody tr")
            lines = "document.querySelector('#losses .plot').data?.length - 1"  # but the target's
            until(page, f"{lines} === 3")
            assert "mine" in page.inner_text("#study")
            run = make_run(seed=1, rounds=8)
            trace = figure(page, "losses")["K=2, E=5, seed 1"]
            losses = [loss for loss in run.losses if loss is not None]
            assert trace["y"] == pytest.approx(losses, rel=1e-4)
            page.check("input[name=against][value=seconds]")
            until(
                page,
                "document.querySelector('#losses .plot').layout.xaxis.title.text === 'time (s)'",
            )
            trace = figure(page, "losses")["K=2, E=5, seed 1"]
            assert trace["x"][-1] == pytest.approx(run.time_s, rel=1e-4)
            page.uncheck("#runs tbody tr:first-child input")
            until(page, f"{lines} === 2")
            for number in range(2):  # a live run appears by itself, and grows
                one = RoundRecord(
                    round=number, loss=2.0 - number, seconds=1.0, joules=1.0, **record
                )
                store.save_round(EXPERIMENT, uniform(3, 7), 0, one)
                until(
                    page,
                    "(rounds) => [...document.querySelectorAll('#runs tbody tr')].some((row) => "
                    "row.textContent.includes('K=3, E=7') && row.cells[2].textContent === rounds)",
                    arg=str(number),
                )
            page.check("#runs tbody tr:first-child input")
            page.wait_for_selector("text=So far K=3, E=7, seed 0: 1 round")
            page.close()  # or it asks a server that is gone
        finally:
            assert end_server(made) == 0


def test_answers_keep_up_with_a_slider_and_the_last_one_counts(open_page):
    page = open_page()
    page.evaluate(
        """async () => {
          const slider = document.getElementById("energy_weight-slider");
          slider.focus();
          for (let step = 0; step <= 60; step += 1) {
            slider.value = step / 100;
            slider.dispatchEvent(new Event("input", {bubbles: true}));
            await new Promise(requestAnimationFrame);
          }
        }"""
    )
    assert shown(page) == make_plan(FLEET, EXAMPLE_BOUND, energy_weight=0.6).setting.pair
    assert (
        json.loads(page.evaluate("document.documentElement.dataset.shown"))["energy_weight"] == 0.6
    )
