"""Sudden ends of `sweep` and `run`: nothing is lost or trained twice, the result is the same."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from children import start
from stored_runs import check_integrity

from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment

pytestmark = pytest.mark.e2e

# Runs of a tenth of a second each, so that some have ended and others are under way.
SWEEP = (
    "sweep", "demo", "clients-per-round=5,20", "local-steps=30,60", "seeds=2", "rounds=60",
    "target-loss=0.6", "--format", "json", "-v",
)  # fmt: skip
RUN = ("run", "demo", "seeds=3", "--format", "json", "-v")
PAPER_RUN = (
    *RUN, "course=paper", "pairs=[[5,10],[10,20],[20,40]]", "upper-loss=1.5", "lower-loss=1.0",
)  # fmt: skip
LOGGED = re.compile(
    r"(.+?): ((?:online, from )?(?:K=(\d+)|\d+ groups), E=(\d+), seed (\d+), to .*? round \d+)"
    r"(?: \((\d+) rounds\))?"
)


def begin(words, path):
    return start(
        [sys.executable, "-m", "fedplan.cli", *words, "--store", f"sqlite:///{path}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def finish(fedplan):
    """Run it to its end, in this process; exit code and its document, and what it logged."""

    def run(words, path):
        result = fedplan(*words, "--store", f"sqlite:///{path}")
        assert result.code in (0, 1), result.err
        return (result.code, result.json), result.err

    return run


def logged(what, err):
    """The matches of all whole lines that say this of a run."""
    lines = [line for line in err.splitlines(keepends=True) if line.endswith("\n")]
    found = [match for line in lines if (match := LOGGED.fullmatch(line.strip()))]
    return [match for match in found if match[1] == what]


def check_trained_once(before, errs, needed):
    """No process has begun a run that was stored before, and none was stored twice.

    before : what was in the store when each process began.
    needed : the rounds of every run, by what the log calls it: the same K, E and seed may have been
        stored before with fewer.
    """
    for stored, err in zip(before, errs, strict=True):
        rounds = {(k, e, seed): num_rounds for _, k, e, seed, num_rounds, _ in stored}
        begun = logged("training", err)
        assert len({match[2] for match in begun}) == len(begun)
        for match in begun:
            clients, steps, seed = match.group(3, 4, 5)
            setting = clients and int(clients), int(steps), int(seed)
            assert rounds.get(setting, -1) < needed[match[2]], match[0]
    stored_by_all = [match[2] for err in errs for match in logged("stored", err)]
    assert len(set(stored_by_all)) == len(stored_by_all)


def check_kept(before, after):
    """Every run that was stored still is, untouched, unless a longer one has taken its place."""
    rounds = {(k, e, seed): num_rounds for _, k, e, seed, num_rounds, _ in after}
    for row in before - after:
        _, *setting, num_rounds, _ = row
        assert rounds.get(tuple(setting), -1) > num_rounds, row


def finished_runs(path):
    """What identifies each run that is in the store: a row that is written once."""
    if not path.exists():
        return set()
    with closing(sqlite3.connect(path)) as connection:
        there = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'runs'")
        if there.fetchone() == (0,):
            return set()
        return set(
            connection.execute(
                "SELECT id, clients_per_round, local_steps, seed, num_rounds, created FROM runs"
            )
        )


@dataclass(frozen=True, kw_only=True)
class Whole:
    """What came of a command that was never interrupted."""

    answer: tuple
    num_runs: int
    took_s: float
    rounds: dict


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A command never interrupted: what it prints, stores and logs, and how long it takes."""
    known = {}
    build_experiment(read_study("demo")).simulator.warm_up()  # compiling is not to be timed

    def result(words):
        if words not in known:
            path = tmp_path_factory.mktemp("whole") / "runs.db"
            began = time.monotonic()
            process = begin(words, path)
            out, err = process.communicate()
            took_s = time.monotonic() - began
            assert process.returncode in (0, 1), err
            rounds = {match[2]: int(match[6]) for match in logged("stored", err)}
            assert len(rounds) == len(logged("training", err)) >= len(finished_runs(path)) > 0
            known[words] = Whole(
                answer=(process.returncode, json.loads(out)),
                num_runs=len(finished_runs(path)),
                took_s=took_s,
                rounds=rounds,
            )
        return known[words]

    return result


