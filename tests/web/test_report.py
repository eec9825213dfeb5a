"""`fedplan report`: what the page says of studies of every kind, and that it breaks nowhere."""

from __future__ import annotations

import html
import re
import shlex
import sqlite3
import tomllib
from contextlib import closing
from html.parser import HTMLParser

import pytest
from scripted import follow_script

from fedplan.core.course import Decision
from fedplan.core.records import Observation, RoundRecord, RunRecord
from fedplan.participation import LAWS, uniform
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.devices import save_names
from fedplan.studies.experiment import build_experiment
from fedplan.studies.grid import Grid
from fedplan.studies.sweep import sweep_study
from fedplan.studies.workflow import run_study

MOST_BYTES = 8_000_000
HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(2)>&amp;'


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/runs.db"
    monkeypatch.setenv("FEDPLAN_STORE", url)
    return url


def run(fedplan, *words):
    return fedplan("run", "demo", *words, "-q", "--format", "json").json


def page_of(fedplan, tmp_path, name="demo"):
    answer = fedplan("report", name, "-o", "report.html")
    assert answer.code == 0 and answer.out == "Written: report.html\n", answer.err
    return (tmp_path / "report.html").read_text()


def words_of(page):
    """What a reader sees: no scripts, no styles, no tags, one space between words."""
    shown = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown)).split())


