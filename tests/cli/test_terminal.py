"""Terminals that are closed, know no Unicode, or send signals at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from children import start
from stored_runs import save_live_study

from fedplan.store import Store
from fedplan.studies.devices import save_names

FEDPLAN = [sys.executable, "-m", "fedplan.cli"]
ASCII = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def test_a_terminal_without_unicode_gets_its_result(tmp_path):
    words = [*FEDPLAN, "run", "demo", "-q"]
    done = subprocess.run(words, cwd=tmp_path, env=ASCII, capture_output=True, timeout=300)
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr
    assert done.stdout.isascii() and done.stdout


@pytest.mark.parametrize("words", [["-V"], ["plan", "--example"], ["plan"]])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_answered(tmp_path, words, closed):
    line = " ".join([*FEDPLAN, *words, closed])
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, timeout=300)
    assert b"Traceback" not in done.stderr, done.stderr
    if closed == ">&-":
        assert done.returncode == 1 and b"standard output is closed" in done.stderr
    elif closed == "2>&-":
        assert done.returncode == (2 if words == ["plan"] else 0)
    else:
        assert done.returncode == 1


# While Python itself starts no program has a say: seconds count from the first line of fedplan's.
READY = """
import sys
from fedplan.cli import main
print("ready", flush=True)
sys.argv = ["fedplan", "sweep", "demo", "-q", "seeds=20"]
main()
"""


@pytest.mark.parametrize("after_s", [0.1, 0.2, 0.4, 1.0])
@pytest.mark.parametrize("which", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT] * 2])
def test_a_signal_at_any_moment_is_answered(tmp_path, after_s, which):
    process = start(
        [sys.executable, "-c", READY],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(after_s)
    for each in which:
        process.send_signal(each)
        time.sleep(0.02)
    _, err = process.communicate()
    assert process.returncode == 130 and "Traceback" not in err, err
    assert err.startswith("Stopped.")


# While a command imports what it needs, as in a callback of an import or a compiler's.
DROPPED = """
import os, sys
from fedplan.cli import main

def send():
    os.kill(os.getpid(), int(os.environ["WHICH"]))
    for _ in range(1000):  # the handler is called between two of Python's instructions
        pass

class Finalized:
    def __del__(self):
        send()

class Caught:
    def __init__(self):
        try:
            send()
        except BaseException:
            pass

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "fedplan.cli.commands":
            globals()[os.environ["HOW"]]()

sys.meta_path.insert(0, Finder())
sys.argv = ["fedplan", "sweep", "demo", "-q", "seeds=1000"]
main()
"""


@pytest.mark.parametrize("how", ["Finalized", "Caught"])
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_whose_exception_is_dropped_is_answered(tmp_path, which, how):
    process = start(
        [sys.executable, "-c", DROPPED],
        cwd=tmp_path,
        env={**os.environ, "WHICH": str(int(which)), "HOW": how},
        stderr=subprocess.PIPE,
        text=True,
    )
    _, err = process.communicate()
    assert (process.returncode, err) == (130, "Stopped.\n")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_says_what_is_kept(tmp_path, which):
    words = [*FEDPLAN, "sweep", "demo", "-v", "seeds=50"]
    process = start(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while "stored" not in (line := process.stderr.readline()):
        assert line, "it must store a run"
    process.send_signal(which)
    rest = process.stderr.read()
    assert process.wait() == 130 and "Runs that had ended are kept in sqlite:///fedplan.db" in rest
    process.stderr.close()


def test_control_characters_of_names_are_written_out(fedplan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDPLAN_STORE", raising=False)
    name = "a\x1b]0;title\x07\x9b31mb"
    with Store() as store:
        save_live_study(store)
        (study,) = store.studies()
        save_names(store, study, [name, "b", "c"])
    (tmp_path / "study.toml").write_text('[fleet]\nfile = "a\\u001b[31mb.csv"\n')
    shown, refused = fedplan("show", "digits"), fedplan("run", "study.toml")
    assert r"a\x1b]0;title\x07\x9b31mb" in shown.out
    assert r"a\x1b[31mb.csv" in refused.err and refused.code == 2
    for said in (shown.out, refused.err):
        assert not set(said) & {"\x1b", "\x07", "\x9b"}
