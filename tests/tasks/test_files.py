"""The user's own .npz files: read as promised, refused with every problem in one go."""

from __future__ import annotations

import tracemalloc
import zipfile

import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.tasks import read_data

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 2, 0, 1, 2])
CLIENT = np.array([7, 3, 7, 3, 3, 9])


@pytest.fixture
def npz(tmp_path):
    def save(**arrays):
        np.savez(tmp_path / "mine.npz", **arrays)
        return tmp_path / "mine.npz"

    return save


def test_samples_are_grouped_by_client_in_their_order(npz):
    data = read_data(npz(x=X, y=Y, client=CLIENT))
    assert data.sizes.tolist() == [3, 2, 1]
    assert data.x[:, 0].tolist() == [2, 6, 8, 0, 4, 10]
    assert data.y.tolist() == [1, 0, 1, 0, 2, 2]
    assert (data.num_classes, data.name, data.image_shape, data.test_x) == (3, "mine", None, None)


def test_images_test_samples_and_options(npz):
    images = np.zeros((6, 4, 5), np.uint8)
    path = npz(x=images, y=Y, client=CLIENT.astype(str), test_x=images[:2], test_y=[0, 5])
    data = read_data(path, name="other")
    assert (data.image_shape, data.num_features, data.name) == ((4, 5), 20, "other")
    assert data.num_classes == 6 and data.test_x is not None and data.test_x.shape == (2, 20)
    assert read_data(path, num_classes=12).num_classes == 12


def test_compressed_files_work_too(tmp_path):
    np.savez_compressed(tmp_path / "c.npz", x=X, y=Y, client=CLIENT)
    assert read_data(tmp_path / "c.npz").num_samples == 6


def test_a_folder_has_one_file_a_client(tmp_path):
    np.savez(tmp_path / "b.npz", x=X[:2], y=Y[:2])
    np.savez(tmp_path / "a.npz", x=X[2:], y=Y[2:])
    (tmp_path / "notes.txt").write_text("not data")
    data = read_data(tmp_path)
    assert data.sizes.tolist() == [4, 2]
    assert data.y.tolist() == [2, 0, 1, 2, 0, 1]


def test_objects_are_refused_and_never_loaded(npz, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    path = npz(x=np.array([Trap()] * 2, dtype=object), y=[0, 1], client=[0, 0])
    with pytest.raises(InputError, match=r"Python objects.*never loads") as caught:
        read_data(path)
    assert caught.value.problems[0].column == "x"
    assert not (tmp_path / "sprung").exists()


def test_all_problems_of_a_file_are_listed(npz):
    with pytest.raises(InputError) as caught:
        read_data(npz(x=np.ones(5), y=[0.5, 1.5], other=[1]))
    found = {problem.column: problem for problem in caught.value.problems}
    assert set(found) == {"x", "y", "client"}
    assert "x, y, other" in found["client"].message
    assert all(problem.source and "mine.npz" in problem.source for problem in found.values())


def test_all_problems_of_a_folder_are_listed(tmp_path):
    np.savez(tmp_path / "1.npz", x=X, y=Y)
    np.savez(tmp_path / "2.npz", x=X[:, :1], y=Y)
    np.savez(tmp_path / "3.npz", x=X[:4], y=Y)
    np.savez(tmp_path / "4.npz", x=X)
    (tmp_path / "5.npz").write_bytes(b"rubbish")
    with pytest.raises(InputError) as caught:
        read_data(tmp_path)
    text = str(caught.value)
    assert len(caught.value.problems) == 4
    for said in (
        "2.npz, column x: has samples of shape (1,), but the first file's are (2,)",
        "3.npz: x, y must be equally long, but are: x 4, y 6",
        "4.npz, column y: is missing",
        "5.npz: is not a readable .npz file",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": X, "y": Y[:5], "client": CLIENT}, "x 6, y 5, client 6"),
        ({"x": X, "y": Y, "client": CLIENT + 0.5}, "one integer or one text per sample"),
        ({"x": X, "y": Y, "client": 3}, "one integer or one text per sample"),
        ({"x": X.astype(str), "y": Y, "client": CLIENT}, "must be real numbers"),
        ({"x": X[:0], "y": Y[:0], "client": CLIENT[:0]}, "at least one number"),
        ({"x": X, "y": -Y, "client": CLIENT}, "mine.npz, column y: must be 0 to"),
        ({"x": X * np.nan, "y": Y, "client": CLIENT}, "mine.npz, column x: must be finite"),
        ({"x": X, "y": Y, "client": CLIENT, "test_x": X}, "both test_x and test_y"),
        ({"x": X, "y": Y, "client": CLIENT, "test_x": X, "test_y": [0]}, "test_x 6, test_y 1"),
        ({"x": X, "y": Y, "client": CLIENT, "test_x": X[:, :1], "test_y": Y}, "2 features of x"),
    ],
)
def test_each_fault_is_named(npz, arrays, said):
    with pytest.raises(InputError, match=said):
        read_data(npz(**arrays))