class Outline(HTMLParser):
    """Headings, images, tables, links and outside addresses of a page."""

    def __init__(self, page):
        super().__init__()
        self.headings, self.alts, self.addresses, self.ids, self.links = [], [], [], [], []
        self.tables = self.captions = self.scripts = 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))
        if tag == "img":
            self.alts.append(given.get("alt"))
        self.addresses += [given[name] for name in ("src", "action") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.tables += tag == "table"
        self.captions += tag == "caption"
        self.scripts += tag == "script" and given.get("type") != "application/json"


def check_structure(page):
    outline = Outline(page)
    assert len(page.encode()) < MOST_BYTES
    assert outline.headings[0] == 1 and outline.headings.count(1) == 1
    assert set(outline.headings[1:]) == {2}
    assert outline.tables == outline.captions > 0
    assert all(alt and len(alt) > 20 for alt in outline.alts)
    assert all(address.startswith("data:") for address in outline.addresses)
    assert {link.removeprefix("#") for link in outline.links} == set(outline.ids)
    assert len(outline.ids) == len(set(outline.ids))
    return outline


def test_the_page_has_every_number_that_the_command_prints(fedplan, store, tmp_path, monkeypatch):
    follow_script(monkeypatch)
    answer = run(fedplan, "seeds=2", "energy-weight=0.3")
    page = page_of(fedplan, tmp_path)
    outline, words = check_structure(page), words_of(page)
    assert len(outline.alts) == 4 and outline.scripts == 2
    plan, measured = answer["plan"], answer["measured"]
    assert answer["message"] in words and "demo reached" in words
    groups = len(plan["participation"]["groups"])
    assert f"{groups} groups of devices that take turns" in words and groups == 4
    low, high = answer["predicted"]["rounds_interval"]
    assert f"{low:,.0f} to {high:,.0f}" in words and "energy weight 0.3" in words
    for one in measured["runs"]:
        setting = f"online 4 groups, E={one['local_steps']}"
        assert f"{setting} {one['seed']} {one['rounds']} {one['final_loss']:.4g}" in words
    for one in answer["course"]:
        assert f"{one['round']} turns 4 {one['local_steps']}" in words
    assert f"{answer['bill']['all_in']['cost']:.3g}"[:3] in words
    assert all(f"expected: {other['name']}" in words for other in answer["alternatives"])


def test_the_command_on_the_page_makes_the_same_page(fedplan, store, tmp_path):
    run(fedplan, "seeds=1", "energy-weight=0.25", "deadline-s=4000", "fleet-seed=3")
    page = page_of(fedplan, tmp_path)
    command = html.unescape(re.search(r"<code>(fedplan run .*?)</code>", page)[1])
    assert "seeds=1" in command and "deadline-s=4000" in command
    again = fedplan(*shlex.split(command)[1:], "-q", "--report", "again.html")
    assert again.code == 0 and again.err == "Written: again.html\n"
    assert (tmp_path / "again.html").read_text() == page
    assert fedplan("list", "--format", "json").json["studies"][0]["num_runs"] == len(
        fedplan("show", "demo", "--runs", "--format", "json").json["runs"]
    )


def test_a_study_of_ones_own_is_repeated_from_the_file_on_the_page(fedplan, store, tmp_path):
    mine = 'data = "synthetic"\nnum-clients = 12\n\n[training]\nlearning-rate = 0.05\n'
    mine += "rounds = 80\ntarget-loss = 1.0\nseeds = 2\n"
    mine += "\n[fleet]\nstep-time-s = 0.1\ncomm-time-s = 2\n"
    (tmp_path / "mine.toml").write_text(f"[task]\n{mine}")
    assert fedplan("run", "mine.toml", "-q").code in (0, 1)
    page = page_of(fedplan, tmp_path, "mine")
    text, command = map(html.unescape, re.findall(r"<code>(.*?)</code>", page, re.DOTALL)[:2])
    assert command == "fedplan run mine.toml"
    assert tomllib.loads(text) == tomllib.loads(f"[task]\n{mine}")
    original = read_study("mine.toml").configuration()
    (tmp_path / "mine.toml").write_text(text)
    assert read_study("mine.toml").configuration() == original


@pytest.mark.parametrize(
    ("overrides", "status", "figures"),
    [
        (("deadline-s=1", "participation=turns"), "infeasible", 0),
        (("learning-rate=1e200",), "diverged", 2),
        (("target-loss=0.01", "rounds=30"), "hopeless", 3),
        (("max-time-s=20",), "not reached", 3),
        (("target-loss=9",), "nothing to learn", 2),
    ],
)
def test_studies_that_came_to_nothing_are_explained(
    fedplan, store, tmp_path, overrides, status, figures
):
    answer = run(fedplan, *overrides)
    page = page_of(fedplan, tmp_path)
    outline, words = check_structure(page), words_of(page)
    assert answer["status"] == status and f"demo {status}" in words
    assert answer["message"] in words and len(outline.alts) == figures
    assert ("Training was not begun." in words) is (answer["measured"] is None)


SMALL = ("num-clients=8", "seeds=2")
PAPER = ("pilots=paper", "pairs=[[5,10],[10,20],[15,60]]", "upper-loss=1.8", "lower-loss=0.9")


@pytest.mark.parametrize("law", LAWS)
def test_a_study_by_any_law_is_reported(fedplan, store, tmp_path, law):
    answer = run(fedplan, f"participation={law}", *SMALL)
    page = page_of(fedplan, tmp_path)
    outline, words = check_structure(page), words_of(page)
    assert answer["status"] == "reached" and "demo reached" in words
    assert answer["message"] in words
    assert f"participation {law}" in words
    with Store(store) as opened:
        plan = opened.find_step(opened.studies()[0], "plan")
    assert plan["why"] in words
    groups = plan.get("groups", [])
    assert bool(groups) is (law == "turns") is ("Who trains when" in words)
    if groups:
        rows = re.search(r"Groups at the beginning, the fastest first.*?</table>", page, re.DOTALL)[
            0
        ]
        assert rows.count("<tr>") == len(groups) + 1
        assert len(outline.alts) == 3  # losses, turns and the bill


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("override", "status"), [("learning-rate=1e200", "diverged"), ("deadline-s=1", "infeasible")]
)
def test_a_study_by_any_law_that_came_to_nothing_is_explained(
    fedplan, store, tmp_path, law, override, status
):
    answer = run(fedplan, f"participation={law}", override, *SMALL)
    page = page_of(fedplan, tmp_path)
    check_structure(page)
    assert answer["status"] == status
    assert f"demo {status}" in words_of(page) and answer["message"] in words_of(page)


