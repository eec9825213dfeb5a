"""`fedplan simulate`: the contract of its JSON, its table, its plots, its exit codes."""

from __future__ import annotations

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from children import start

from fedplan.core.records import Stop
from fedplan.models import Logistic
from fedplan.participation import uniform
from fedplan.simulation import LearningRate, Simulator
from fedplan.tasks import synthetic
from fedplan.tasks.mnist import FILES

COMMAND = [sys.executable, "-m", "fedplan.cli", "simulate"]
CONTRACT = {
    "success", "study", "clients_per_round", "local_steps", "num_clients", "target_loss", "runs",
    "local_steps_per_second", "message", "participation", "groups", "dropout",
}  # fmt: skip
RUN = {
    "seed", "status", "rounds", "final_loss", "target_reached", "time_s", "energy_j", "losses",
    "test_accuracy",
}  # fmt: skip
NO_FLEET = """[task]
data = "synthetic"
num-clients = 8
[training]
learning-rate = 0.05
clients-per-round = 3
local-steps = 4
rounds = 6
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(NO_FLEET)
    return path


def test_a_process_of_its_own_prints_one_document_and_nothing_else():
    done = subprocess.run(
        [*COMMAND, "demo", "rounds=5", "seeds=2", "--format", "json", "-q"],
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert answer.keys() == CONTRACT and all(run.keys() == RUN for run in answer["runs"])
    assert answer["success"] and answer["study"] == "demo" and done.stderr == ""
    assert answer["local_steps_per_second"] > 0


def test_json_holds_the_simulators_numbers(fedplan, study):
    answer = fedplan("simulate", study, "seeds=2", "first-seed=3", "--format", "json")
    assert answer.code == 0 and answer.json.keys() == CONTRACT
    simulator = Simulator(Logistic(synthetic(1, 1, num_clients=8)), LearningRate(initial=0.05))
    for run, seed in zip(answer.json["runs"], (3, 4), strict=True):
        expected = simulator.run(uniform(3, 4), Stop(max_rounds=6), seed=seed)
        assert run == {
            "seed": seed, "status": "rounds", "rounds": 6, "final_loss": expected.final_loss,
            "target_reached": False, "time_s": None, "energy_j": None, "test_accuracy": None,
            "losses": list(expected.losses),
        }  # fmt: skip
    setting = (answer.json["clients_per_round"], answer.json["local_steps"])
    assert setting == (3, 4) and answer.json["target_loss"] is None
    assert "limit of 6 rounds" in answer.json["message"]


def test_the_same_command_gives_the_same_runs(fedplan):
    command = ("simulate", "demo", "rounds=4", "--format", "json")
    assert fedplan(*command).json["runs"] == fedplan(*command).json["runs"]


def test_a_target_ends_a_run_and_the_fleet_prices_it(fedplan):
    answer = fedplan("simulate", "demo", "target-loss=1.5", "--format", "json").json
    assert len(answer["runs"]) == 5
    for run in answer["runs"]:
        assert run["status"] == "target" and run["target_reached"]
        assert run["losses"][-1] <= 1.5 < min(run["losses"][:-1])
        assert len(run["losses"]) == run["rounds"] + 1
        assert run["time_s"] > 2 * run["rounds"] and run["energy_j"] > 0
    assert "5 of 5 runs reached the loss 1.5" in answer["message"]


def test_losses_that_were_not_measured_are_null(fedplan, study):
    run = fedplan("simulate", study, "evaluate-every=4", "--format", "json").json["runs"][0]
    assert [loss is None for loss in run["losses"]] == [False, *[True] * 3, False, True, False]


def test_the_table_sums_up_and_lists_few_seeds(fedplan, study):
    few = fedplan("simulate", study, "seeds=3").out
    for words in ("mine: Synthetic(1, 1), logistic", "3 of 8", "±", "local steps/s", "seed"):
        assert words in few
    assert "time" not in few and "energy" not in few
    assert len(fedplan("simulate", study, "seeds=13").out.splitlines()) < len(few.splitlines())
    priced = fedplan("simulate", "demo", "rounds=2").out
    assert "time" in priced and "energy" in priced
    alone = fedplan("simulate", study).out
    assert "±" not in alone and "The run ended at the limit of 6 rounds" in alone


def test_runs_by_turns_are_drawn(fedplan, tmp_path):
    path = tmp_path / "runs.svg"
    words = ("rounds=3", "participation=turns", "groups=4", "--plot", path)
    assert fedplan("simulate", "demo", *words).code == 0
    assert "demo: 4 groups, E=" in path.read_text()


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_runs_are_drawn(fedplan, tmp_path, suffix):
    path = tmp_path / f"runs.{suffix}"
    done = fedplan("simulate", "demo", "rounds=3", "--plot", path)
    assert done.code == 0 and path.stat().st_size > 10_000 and f"Drawn: {path}" in done.err


def test_runs_that_all_diverge_fail_with_advice_and_are_still_printed(fedplan, tmp_path):
    command = ("simulate", "demo", "learning-rate=1e38", "--plot", tmp_path / "runs.svg")
    table, document = fedplan(*command), fedplan(*command, "--format", "json")
    assert table.code == document.code == 1
    assert not document.json["success"]
    assert {run["status"] for run in document.json["runs"]} == {"diverged"}
    assert "lower learning-rate (now 1e+38)" in document.json["message"]
    assert "diverged (5)" in table.out and "lower learning-rate" in " ".join(table.out.split())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("setpu1", "Did you mean setup1?"),
        ("STUDY clients-per-rond=3", "Did you mean clients-per-round?"),
        ("STUDY clients-per-round=9", "clients-per-round=9, num-clients=8"),
        ("STUDY model=lenet5", "LeNet-5 needs images of 28 x 28"),
        ("STUDY data=nowhere.npz", "there is no 'nowhere.npz'"),
        ("STUDY file=nowhere.csv", "nowhere.csv"),
        ("STUDY rounds", "must look like key=value"),
        ("STUDY --plot runs.gif", ".png"),
        ("STUDY --format yaml", "Invalid value"),
        ("", "Missing argument"),
    ],
)
def test_wrong_requests_exit_with_2_and_say_why(fedplan, study, words, reason):
    answer = fedplan("simulate", *(study if word == "STUDY" else word for word in words.split()))
    assert answer.code == 2 and reason in answer.err
    assert "Traceback" not in answer.err and not answer.out


def test_every_problem_is_said_at_once(fedplan, study):
    study.write_text(NO_FLEET.replace("clients-per-round = 3\n", "sedes = 3\n"))
    answer = fedplan("simulate", study, "alpha=-1", "--plot", "runs.gif", "--format", "json")
    assert answer.code == 2
    found = answer.json["error"]["problems"]
    assert len(found) == 4
    for words in ("clients-per-round is missing", "Did you mean seeds?", "alpha >= 0", ".png"):
        assert any(words in problem["message"] for problem in found)
    assert {problem["line"] for problem in found if problem["source"] == str(study)} == {4, 6}


def test_mnist_that_is_missing_or_altered_is_refused(fedplan, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDPLAN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    missing = fedplan("simulate", "setup2")
    assert missing.code == 2 and "MNIST was not found" in missing.err
    for file in FILES:
        (tmp_path / file.name).write_bytes(gzip.compress(b"\0" * 20))
    altered = fedplan("simulate", "setup1", "data=mnist", "--format", "json")
    assert altered.code == 2 and len(altered.json["error"]["problems"]) >= 4


def test_what_is_there_is_not_downloaded_again(fedplan, mnist_folder, monkeypatch):
    monkeypatch.setenv("FEDPLAN_DATA", str(mnist_folder))
    words = ["clients-per-round=1", "local-steps=1", "rounds=1", "evaluate-subset=100"]
    assert fedplan("simulate", "setup2", "--download", *words).code == 0


def test_lenet_learns_from_images(fedplan):
    words = ["data=mnist-mini", "clients-per-round=2", "local-steps=2", "rounds=2"]
    run = fedplan("simulate", "setup2", *words, "--format", "json").json["runs"][0]
    assert run["rounds"] == 2 and len(set(run["losses"])) == 3


def run_in_a_terminal(*words, interrupt=False, **environment):
    """Run with a terminal for standard error; exit code, standard output and what it showed."""
    master, slave = pty.openpty()
    process = start(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=slave, env={**os.environ, **environment}
    )
    os.close(slave)
    shown, interrupted_at = b"", None
    while True:
        try:
            chunk = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        shown += chunk
        if interrupt and interrupted_at is None and b"loss" in shown:
            process.send_signal(signal.SIGINT)
            interrupted_at = time.monotonic()
    out, _ = process.communicate()
    os.close(master)
    took_s = None if interrupted_at is None else time.monotonic() - interrupted_at
    return process.returncode, out.decode(), shown.decode(), took_s


def test_a_terminal_shows_progress_unless_told_not_to():
    words = ("demo", "rounds=40", "target-loss=0", "--format", "json")
    code, out, shown, _ = run_in_a_terminal(*words, TERM="xterm", COLUMNS="100")
    assert code == 0 and json.loads(out)["success"]
    assert "of 200" in shown and "loss" in shown
    for quiet in (run_in_a_terminal(*words, "-q"), run_in_a_terminal(*words, NO_COLOR="1")):
        assert quiet[0] == 0 and "loss" not in quiet[2]


def test_an_interrupt_ends_it_at_once_even_within_a_round():
    words = ("demo", "clients-per-round=20", "local-steps=1000000", "target-loss=0")
    code, out, shown, took_s = run_in_a_terminal(*words, interrupt=True, TERM="xterm")
    assert code == 130 and out == "" and "Stopped." in shown
    assert took_s < 30 and "Traceback" not in shown


@pytest.mark.parametrize(("quiet", "said"), [([], True), (["-q"], False)])
def test_compiling_is_announced_where_it_takes_long(fedplan, monkeypatch, quiet, said):
    def slow(self):
        time.sleep(1.3)

    monkeypatch.setattr(Simulator, "warm_up", slow)
    answer = fedplan("simulate", "demo", "rounds=1", *quiet)
    assert answer.code == 0 and ("Compiling kernels for this machine" in answer.err) == said


def test_the_speed_counts_the_local_steps_of_all_runs(fedplan, monkeypatch):
    def slow(self, *args, **options):
        time.sleep(0.5)
        return run(self, *args, **options)

    run = Simulator.run
    monkeypatch.setattr(Simulator, "run", slow)
    words = ["rounds=3", "seeds=2", "target-loss=0", "--format", "json"]
    began = time.monotonic()
    answer = fedplan("simulate", "demo", *words)
    whole_s = time.monotonic() - began
    took_s = 2 * 3 * 5 * 20 / answer.json["local_steps_per_second"]
    assert 0.5 <= took_s < whole_s  # the runs, without the seconds before and after them