def wait_for_a_run(path):
    """Until one is in the store."""
    give_up_at = time.monotonic() + 60
    while not finished_runs(path) and time.monotonic() < give_up_at:
        time.sleep(0.02)


def drawn(kills):
    """So many moments of a command, as parts of the time that it takes."""
    draw = random.Random(kills)
    return [draw.uniform(0.3, 1.0) for _ in range(kills)]


def interrupt_again_and_again(words, path, moments, undisturbed, finish):
    whole = undisturbed(words)
    before, errs = [], []
    for moment in moments:
        before.append(finished_runs(path))
        process = begin(words, path)
        time.sleep(moment * whole.took_s)
        process.send_signal(signal.SIGKILL)
        errs.append(process.communicate()[1])
        if path.exists():
            check_integrity(path)
        check_kept(before[-1], finished_runs(path))
    for _ in range(2):
        before.append(finished_runs(path))
        answer, err = finish(words, path)
        assert answer == whole.answer
        check_kept(before[-1], finished_runs(path))
        errs.append(err)
    assert len(finished_runs(path)) == whole.num_runs
    check_trained_once(before, errs, whole.rounds)
    assert not logged("training", errs[-1])
    check_integrity(path)
    return len(before[len(moments)])


def test_a_sweep_killed_at_any_moment_goes_on_where_it_was(tmp_path, undisturbed, finish):
    ended = [
        interrupt_again_and_again(
            SWEEP, tmp_path / f"{kills}.db", drawn(kills), undisturbed, finish
        )
        for kills in (5, 4)
    ]
    assert any(ended)


@pytest.mark.parametrize(
    ("law", "grid"),
    [
        ("shuffled", "clients-per-round=5,20"),
        ("weighted", "clients-per-round=5,20"),
        ("turns", "groups=2,4"),
    ],
)
def test_a_sweep_by_any_law_is_the_same_after_a_kill(tmp_path, finish, law, grid):
    words = [f"participation={law}", grid, *SWEEP[3:]]
    words = (*SWEEP[:2], *words, "dropout=0.1")
    whole, _ = finish(words, tmp_path / "whole.db")
    path = tmp_path / "killed.db"
    process = begin(words, path)
    wait_for_a_run(path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = finished_runs(path)
    answer, _ = finish(words, path)
    assert before and answer == whole and before <= finished_runs(path)
    assert len(finished_runs(path)) == len(finished_runs(tmp_path / "whole.db")) == 8
    check_integrity(path)


@pytest.mark.parametrize("words", [RUN, PAPER_RUN], ids=["online", "paper"])
def test_a_run_killed_at_any_moment_goes_on_where_it_was(tmp_path, undisturbed, finish, words):
    interrupt_again_and_again(words, tmp_path / "runs.db", drawn(2), undisturbed, finish)


def test_a_run_that_is_suspended_and_resumed_comes_to_the_same(tmp_path, undisturbed):
    whole, path = undisturbed(RUN), tmp_path / "runs.db"
    process = begin(RUN, path)
    for _ in range(2):
        time.sleep(0.35 * whole.took_s)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.0)
        process.send_signal(signal.SIGCONT)
    out, _ = process.communicate()
    assert (process.returncode, json.loads(out)) == whole.answer
    assert len(finished_runs(path)) == whole.num_runs
    check_integrity(path)


def test_two_runs_of_the_same_study_at_once_come_to_the_same(tmp_path, undisturbed):
    path = tmp_path / "runs.db"
    both = [begin(RUN, path) for _ in range(2)]
    outs = [process.communicate()[0] for process in both]
    whole = undisturbed(RUN)
    for process, out in zip(both, outs, strict=True):
        assert (process.returncode, json.loads(out)) == whole.answer
    check_integrity(path)
    assert len(finished_runs(path)) == whole.num_runs == 3


@pytest.mark.slow
@pytest.mark.parametrize("words", [SWEEP, RUN, PAPER_RUN], ids=["sweep", "run", "paper"])
def test_kills_at_thirty_moments_change_nothing(tmp_path, undisturbed, finish, words):
    """All along the command, from its first import to its last line: three kills of each store."""
    draw = random.Random(30)
    moments = [(place + draw.random()) / 30 for place in range(30)]
    for place in range(10):
        path = tmp_path / f"{place}.db"
        interrupt_again_and_again(words, path, moments[place::10], undisturbed, finish)


