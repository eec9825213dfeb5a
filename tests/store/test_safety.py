"""Full disks, missing permissions, many writers and sudden ends: nothing saved is lost."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from stored_runs import EXPERIMENT, check_integrity, make_run, run_python

from fedplan.errors import FedplanError, InputError
from fedplan.participation import uniform
from fedplan.store import Store


def test_a_full_disk_loses_nothing_that_was_saved(path, url, monkeypatch):
    with Store(url) as store:
        for seed in range(3):
            store.save_run(EXPERIMENT, make_run(seed))
    pages = path.stat().st_size // 4096

    def connect(*args, connect=sqlite3.connect, **options):
        connection = connect(*args, **options)
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    with Store(url) as store:
        with pytest.raises(FedplanError, match=r"no space left.*free some space"):
            store.save_run(EXPERIMENT, make_run(seed=3, rounds=1000))
        assert store.find_run(EXPERIMENT, uniform(2, 5), 3) is None
        assert store.find_runs(EXPERIMENT) == [make_run(seed) for seed in range(3)]
    monkeypatch.undo()
    with Store(url) as store:
        store.save_run(EXPERIMENT, make_run(seed=3, rounds=1000))
        assert len(store.find_runs(EXPERIMENT)) == 4
    check_integrity(path)


LIMITED = """
import resource, sys
from stored_runs import EXPERIMENT, make_run
from fedplan.errors import FedplanError
from fedplan.participation import uniform
from fedplan.store import Store
url = sys.argv[1]
with Store(url) as store:
    store.save_run(EXPERIMENT, make_run())
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    for seed in range(1, 100):
        try:
            store.save_run(EXPERIMENT, make_run(seed, rounds=300))
        except FedplanError as error:
            print(seed, error)
            break
    assert store.find_run(EXPERIMENT, uniform(2, 5), seed) is None
    assert store.find_run(EXPERIMENT, uniform(2, 5), seed - 1) is not None
"""


def test_a_write_that_fails_half_way_loses_nothing_that_was_saved(path, url):
    process = run_python(LIMITED, url)
    said, _ = process.communicate()
    assert process.returncode == 0 and "start again" in said
    failed = int(said.split()[0])
    check_integrity(path)
    with Store(url) as store:
        assert [run.seed for run in store.find_runs(EXPERIMENT)] == list(range(failed))
        store.save_run(EXPERIMENT, make_run(failed))


def test_a_disk_that_is_really_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=500k", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        url = f"sqlite:///{disk}/fedplan.db"
        with Store(url) as store:
            for seed in range(100):
                try:
                    store.save_run(EXPERIMENT, make_run(seed, rounds=300))
                except FedplanError as error:
                    assert "start again" in str(error)  # noqa: PT017
                    break
            assert 0 < seed < 99
        check_integrity(disk / "fedplan.db")
        with Store(url, readonly=True) as store:
            assert [run.seed for run in store.runs(EXPERIMENT)] == list(range(seed))
        with pytest.raises(FedplanError), Store(f"sqlite:///{disk}/another.db") as another:
            another.save_run(EXPERIMENT, make_run(rounds=20_000))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@contextmanager
def without_rights(folder):
    """Permissions count for this thread, even where the tests are run by root."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.fixture
