"""MNIST from a folder: what is accepted, what is refused and why; and the embedded tenth."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import time

import mnist_mini as maker
import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.tasks import load_mnist, mnist, mnist_mini
from fedplan.tasks.mnist import MINI_FILE

IMAGES, LABELS, TEST_IMAGES, TEST_LABELS = (file.name for file in mnist.FILES)


@pytest.fixture
def folder(tiny, tmp_path):
    for name, content in tiny.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_pixels_are_scaled_and_labels_kept(folder, tiny):
    digits = load_mnist(folder)
    raw = np.frombuffer(gzip.decompress(tiny[IMAGES])[16:], np.uint8).reshape(30, 784)
    assert digits.x.dtype == np.float32 and digits.y.dtype == np.int64
    assert np.array_equal(digits.x, raw.astype(np.float32) / np.float32(255))
    assert digits.test_y.tolist() == list(gzip.decompress(tiny[TEST_LABELS])[8:])
    assert repr(digits) == "<Digits 'MNIST': 30 training, 20 test images>"


def test_a_copy_compressed_anew_is_accepted(folder, tiny):
    (folder / IMAGES).write_bytes(gzip.compress(gzip.decompress(tiny[IMAGES]), 1))
    assert len(load_mnist(folder).x) == 30


def changed(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda packed: packed[: len(packed) // 2], "cut short"),
        (lambda packed: packed[:0], "was altered: SHA"),
        (lambda packed: b"plain text" + packed, "cannot be read as gzip"),
        (lambda packed: changed(packed, len(packed) - 6), "cannot be read as gzip"),
        (lambda packed: changed(packed, len(packed) // 2), "cannot be read as gzip|altered|short"),
        (lambda packed: gzip.compress(changed(gzip.decompress(packed), 7)), "was altered: SHA"),
        (lambda packed: gzip.compress(gzip.decompress(packed)[:-5]), "was altered: SHA"),
        (lambda packed: gzip.compress(gzip.decompress(packed) + b"x"), "was altered: SHA"),
        (lambda packed: gzip.compress(changed(gzip.decompress(packed), 99)), "was altered: SHA"),
    ],
)
def test_a_damaged_file_is_named_with_its_fault_and_the_remedy(folder, tiny, damage, said):
    (folder / IMAGES).write_bytes(damage(tiny[IMAGES]))
    with pytest.raises(InputError, match=said) as caught:
        load_mnist(folder)
    assert caught.value.problems[0].source == str(folder / IMAGES)
    assert f"into {folder}" in str(caught.value) and "--download" in str(caught.value)


def test_every_wrong_file_is_listed(folder):
    (folder / IMAGES).unlink()
    (folder / LABELS).write_bytes(b"text")
    with pytest.raises(InputError) as caught:
        load_mnist(folder)
    assert [str(folder / IMAGES), str(folder / LABELS), None] == [
        problem.source for problem in caught.value.problems
    ]


def test_folders_are_looked_through_in_order(folder, tmp_path, monkeypatch, tiny):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FEDPLAN_DATA", str(tmp_path / "none"))
    with pytest.raises(InputError, match="not found; looked in") as caught:
        load_mnist()
    assert str(tmp_path / "none" / "mnist") in str(caught.value)
    assert str(tmp_path / "cache" / "fedplan" / "mnist") in str(caught.value)
    monkeypatch.setenv("FEDPLAN_DATA", str(folder))
    assert len(load_mnist().x) == 30
    inner = tmp_path / "data" / "mnist"
    inner.mkdir(parents=True)
    for name, content in tiny.items():
        (inner / name).write_bytes(content)
    monkeypatch.setenv("FEDPLAN_DATA", str(tmp_path / "data"))
    assert len(load_mnist().x) == 30


def test_the_cache_is_in_the_home_folder_unless_told(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert mnist.default_folder() == tmp_path / ".cache" / "fedplan" / "mnist"


def test_the_real_files_pass_every_check(mnist_folder):
    digits = load_mnist(mnist_folder)
    assert digits.x.shape == (60_000, 784) and digits.test_x.shape == (10_000, 784)
    assert np.bincount(digits.y).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949,
    ]  # fmt: skip
    assert (digits.x.min(), digits.x.max()) == (0.0, 1.0)


def test_mini_has_the_proportions_of_mnist_and_loads_quickly():
    start = time.process_time()
    digits = mnist_mini()
    assert time.process_time() - start < 0.5  # of this process: other work may be going on
    assert np.bincount(digits.y).tolist() == [592, 674, 596, 613, 584, 542, 592, 627, 585, 595]
    assert digits.x.shape == (6_000, 784) and digits.test_x.shape == (1_000, 784)
    assert digits.x.dtype == np.float32 and digits.y.dtype == np.int64
    assert (digits.x.min(), digits.x.max()) == (0.0, 1.0)
    assert MINI_FILE.stat().st_size < 1_000_000
    assert "CC BY-SA 3.0" in MINI_FILE.with_name("mnist_mini.LICENSE.txt").read_text()


def test_mini_is_what_its_maker_makes(mnist_folder):
    content = maker.mini_content(mnist_folder)
    assert content == lzma.decompress(MINI_FILE.read_bytes())


def test_mini_holds_images_of_mnist_none_twice(mnist_folder):
    mini, full = mnist_mini(), load_mnist(mnist_folder)
    for x, y, all_x, all_y in (
        (mini.x, mini.y, full.x, full.y),
        (mini.test_x, mini.test_y, full.test_x, full.test_y),
    ):
        known = {hashlib.sha256(row.tobytes()).digest(): n for n, row in enumerate(all_x)}
        rows = [known[hashlib.sha256(row.tobytes()).digest()] for row in x]
        assert rows == sorted(set(rows))
        assert np.array_equal(all_y[rows], y)


def test_writing_mini_anew_gives_the_same_content(mnist_folder, tmp_path, monkeypatch):
    quick = [{"id": lzma.FILTER_LZMA2, "preset": 0}]  # the content counts: liblzma may change
    monkeypatch.setattr(maker, "FILTERS", quick)
    maker.write_mini(mnist_folder, tmp_path / "mini.xz")
    written = lzma.decompress((tmp_path / "mini.xz").read_bytes())
    assert written == lzma.decompress(MINI_FILE.read_bytes())
