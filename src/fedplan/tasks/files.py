"""The user's own data: one .npz file for all clients, or a folder with one for each."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedplan.errors import InputError, InputProblem
from fedplan.tasks.dataset import FederatedData, IntArray, array_problem

Arrays = dict[str, NDArray[Any]]
REQUIRED = ("x", "y", "client")
OPTIONAL = ("test_x", "test_y")


def read_data(
    path: str | os.PathLike[str], *, num_classes: int | None = None, name: str | None = None
) -> FederatedData:
    """Read federated data from a `.npz` file or a folder of them.

    A file has arrays `x` (samples first; more than two axes are taken for images and flattened),
    `y` (integer labels from 0) and `client` (an integer or a text a sample), and may have
    `test_x` and `test_y`. Clients stand in sorted order, samples in the order of the file.
    A folder has one file a client, with `x` and `y`; clients stand in the order of the file
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
    arrays, problems = _load(path, REQUIRED, OPTIONAL)
    problems += _length_problems(path, arrays, ("x", "y", "client"))
    problems += _length_problems(path, arrays, ("test_x", "test_y"))
    if problems:
        raise InputError(problems)
    _, position, counts = np.unique(arrays["client"], return_inverse=True, return_counts=True)
    order = np.argsort(position, kind="stable")
    grouped = {"x": arrays["x"][order], "y": arrays["y"][order]}
    grouped |= {key: arrays[key] for key in OPTIONAL if key in arrays}
    return grouped, np.concatenate([[0], np.cumsum(counts)])


def _from_folder(folder: Path) -> tuple[Arrays, IntArray]:
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise InputError(
            InputProblem(source=str(folder), message="holds no .npz file. Put one a client there.")
        )
    clients: list[Arrays] = []
    problems: list[InputProblem] = []
    for path in paths:
        arrays, found = _load(path, ("x", "y"))
        problems += found + _length_problems(path, arrays, ("x", "y"))
        clients.append(arrays)
    shapes = [arrays["x"].shape[1:] if "x" in arrays else None for arrays in clients]
    first = next((shape for shape in shapes if shape is not None), None)
    problems += [
        _problem(path, "x", f"has samples of shape {shape}, but the first file's are {first}.")
        for path, shape in zip(paths, shapes, strict=True)
        if shape not in (None, first)
    ]
    if problems:
        raise InputError(problems)
    joined = {key: np.concatenate([arrays[key] for arrays in clients]) for key in ("x", "y")}
    return joined, np.cumsum([0, *(len(arrays["y"]) for arrays in clients)])


def _load(
    path: Path, required: Sequence[str], optional: Sequence[str] = ()
) -> tuple[Arrays, list[InputProblem]]:
    """The arrays of one file that can be used, and what is wrong with the others."""
    try:
        with path.open("rb") as stream:  # numpy leaves a broken file open
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {}, [_problem(path, None, "holds one bare array. Save with numpy.savez.")]
            with loaded:
                return _pick(path, loaded, required, optional)
    except FileNotFoundError:
        return {}, [_problem(path, None, "does not exist.")]
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile):
        return {}, [_problem(path, None, "is not a readable .npz file. Save with numpy.savez.")]


def _pick(
    path: Path, file: Mapping[str, NDArray[Any]], required: Sequence[str], optional: Sequence[str]
) -> tuple[Arrays, list[InputProblem]]:
    arrays, problems = {}, []
    for key in (*required, *(key for key in optional if key in file)):
        if key not in file:
            message = f"is missing; the file has the arrays: {', '.join(file) or 'none'}."
            problems.append(_problem(path, key, message))
        elif isinstance(values := _read_array(file, key), str):
            problems.append(_problem(path, key, values))
        else:
            arrays[key] = values
    return arrays, problems


def _read_array(file: Mapping[str, NDArray[Any]], key: str) -> NDArray[Any] | str:
    """The array, or what is wrong with it."""
    try:
        values = file[key]
    except ValueError as error:
        if "Object arrays" in str(error):
            return (
                "is an array of Python objects, which fedplan never loads, as that could run "
                "code. Store plain numbers, for example with numpy.asarray(values, dtype=float)."
            )
        return f"cannot be read ({error})."
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        return f"is damaged ({error}). Write the file again."
    if key == "client":
        fits = values.ndim == 1 and values.dtype.kind in "iuSU"
        return values if fits else "must be a flat array, one integer or one text a sample."
    return array_problem(key, _flat(values)) or values


def _flat(values: NDArray[Any]) -> NDArray[Any]:
    """Images as rows of numbers; anything else as it is."""
    return values.reshape(len(values), -1) if values.ndim > 2 and values.size else values


def _length_problems(path: Path, arrays: Arrays, keys: Sequence[str]) -> list[InputProblem]:
    lengths = {key: len(arrays[key]) for key in keys if key in arrays}
    if len(set(lengths.values())) <= 1:
        return []
    shown = ", ".join(f"{key} {length}" for key, length in lengths.items())
    return [_problem(path, None, f"{', '.join(lengths)} must be equally long, but are: {shown}.")]


def _count_classes(arrays: Arrays) -> int:
    labels = [arrays[key] for key in ("y", "test_y") if key in arrays]
    return max(2, *(int(values.max(initial=0)) + 1 for values in labels))


def _problem(path: Path, key: str | None, message: str) -> InputProblem:
    return InputProblem(source=str(path), column=key, message=message)