@pytest.mark.parametrize("law", LAWS)
def test_a_sweep_by_any_law_is_reported(fedplan, store, tmp_path, law):
    who = "groups=2,3" if law == "turns" else "clients-per-round=2,4"
    grid = (f"participation={law}", who, "local-steps=10,20", "rounds=40")
    answer = fedplan("sweep", "demo", *grid, *SMALL, "-q", "--format", "json").json
    page = page_of(fedplan, tmp_path)
    assert len(check_structure(page).alts) == 1 and answer["message"] in words_of(page)


def test_the_papers_pilots_predict_nothing(fedplan, store, tmp_path):
    answer = run(fedplan, *PAPER, "seeds=1")
    page = page_of(fedplan, tmp_path)
    check_structure(page)
    words = words_of(page)
    assert answer["plan"] and "training, predicted" not in words and "The paper's pilots" in words
    assert "of one training is what the pilots cost" in words


def drop_runs(tmp_path, where):
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        assert connection.execute(f"DELETE FROM runs WHERE {where}").rowcount
        connection.commit()


def test_a_study_that_was_killed_is_reported_as_far_as_it_got(fedplan, store, tmp_path):
    answer = run(fedplan, "seeds=3")
    drop_runs(tmp_path, "seed = 1")
    words = words_of(page_of(fedplan, tmp_path))
    assert "demo unfinished" in words and "2 of 3 runs are done" in words
    groups = len(answer["plan"]["participation"]["groups"])
    assert f"online {groups} groups, E={answer['plan']['local_steps']} 2" in words
    drop_runs(tmp_path, "1")
    page = page_of(fedplan, tmp_path)
    check_structure(page)
    words = words_of(page)
    assert "0 of 3 runs are done" in words and "Training was not begun." in words
    assert not Outline(page).alts


def test_pilots_of_the_paper_that_were_cut_off_are_reported(fedplan, store, tmp_path):
    run(fedplan, "seeds=1", *PAPER)
    drop_runs(tmp_path, "seed = 0 OR clients_per_round = 15")
    page = page_of(fedplan, tmp_path)
    assert "The pilots have not ended." in words_of(page) and len(Outline(page).alts) == 1


def test_a_study_of_a_version_that_designed_pilots_shows_its_runs(fedplan, store, tmp_path):
    experiment = build_experiment(read_study("demo", ["seeds=1"]))
    old = experiment.study.configuration()
    old["planning"] |= {"pilots": "designed", "pilot-budget": 0.4}
    with Store(store) as opened:
        opened.save_study("old", old, experiment.settings)
        run_study(experiment, opened)
    words = words_of(page_of(fedplan, tmp_path, "old"))
    assert "planned by an earlier version" in words and "1 run in the store" in words


def test_a_sweep_shows_its_grid(fedplan, store, tmp_path):
    grid = ("clients-per-round=2,5", "local-steps=20,40", "seeds=2")
    answer = fedplan("sweep", "demo", *grid, "-q", "--format", "json").json
    page = page_of(fedplan, tmp_path)
    outline, words = check_structure(page), words_of(page)
    assert len(outline.alts) == 1 and "demo swept" in words and answer["message"] in words
    command = html.unescape(re.search(r"<code>(fedplan sweep .*?)</code>", page)[1])
    assert set(grid) < set(shlex.split(command)) and "Runs 8 of 8" in words
    drop_runs(tmp_path, "local_steps = 20")
    words = words_of(page_of(fedplan, tmp_path))
    assert "demo unfinished" in words and "4 of 8 runs are done" in words


def test_one_of_anything_is_in_the_singular(fedplan, store, tmp_path):
    grid = ("participation=turns", "groups=1", "local-steps=1", "seeds=1", "rounds=1")
    fedplan("sweep", "demo", *grid, "-q")
    words = words_of(page_of(fedplan, tmp_path))
    asked = "1 number of groups that take turns and 1 of local steps, 1 seed each"
    assert asked in words and "1 group, E=1" in words


def observation(client, steps, seconds):
    return Observation(
        client=client, local_steps=steps, train_seconds=0.1 * steps, round_trip_seconds=seconds
    )