@pytest.mark.slow
def test_one_of_two_runs_at_once_is_killed_and_the_other_comes_to_the_same(tmp_path, undisturbed):
    whole = undisturbed(RUN)
    for place, moment in enumerate(drawn(10)):
        path = tmp_path / f"{place}.db"
        killed, other = (begin(RUN, path) for _ in range(2))
        time.sleep(moment * whole.took_s)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        out, _ = other.communicate()
        assert (other.returncode, json.loads(out)) == whole.answer
        assert len(finished_runs(path)) == whole.num_runs
        check_integrity(path)


def test_an_interrupt_leaves_a_whole_store_and_the_sweep_goes_on(tmp_path, undisturbed, finish):
    path = tmp_path / "runs.db"
    process = begin(SWEEP, path)
    wait_for_a_run(path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    kept = f"kept in sqlite:///{path}: the same command resumes from there.\n"
    assert err.endswith(f"Stopped. Runs that had ended are {kept}")
    assert "Traceback" not in err
    check_integrity(path)
    before = finished_runs(path)
    whole = undisturbed(SWEEP)
    answer, rest = finish(SWEEP, path)
    assert before and answer == whole.answer
    assert before <= finished_runs(path) and len(finished_runs(path)) == whole.num_runs
    check_trained_once([set(), before], [err, rest], whole.rounds)


def test_two_sweeps_of_the_same_study_at_once_come_to_the_same(tmp_path, undisturbed):
    path = tmp_path / "runs.db"
    both = [begin(SWEEP, path) for _ in range(2)]
    outs = [process.communicate()[0] for process in both]
    whole = undisturbed(SWEEP)
    for process, out in zip(both, outs, strict=True):
        assert (process.returncode, json.loads(out)) == whole.answer
    check_integrity(path)
    assert len(finished_runs(path)) == whole.num_runs


@pytest.mark.slow
def test_two_sweeps_at_once_make_most_runs_once(tmp_path):
    words, path = [word.replace("seeds=2", "seeds=10") for word in SWEEP], tmp_path / "runs.db"
    both = [begin(words, path) for _ in range(2)]
    errs = [process.communicate()[1] for process in both]
    begun = sum(len(logged("training", err)) for err in errs)
    assert len(finished_runs(path)) == 40
    assert 40 <= begun <= 60


FULL_DISK = """
import resource, sys
from fedplan.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
sys.argv = ["fedplan", *sys.argv[1:]]
main()
"""


def test_a_disk_that_fills_up_ends_it_clearly_and_it_goes_on_with_more(
    tmp_path, undisturbed, finish
):
    path = tmp_path / "runs.db"
    words = [*SWEEP, "--store", f"sqlite:///{path}"]
    done = subprocess.run([sys.executable, "-c", FULL_DISK, *words], capture_output=True, text=True)
    assert done.returncode == 1 and "start again" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not json.loads(done.stdout)["success"]
    check_integrity(path)
    before = finished_runs(path)
    answer, rest = finish(SWEEP, path)
    assert answer == undisturbed(SWEEP).answer and before <= finished_runs(path)
    check_trained_once([set(), before], [done.stderr, rest], undisturbed(SWEEP).rounds)


@pytest.fixture
def public_folder():
    """A folder that everybody can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_store_that_may_not_be_written_is_refused_before_training(public_folder, fedplan):
    path = public_folder / "runs.db"
    words = (*SWEEP, "--store", f"sqlite:///{path}")
    assert fedplan(*words, "seeds=1").code == 0
    before = path.read_bytes()
    path.chmod(0o444)
    is_root = os.geteuid() == 0
    if is_root:  # whom permissions do not stop
        os.seteuid(65534)
    try:
        refused = fedplan(*words)
    finally:
        if is_root:
            os.seteuid(0)
    assert refused.code == 2 and "cannot be written to. Make the file" in refused.err
    assert path.read_bytes() == before
    path.chmod(0o644)
    assert fedplan(*words).code == 0
    check_integrity(path)
