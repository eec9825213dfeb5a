"""The user's own data: one .npz file for all clients, or a folder with one for each."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedplan.errors import Collector, InputError, InputProblem, refuse
from fedplan.tasks.dataset import FederatedData, IntArray, array_problem
from fedplan.tasks.npz import Arrays, Header, NpzFile, check_sizes

REQUIRED = ("x", "y", "client")
OPTIONAL = ("test_x", "test_y")


def read_data(
    path: str | os.PathLike[str], *, num_classes: int | None = None, name: str | None = None
) -> FederatedData:
    """Read federated data from a `.npz` file or a folder of them.

    A file has arrays `x` (samples first; more than two axes are taken for images and flattened),
    `y` (integer labels from 0) and `client` (an integer or a text per sample), and may have
    `test_x` and `test_y`. Clients are sorted, samples are in the order of the file.
    A folder has one file per client, with `x` and `y`; clients are in the order of the file
    names, so number them 01, 02, ... `num_classes` is the largest label + 1 unless given.

    Nothing in a file is ever executed: arrays of Python objects are refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.npz"
    ...     np.savez(file, x=[[1.0], [2.0], [3.0]], y=[0, 1, 1], client=["b", "a", "b"])
    ...     data = read_data(file)
    >>> data.sizes.tolist(), data.x.ravel().tolist()
    ([1, 2], [2.0, 1.0, 3.0])
    """
    path = Path(path)
    arrays, starts = _from_folder(path) if path.is_dir() else _from_file(path)
    shape = arrays["x"].shape[1:]
    if num_classes is None:
        num_classes = _count_classes(arrays)
    try:
        return FederatedData(
            x=_flat(arrays["x"]),
            y=arrays["y"],
            starts=starts,
            num_classes=num_classes,
            test_x=_flat(arrays["test_x"]) if "test_x" in arrays else None,
            test_y=arrays.get("test_y"),
            image_shape=shape if len(shape) > 1 else None,
            name=path.stem if name is None else name,
        )
    except InputError as error:
        raise InputError(replace(problem, source=str(path)) for problem in error.problems) from None


def _from_file(path: Path) -> tuple[Arrays, IntArray]:
    file = NpzFile(path, REQUIRED, OPTIONAL, _problem_of)
    for keys in (REQUIRED, OPTIONAL):
        _check_lengths(file, keys)
    arrays = _read([file])[0]
    _, position, counts = np.unique(arrays["client"], return_inverse=True, return_counts=True)
    order = np.argsort(position, kind="stable")
    grouped = {"x": arrays["x"][order], "y": arrays["y"][order]}
    grouped |= {key: arrays[key] for key in OPTIONAL if key in arrays}
    return grouped, np.concatenate([[0], np.cumsum(counts)])


def _from_folder(folder: Path) -> tuple[Arrays, IntArray]:
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise InputError(
            InputProblem(source=str(folder), message="holds no .npz file. Put in one per client.")
        )
    files = [NpzFile(path, ("x", "y"), (), _problem_of) for path in paths]
    first = next((file.headers["x"].shape[1:] for file in files if "x" in file.headers), None)
    for file in files:
        _check_lengths(file, ("x", "y"))
        if "x" in file.headers and (shape := file.headers["x"].shape[1:]) != first:
            file.note("x", f"has samples of shape {shape}, but the first file's are {first}.")
    clients = _read(files)
    joined = {key: np.concatenate([arrays[key] for arrays in clients]) for key in ("x", "y")}
    return joined, np.cumsum([0, *(len(arrays["y"]) for arrays in clients)])


def _read(files: Sequence[NpzFile]) -> list[Arrays]:
    """The arrays of each file, once nothing is wrong with any."""
    refuse([problem for file in files for problem in file.problems])
    check_sizes(files)
    collector = Collector()
    arrays = [collector.attempt(file.read) for file in files]
    collector.finish()
    return [one for one in arrays if one is not None]


def _problem_of(key: str, header: Header) -> str | None:
    """What is wrong with an array, by its header."""
    if header.dtype.hasobject:
        return (
            "is an array of Python objects, which fedplan never loads, as that could run "
            "code. Store plain numbers, for example with numpy.asarray(values, dtype=float)."
        )
    if key == "client":
        fits = len(header.shape) == 1 and header.dtype.kind in "iuSU"
        return None if fits else "must be a flat array, one integer or one text per sample."
    return array_problem(key, header.flat())


def _flat(values: NDArray[Any]) -> NDArray[Any]:
    """Images as rows of numbers; anything else as it is."""
    return values.reshape(len(values), -1) if values.ndim > 2 and values.size else values


def _check_lengths(file: NpzFile, keys: Sequence[str]) -> None:
    lengths = {key: file.headers[key].shape[0] for key in keys if key in file.headers}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{key} {length}" for key, length in lengths.items())
        file.note(None, f"{', '.join(lengths)} must be equally long, but are: {shown}.")


def _count_classes(arrays: Arrays) -> int:
    labels = [arrays[key] for key in ("y", "test_y") if key in arrays]
    return max(2, *(int(values.max(initial=0)) + 1 for values in labels))