def test_a_study_on_a_live_federation_is_told_from_a_simulated_one(fedplan, store, tmp_path):
    study = read_study("demo", ["seeds=1"])
    live = build_experiment(study, federation="lab")
    with Store(store) as open_store:
        entry = live.save(open_store)
        save_names(open_store, entry, [f"partition-{k}" for k in range(20)])
        run_study(live, open_store)
    page = page_of(fedplan, tmp_path)
    check_structure(page)
    assert "the 20 nodes of the federation lab" in words_of(page)
    assert "fedplan run demo.toml --runner flower --federation lab" in words_of(page)
    with Store(store) as open_store:
        grid = Grid(clients_per_round=(2, 5), local_steps=(20,))
        sweep_study(live, grid, open_store)
    words = words_of(page_of(fedplan, tmp_path))
    assert "demo swept" in words and "Runs 2 of 2" in words
    assert "sweep demo.toml clients-per-round=2,5 local-steps=20 --runner flower" in words


def test_a_live_study_that_was_planned_from_a_profile_shows_its_runs(fedplan, store, tmp_path):
    live = build_experiment(read_study("demo", ["seeds=1"]), federation="lab")
    with Store(store) as open_store:
        open_store.save_step(live.save(open_store), "profile", {"clients": [], "observations": []})
        run = live.simulator.run(uniform(5, 20), live.stop)
        open_store.save_run(live.settings, run)
    words = words_of(page_of(fedplan, tmp_path))
    assert "planned by an earlier version, from pilots or a profile of its devices" in words
    assert "1 run in the store" in words


def live_round(number, loss):
    seen = (observation(0, 5, 1.5), observation(1, 5, 2.5))
    return RoundRecord(
        round=number, loss=loss, accuracy=None, cohort=(0, 1), seconds=2.5, joules=0.0,
        observations=seen if number else (),
    )  # fmt: skip


def test_an_app_that_plans_by_itself_has_runs_plans_and_devices(fedplan, store, tmp_path):
    settings = {"engine": "flower", "study": "app", "learning_rate": {"initial": 0.1}}
    rounds = tuple(live_round(number, 2.0 / (1 + number)) for number in range(6))
    with Store(store) as open_store:
        entry = open_store.save_study("app", {}, settings)
        save_names(open_store, entry, [HOSTILE, "phone"])
        run = RunRecord(
            setting=uniform(2, 5), seed=0, status="target", rounds=rounds, identity="online/1",
            decisions=(Decision.of(uniform(2, 5), 1), Decision.of(uniform(2, 9), 4)),
        )  # fmt: skip
        open_store.save_run(settings, run)
    page = page_of(fedplan, tmp_path, "app")
    outline, words = check_structure(page), words_of(page)
    assert "app reached" in words and "reached its target after 5 rounds" in words
    assert "4 uniform 2 9" in words and "phone" in words and HOSTILE in words
    assert len(outline.alts) == 2 and outline.scripts == 2  # over rounds, and over seconds


def test_an_experiment_without_a_study_has_its_runs(fedplan, store, tmp_path):
    run(fedplan, "seeds=1")
    experiment = fedplan("list", "--format", "json").json["experiments"][0]
    page = page_of(fedplan, tmp_path, experiment["fingerprint"][:10])
    check_structure(page)
    assert "was not begun from a study file" in words_of(page)


def test_names_and_texts_of_a_store_stay_texts(fedplan, store, tmp_path):
    with Store(store) as open_store:
        entry = open_store.save_study(HOSTILE, {HOSTILE: {HOSTILE: HOSTILE}}, {HOSTILE: HOSTILE})
        open_store.save_step(entry, HOSTILE, HOSTILE)
    page = page_of(fedplan, tmp_path, HOSTILE)
    outline = check_structure(page)
    assert outline.scripts == 1 and not outline.alts and words_of(page).count(HOSTILE) > 3
    assert "<img" not in page and page.count("<script>") == 1