def public_folder():
    """A folder that everybody can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_read_only_can_be_read(public_folder, what):
    path = public_folder / "fedplan.db"
    url = f"sqlite:///{path}"
    with Store(url) as store:
        store.save_run(EXPERIMENT, make_run())
    path.chmod(0o444 if what == "file" else 0o666)
    public_folder.chmod(0o777 if what == "file" else 0o555)
    before = path.read_bytes()
    with without_rights(public_folder):
        with pytest.raises(InputError, match=r"cannot be written to\. Make the file"):
            Store(url)
        with Store(url, readonly=True) as store:
            assert store.find_runs(EXPERIMENT) == [make_run()]
        if what == "folder":
            with pytest.raises(InputError, match=r"cannot be opened\. Check that you may"):
                Store(f"sqlite:///{public_folder}/new.db")
    assert path.read_bytes() == before
    check_integrity(path)
    with Store(url) as store:
        store.save_run(EXPERIMENT, make_run(seed=1))


def test_what_is_read_only_is_read_while_another_writes(public_folder):
    path = public_folder / "fedplan.db"
    url = f"sqlite:///{path}"
    with Store(url) as store:
        store.save_run(EXPERIMENT, make_run())
        with without_rights(public_folder), Store(url, readonly=True) as reader:
            assert reader.find_runs(EXPERIMENT) == [make_run()]
        store.save_run(EXPERIMENT, make_run(seed=1))
        with without_rights(public_folder), Store(url, readonly=True) as reader:
            assert len(reader.find_runs(EXPERIMENT)) == 2
    assert list(public_folder.iterdir()) == [path]


def test_a_file_that_may_not_be_read_is_refused(public_folder):
    path = public_folder / "fedplan.db"
    Store(f"sqlite:///{path}").close()
    path.chmod(0)
    with without_rights(public_folder), pytest.raises(InputError, match="cannot be opened"):
        Store(f"sqlite:///{path}", readonly=True)


@pytest.mark.parametrize("readonly", [False, True])
def test_a_place_out_of_reach_is_refused(public_folder, readonly):
    (public_folder / "private").mkdir(mode=0o700)
    too_long = public_folder / ("a" * 300)
    for path in (public_folder / "private" / "fedplan.db", too_long):
        with without_rights(public_folder), pytest.raises(InputError, match="cannot be opened"):
            Store(f"sqlite:///{path}", readonly=readonly)


def test_a_lock_that_is_held_too_long_is_said_so(store, url, path, monkeypatch):
    monkeypatch.setattr("fedplan.store.database.BUSY_TIMEOUT_S", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other, Store(url) as waiting:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(FedplanError, match="another program has kept it locked"):
            waiting.save_run(EXPERIMENT, make_run())
        assert waiting.find_runs(EXPERIMENT) == []  # reading needs no lock
        other.execute("ROLLBACK")
        waiting.save_run(EXPERIMENT, make_run())


def test_many_threads_share_one_store(store, path):
    def save(seed):
        for rounds in (4, 8, 2):
            store.save_run(EXPERIMENT, make_run(seed, rounds))
            assert store.find_run(EXPERIMENT, uniform(2, 5), seed).num_rounds >= rounds
        return seed

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(save, range(60))) == list(range(60))
    assert store.find_runs(EXPERIMENT) == [make_run(seed, 8) for seed in range(60)]
    check_integrity(path)


def test_a_store_is_made_once_however_many_make_it(tmp_path):
    """Connections of one process are as strange to each other as those of many."""

    def make(url, barrier):
        barrier.wait()
        with Store(url) as store:
            store.save_study("demo", {}, EXPERIMENT)
            with Store(url, readonly=True) as reader:
                return len(reader.studies())

    with ThreadPoolExecutor(6) as pool:
        for number in range(30):
            url = f"sqlite:///{tmp_path}/{number}.db"
            barrier = threading.Barrier(6)
            assert set(pool.map(make, [url] * 6, [barrier] * 6)) == {1}


def test_an_interrupted_save_leaves_nothing_and_the_store_works(store):
    class Interrupting:
        def __float__(self):
            raise KeyboardInterrupt

    last = replace(make_run().rounds[-1], accuracy=Interrupting())
    with pytest.raises(KeyboardInterrupt):
        store.save_run(EXPERIMENT, replace(make_run(), rounds=(*make_run().rounds[:-1], last)))
    assert store.experiments() == []
    store.save_run(EXPERIMENT, make_run())
    assert store.find_runs(EXPERIMENT) == [make_run()]


WRITER = """
import sys
from stored_runs import EXPERIMENT, make_run
from fedplan.store import Store
url, first = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
with Store(url) as store:
    study = store.save_study("demo", {"rounds": 8}, EXPERIMENT)
    for seed in range(first, 10_000_000):
        store.save_run(EXPERIMENT, make_run(seed, 20))
        store.save_run(EXPERIMENT, make_run(seed, 40))
        store.save_step(study, f"step {seed % 7}", seed)
        print(seed, flush=True)
"""


def check_after_kill(path, reported):
    with Store(f"sqlite:///{path}") as store:
        saved = store.find_runs(EXPERIMENT)
        steps = {number for study in store.studies() for number in store.steps(study).values()}
        assert len(store.studies()) <= 1
    check_integrity(path)
    seeds = [run.seed for run in saved]
    assert len(set(seeds)) == len(seeds) and set(reported) <= set(seeds)
    for run in saved:
        possible = [40] if run.seed in reported else [20, 40]
        assert run in [make_run(run.seed, rounds) for rounds in possible]
    assert not reported or max(reported) in steps


@pytest.mark.e2e
def test_kill_9_at_any_moment_loses_nothing_that_was_reported(tmp_path):
    """Thirty times: half of them while the file is being made, half on one that grows.

    More often where the machine is so busy that little was reported by then.
    """
    moments = random.Random(20260101)
    grown, reported_of_grown = tmp_path / "grown.db", []
    total = 0
    for attempt in range(300):
        if attempt >= 30 and len(reported_of_grown) > 30 and total > 100:
            break
        path = grown if attempt % 2 else tmp_path / f"new-{attempt}.db"
        reported = reported_of_grown if path is grown else []
        process = run_python(WRITER, f"sqlite:///{path}", max(reported, default=-1) + 1)
        assert process.stdout.readline() == "ready\n"
        time.sleep(moments.uniform(0, 0.2) if attempt % 4 else moments.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        words, _ = process.communicate()
        reported += [int(word) for word in words.splitlines(keepends=True) if word.endswith("\n")]
        check_after_kill(path, reported)
        total += len(reported)
    else:
        raise AssertionError(f"{total} runs were reported")


PARTNER = """
import sys
from stored_runs import EXPERIMENT, make_run
from fedplan.store import Store
url, me = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
with Store(url) as store:
    study = store.save_study("demo", {"rounds": 8}, EXPERIMENT)
    for seed in range(40):
        store.save_run(EXPERIMENT, make_run(seed, 4 + 4 * ((seed + me) % 2)))
        store.save_step(study, f"step {seed}", seed)
"""


def test_processes_that_write_the_same_study_at_once_do_not_get_in_each_others_way(path, url):
    partners = [run_python(PARTNER, url, me, stdin=subprocess.PIPE) for me in (0, 1, 2, 3)]
    for partner in partners:
        assert partner.stdout.readline() == "ready\n"
    for partner in partners:  # all at once, on a file that is not there yet
        partner.stdin.write("\n")
        partner.stdin.flush()
    for partner in partners:
        partner.communicate()
        assert partner.returncode == 0
    check_integrity(path)
    with Store(url, readonly=True) as store:
        (study,) = store.studies()
        assert store.find_runs(EXPERIMENT) == [make_run(seed, 8) for seed in range(40)]
        assert sorted(store.steps(study).values()) == list(range(40))