def test_files_that_are_no_npz_are_refused(npz, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_data(tmp_path / "none.npz")
    with pytest.raises(InputError, match=r"holds no \.npz file"):
        read_data(tmp_path)
    np.save(tmp_path / "bare.npy", X)
    with pytest.raises(InputError, match="one bare array"):
        read_data(tmp_path / "bare.npy")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InputError, match="not a readable"):
        read_data(tmp_path / "empty")
    whole = npz(x=X, y=Y, client=CLIENT).read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not a readable"):
        read_data(tmp_path / "cut.npz")


def test_a_damaged_array_is_named(npz, tmp_path):
    content = bytearray(npz(x=X, y=Y, client=CLIENT).read_bytes())
    content[content.index(X.tobytes()) + 20] ^= 255
    (tmp_path / "bad.npz").write_bytes(bytes(content))
    with pytest.raises(InputError, match="column x: is damaged"):
        read_data(tmp_path / "bad.npz")


def member(path, name, content, *, method=zipfile.ZIP_STORED, break_at=None):
    """A file with sound arrays but for one member of this content."""
    np.savez(path, x=np.ones((10, 2)), y=np.arange(10) % 2, client=np.arange(10))
    with zipfile.ZipFile(path) as archive:
        others = {n: archive.read(n) for n in archive.namelist() if n != f"{name}.npy"}
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(f"{name}.npy", content)
        for other, data in others.items():
            archive.writestr(other, data)
    if break_at is not None:
        whole = bytearray(path.read_bytes())
        whole[break_at : break_at + 8] = b"\xff" * 8
        path.write_bytes(whole)
    return path


def npy(shape, kind="<f4", data=b""):
    text = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x", b"no array at all", "is damaged or no array"),
        ("x", npy((2**63 - 1, 4)), "is damaged or no array"),
        ("x", npy((2**70, 4)), "is damaged or no array"),
        ("x", npy((10, 10**9)), "would take"),
        ("x", npy((10, 4), data=b"\0" * 7), "is damaged"),
        ("x", npy("[" * 4000), "is damaged or no array"),
        ("x", npy((10, 2), "|O"), "Python objects"),
        ("y", npy((10,), "<i8", np.full(10, 2**63 - 1).tobytes()), "must be at most 65,536"),
        ("y", npy((10,), "<i8", np.full(10, 10**9).tobytes()), "numpy.unique"),
        ("client", npy((10,), "<f8"), "one integer or one text"),
    ],
)
def test_what_is_not_the_array_it_should_be_is_refused(tmp_path, name, content, reason):
    with pytest.raises(InputError, match=reason):
        read_data(member(tmp_path / "mine.npz", name, content))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("break_at", [40, 120, 400])
def test_damaged_compression_is_said(tmp_path, method, break_at):
    x = npy((10, 200), data=np.random.default_rng(1).random((10, 200), np.float32).tobytes())
    path = member(tmp_path / "mine.npz", "x", x, method=method, break_at=break_at)
    with pytest.raises(InputError, match=r"damaged|readable"):
        read_data(path)


def test_a_bomb_is_refused_before_it_goes_off(tmp_path):
    path = tmp_path / "bomb.npz"
    zeros = npy((10, 10**8), "|u1") + bytes(10**7)  # the header promises a hundred times more
    member(path, "x", zeros, method=zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"would take 8,000 MB .* numpy.savez"):
            read_data(path)
        assert tracemalloc.get_traced_memory()[1] < 1e7
    finally:
        tracemalloc.stop()