def test_data_that_are_gone_leave_a_page_of_what_is_stored(fedplan, store, tmp_path):
    import numpy as np

    random = np.random.default_rng(0)
    np.savez(
        tmp_path / "mine.npz",
        x=random.normal(size=(120, 5)),
        y=random.integers(0, 3, 120),
        client=np.repeat(np.arange(6), 20),
    )
    words = ("data=mine.npz", "rounds=20", "target-loss=0.9", "num-clients=6", "seeds=1")
    answer = fedplan("run", "demo", *(w for w in words if "num" not in w), "-q", "--format", "json")
    assert answer.code in (0, 1, 3), answer.err
    (tmp_path / "mine.npz").unlink()
    page = page_of(fedplan, tmp_path)
    check_structure(page)
    assert "No more is said because" in words_of(page) and "mine.npz" in words_of(page)


def test_a_report_that_cannot_be_written_is_refused_and_changes_nothing(
    fedplan, store, tmp_path, monkeypatch
):
    run(fedplan, "deadline-s=1")
    wrong = fedplan("report", "dem", "-o", "report.pdf")
    assert wrong.code == 2
    assert "must end in .html" in wrong.err and "Did you mean demo?" in wrong.err
    (tmp_path / "report.html").write_text("old")

    def fail(*words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    full = fedplan("report", "demo", "--format", "json")
    assert full.code == 2 and "No space left on device" in full.err
    assert (tmp_path / "report.html").read_text() == "old"
    assert {file.suffix for file in tmp_path.iterdir()} == {".db", ".html"}


SIZES = [(360, "light"), (360, "dark"), (1440, "dark"), (3840, "light")]


@pytest.fixture(scope="module")
def demo_page(tmp_path_factory):
    from fedplan.studies.stored import recall
    from fedplan.web.report import write_report

    folder = tmp_path_factory.mktemp("report")
    with Store(f"sqlite:///{folder}/runs.db") as open_store:
        experiment = build_experiment(read_study("demo", ["seeds=2"]))
        run_study(experiment, open_store)
        write_report(recall(open_store, experiment.save(open_store)), folder / "report.html")
    return folder / "report.html"


def opened(browser, path, **options):
    """The page, offline, and everything it complained of or asked for."""
    context = browser.new_context(offline=True, **options)
    page, noted = context.new_page(), []
    page.on("console", lambda message: noted.append(message.text))
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.on("request", lambda request: noted.append(request.url))
    page.goto(path.as_uri())
    return page, noted


@pytest.mark.e2e
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_figures_are_drawn_offline_at_every_size(browser, demo_page, width, scheme):
    page, noted = opened(
        browser, demo_page, viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    page.wait_for_function("document.querySelectorAll('figure.drawn').length == 4")
    assert page.locator(".live .main-svg:visible").count() >= 4
    assert page.locator("figure img:visible").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = [text for text in noted if not text.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    page.context.close()


@pytest.mark.e2e
def test_without_scripts_the_drawings_stay(browser, demo_page):
    page, _ = opened(browser, demo_page, java_script_enabled=False)
    images = page.locator("figure img:visible")
    assert images.count() == 4
    assert all(images.nth(at).bounding_box()["height"] > 100 for at in range(4))
    page.context.close()


@pytest.mark.e2e
def test_on_paper_drawings_take_the_place_of_what_moves(browser, demo_page):
    page, _ = opened(browser, demo_page, color_scheme="dark")
    page.wait_for_function("document.querySelectorAll('figure.drawn').length == 4")
    page.emulate_media(media="print")
    assert page.locator("figure img:visible").count() == 4
    assert page.locator(".live:visible").count() == 0
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert ink == "rgb(0, 0, 0)"
    assert len(page.pdf()) > 50_000
    page.context.close()


@pytest.mark.e2e
def test_a_hostile_page_runs_nothing_of_its_own(browser, store, tmp_path, fedplan):
    with Store(store) as open_store:
        open_store.save_study(HOSTILE, {"task": {"data": HOSTILE}}, {HOSTILE: HOSTILE})
    page_of(fedplan, tmp_path, HOSTILE)
    page, _ = opened(browser, tmp_path / "report.html")
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.reload()
    assert page.locator("h1").inner_text().startswith(HOSTILE) and dialogs == []
    refused = page.evaluate(
        "() => { const one = document.createElement('script'); one.textContent = 'window.bad = 1';"
        " document.body.append(one); return window.bad === undefined; }"
    )
    assert refused  # by the page's own policy
    page.context.close()
