"""Downloading MNIST, against a real web server on this machine that misbehaves on request."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from fedplan.errors import FedplanError, InputError
from fedplan.tasks import fetch_mnist, load_mnist, mnist, mnist_download

IMAGES = "train-images-idx3-ubyte.gz"


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Attempts follow at once."""
    monkeypatch.setattr(mnist_download, "BACKOFF_S", 0.0)
    monkeypatch.setattr(mnist_download, "TIMEOUT_S", 5.0)


def fetch(folder, *mirrors, **options):
    return fetch_mnist(folder, mirrors=mirrors, **options)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_good_files_arrive_whole_and_nothing_else_is_left(mirror, tiny, tmp_path):
    folder = fetch(tmp_path / "new" / "folder", mirror.url)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == tiny
    digits = load_mnist(folder)
    assert digits.x.shape == (30, 784) and digits.test_x.shape == (20, 784)
    assert mirror.asked == [file.name for file in mnist.FILES]


def test_progress_ends_at_the_total(mirror, tiny, tmp_path):
    calls = []
    fetch(tmp_path, mirror.url, progress=lambda done, total: calls.append((done, total)))
    total = sum(map(len, tiny.values()))
    assert calls[-1] == (total, total)
    assert all(0 <= done <= total for done, total in calls)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_files_that_are_there_and_good_are_not_fetched_again(mirror, tiny, tmp_path):
    fetch(tmp_path, mirror.url)
    (tmp_path / IMAGES).write_bytes(tiny[IMAGES][:-9])
    mirror.asked.clear()
    fetch(tmp_path, mirror.url)
    assert mirror.asked == [IMAGES]
    assert (tmp_path / IMAGES).read_bytes() == tiny[IMAGES]


@pytest.mark.parametrize("fault", ["error", "altered", "truncated", "page", "endless"])
def test_one_fault_is_repaired_by_the_next_attempt(mirror, tiny, tmp_path, fault):
    mirror.script[IMAGES] = [fault]
    fetch(tmp_path, mirror.url)
    assert (tmp_path / IMAGES).read_bytes() == tiny[IMAGES]
    assert mirror.asked.count(IMAGES) == 2


def test_a_server_that_announces_no_length_will_do(mirror, tiny, tmp_path):
    mirror.script[IMAGES] = ["unannounced"]
    fetch(tmp_path, mirror.url)
    assert mirror.asked.count(IMAGES) == 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("error", "HTTP Error 500"),
        ("altered", "the file was altered: SHA-256"),
        ("truncated", "the file is cut short"),
        ("page", "cannot be read as gzip"),
        ("endless", "sends more than"),
    ],
)
def test_a_lasting_fault_says_what_happened_and_what_to_put_where(mirror, tmp_path, fault, said):
    mirror.script[IMAGES] = [fault] * 3
    with pytest.raises(FedplanError, match=said) as caught:
        fetch(tmp_path, mirror.url)
    message = str(caught.value)
    assert mirror.url + IMAGES in message and str(tmp_path) in message
    assert all(file.name in message for file in mnist.FILES)
    assert "mnist_mini" in message
    assert mirror.asked == [IMAGES] * 3
    assert list(tmp_path.iterdir()) == []


def test_the_second_mirror_helps_out_when_the_first_is_down(mirror, tiny, tmp_path):
    down = f"http://127.0.0.1:{free_port()}/"
    fetch(tmp_path, down, mirror.url)
    assert {path.name for path in tmp_path.iterdir()} == set(tiny)


def test_a_server_that_is_down_is_an_error_that_names_it(tiny, tmp_path):
    down = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(FedplanError, match="refused") as caught:
        fetch(tmp_path, down)
    assert f"{down}/{IMAGES}" in str(caught.value)


def test_a_server_that_stays_silent_is_given_up(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(mnist_download, "TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(FedplanError, match="timed out"):
            fetch(tmp_path, url)


def test_the_wait_doubles_between_attempts(mirror, tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr("fedplan.tasks.mnist_download.time.sleep", waits.append)
    monkeypatch.setattr(mnist_download, "BACKOFF_S", 0.5)
    mirror.script[IMAGES] = ["error"] * 2
    fetch(tmp_path, mirror.url)
    assert waits == [0.5, 1.0]


def test_a_failed_fetch_leaves_the_old_file_in_place(mirror, tmp_path):
    (tmp_path / IMAGES).write_bytes(b"old")
    mirror.script[IMAGES] = ["altered"] * 3
    with pytest.raises(FedplanError):
        fetch(tmp_path, mirror.url)
    assert (tmp_path / IMAGES).read_bytes() == b"old"


def test_without_a_folder_the_files_go_to_the_cache_and_are_found_there(
    mirror, tmp_path, monkeypatch
):
    monkeypatch.delenv("FEDPLAN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert fetch(None, mirror.url) == tmp_path / "fedplan" / "mnist"
    assert np.array_equal(load_mnist().y, load_mnist(tmp_path / "fedplan" / "mnist").y)


def test_wrong_options_are_listed_together(tmp_path):
    with pytest.raises(InputError) as caught:
        fetch_mnist(tmp_path, mirrors=["file:///etc", "ftp://there"])
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError, match="at least one mirror"):
        fetch_mnist(tmp_path, mirrors=[])
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"\(Not a directory\). Set XDG_CACHE_HOME"):
        fetch_mnist(tmp_path / "file" / "folder")


def test_without_a_home_folder_nothing_is_made(monkeypatch, tmp_path):
    for variable in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("FEDPLAN_DATA", str(tmp_path))
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user of no name
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="looked in"):
        load_mnist()
    with pytest.raises(InputError, match="there is no home folder"):
        fetch_mnist()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_is_no_fault_of_a_mirror(monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(InputError, match="permissions forbid it"):
        fetch_mnist(tmp_path)
