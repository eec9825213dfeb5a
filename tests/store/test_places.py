"""Places that are not as a disk should be: no locks, no writing, no inodes; and odd clocks."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from stored_runs import EXPERIMENT, check_integrity, make_run, run_python

from fedplan.errors import FedplanError, InputError
from fedplan.participation import uniform
from fedplan.store import Store

NO_LOCKS = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
static int refuse(int fd, int command, void *what) {
    if (command == F_SETLK || command == F_SETLKW) { errno = WHY; return -1; }
    return syscall(SYS_fcntl, fd, command, what);
}
#define ASK va_list all; va_start(all, command); void *what = va_arg(all, void *); va_end(all); \\
    return refuse(fd, command, what);
int fcntl(int fd, int command, ...) { ASK }
int fcntl64(int fd, int command, ...) { ASK }
"""
SAVING = """
import sys
from stored_runs import EXPERIMENT, make_run
from fedplan.errors import FedplanError
from fedplan.store import Store, database
database.BUSY_TIMEOUT_S = 0.1
for readonly in (False, True):
    try:
        with Store(sys.argv[1], readonly=readonly) as store:
            print(store.find_runs(EXPERIMENT) == [make_run()])
    except FedplanError as error:
        print(error)
"""


@pytest.mark.parametrize("why", [errno.EOPNOTSUPP, errno.ENOLCK], ids=["refused", "lost"])
def test_a_file_system_without_locks_is_named(tmp_path, url, path, why):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, library = tmp_path / "no_locks.c", tmp_path / "no_locks.so"
    source.write_text(NO_LOCKS)
    words = [compiler, "-shared", "-fPIC", f"-DWHY={why}", "-o", library, source]
    subprocess.run(words, check=True)
    with Store(url) as store:
        store.save_run(EXPERIMENT, make_run())
    before = path.read_bytes()
    said, _ = run_python(f"import os, sys\nos.environ['LD_PRELOAD'] = {str(library)!r}\n"
        "os.execv(sys.executable, [sys.executable, '-c', *sys.argv[1:]])", SAVING, url,
    ).communicate()  # fmt: skip
    assert said.count("keep it on a local disk") == 2, said
    assert path.read_bytes() == before
    check_integrity(path)


@contextmanager
def small_disk(folder, options):
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_read_only_file_system_can_be_read(tmp_path):
    with small_disk(tmp_path / "disk", "size=1m") as disk:
        url = f"sqlite:///{disk}/fedplan.db"
        with Store(url) as store:
            store.save_run(EXPERIMENT, make_run())
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with Store(url, readonly=True) as store:
            assert store.find_runs(EXPERIMENT) == [make_run()]
        with pytest.raises(InputError, match=r"cannot be (opened|written to)\. "):
            Store(url)
        assert os.listdir(disk) == ["fedplan.db"]  # noqa: PTH208


def test_a_disk_without_room_for_another_file(tmp_path):
    """The file and its log need three places; what was saved stays readable."""
    with small_disk(tmp_path / "disk", "size=1m,nr_inodes=4") as disk:
        url = f"sqlite:///{disk}/fedplan.db"
        with Store(url) as store:
            store.save_run(EXPERIMENT, make_run())
        for name in "ab":
            (disk / name).touch()
        with pytest.raises(OSError, match="No space left"):
            (disk / "c").touch()
        with pytest.raises(FedplanError, match=r"cannot be opened|no space left"):
            Store(url)
        with pytest.raises(FedplanError, match=r"cannot be opened|no space left"):
            Store(f"sqlite:///{disk}/another.db")
        (disk / "a").unlink()
        (disk / "b").unlink()
        with Store(url) as store:
            store.save_run(EXPERIMENT, make_run(seed=1))
            assert len(store.find_runs(EXPERIMENT)) == 2
        check_integrity(disk / "fedplan.db")


def test_a_clock_that_jumps_loses_and_doubles_nothing(store, path, monkeypatch):
    for days, seed, rounds in ((0, 0, 3), (-4000, 1, 3), (-1, 0, 5), (9000, 0, 4), (-9000, 1, 2)):
        moment = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")
        monkeypatch.setattr("fedplan.store.rows.now", lambda moment=moment: moment)
        store.save_run(EXPERIMENT, make_run(seed, rounds))
    assert store.find_run(EXPERIMENT, uniform(2, 5), 0) == make_run(0, 5)
    assert store.find_run(EXPERIMENT, uniform(2, 5), 1) == make_run(1, 3)
    assert len(store.runs(EXPERIMENT)) == 2
    check_integrity(path)
