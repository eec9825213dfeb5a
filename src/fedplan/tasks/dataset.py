"""FederatedData: labelled samples, grouped by the client that holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedplan.errors import InputError, InputProblem

FeatureArray = NDArray[np.float32]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FederatedData:
    """What the clients of a federation learn from; arrays are read-only.

    x : float32, shape (samples n, features); the rows of one client stand together.
    y : int64 labels, shape (n,), from 0 to num_classes - 1.
    starts : int64 row offsets, shape (num_clients + 1,); client k holds rows
        starts[k] to starts[k + 1], at least one.
    test_x, test_y : samples no client trains on, or None.
    image_shape : shape of one sample, such as (28, 28), where it is an image.
    name : what reports call the data.

    An array of the right type is kept as it is, not copied: leave it unchanged afterwards.

    >>> data = FederatedData(x=[[0.0], [1.0], [2.0]], y=[0, 1, 1], starts=[0, 1, 3], num_classes=2)
    >>> data.sizes.tolist(), data.client_rows(1)
    ([1, 2], slice(1, 3, None))
    """

    x: FeatureArray
    y: IntArray
    starts: IntArray
    num_classes: int
    test_x: FeatureArray | None
    test_y: IntArray | None
    image_shape: tuple[int, ...] | None
    name: str

    def __init__(
        self,
        *,
        x: ArrayLike,
        y: ArrayLike,
        starts: ArrayLike,
        num_classes: int,
        test_x: ArrayLike | None = None,
        test_y: ArrayLike | None = None,
        image_shape: Sequence[int] | None = None,
        name: str = "data",
    ) -> None:
        problems: list[InputProblem] = []
        x_, y_ = _features("x", x, problems), _integers("y", y, problems)
        starts_ = _integers("starts", starts, problems)
        test_x_ = None if test_x is None else _features("test_x", test_x, problems)
        test_y_ = None if test_y is None else _integers("test_y", test_y, problems)
        if num_classes < 2:
            problems.append(_problem("num_classes", f"must be >= 2, but got {num_classes}."))
        if (test_x is None) != (test_y is None):
            problems.append(InputProblem(message="give both test_x and test_y, or neither."))
        problems += _label_problems("", x_, y_, num_classes)
        problems += _label_problems("test_", test_x_, test_y_, num_classes)
        problems += _width_problems(x_, test_x_, image_shape)
        problems += _starts_problems(starts_, x_)
        if problems:
            raise InputError(problems)
        arrays = {"x": x_, "y": y_, "starts": starts_, "test_x": test_x_, "test_y": test_y_}
        for field, values in arrays.items():
            if values is not None:
                values = values.view()
                values.flags.writeable = False
            object.__setattr__(self, field, values)
        object.__setattr__(self, "num_classes", int(num_classes))
        shape = None if image_shape is None else tuple(map(int, image_shape))
        object.__setattr__(self, "image_shape", shape)
        object.__setattr__(self, "name", name)

    @property
    def num_clients(self) -> int:
        """Number of clients N."""
        return len(self.starts) - 1

    @property
    def num_samples(self) -> int:
        """Number of training samples n, over all clients."""
        return len(self.x)

    @property
    def num_features(self) -> int:
        """Numbers in one sample."""
        return int(self.x.shape[1])

    @property
    def sizes(self) -> IntArray:
        """Samples of each client n_k, shape (num_clients,)."""
        return np.diff(self.starts)

    @property
    def weights(self) -> FloatArray:
        """Weight of each client in the global loss, p_k = n_k / n; they add up to 1."""
        return np.asarray(self.sizes / self.num_samples, dtype=np.float64)

    def client_rows(self, client: int) -> slice:
        """Rows of x and y that client k holds."""
        if not 0 <= client < self.num_clients:
            raise InputError(f"client must be 0 to {self.num_clients - 1}, but got {client}.")
        return slice(int(self.starts[client]), int(self.starts[client + 1]))

    def __repr__(self) -> str:
        sizes = self.sizes
        test = "no test samples" if self.test_x is None else f"{len(self.test_x):,} test samples"
        shape = "" if self.image_shape is None else f" (image {self.image_shape})"
        return (
            f"<FederatedData {self.name!r}: {self.num_clients:,} clients, "
            f"{self.num_samples:,} samples ({sizes.min():,} to {sizes.max():,} a client), "
            f"{self.num_features:,} features{shape}, {self.num_classes} classes, {test}>"
        )


def _problem(field: str, message: str) -> InputProblem:
    return InputProblem(column=field, message=message)


def as_array(values: ArrayLike) -> NDArray[Any]:
    """An array of whatever type; rows of unequal length give one of type object, no exception."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.asarray(None)


def _features(field: str, values: ArrayLike, problems: list[InputProblem]) -> FeatureArray | None:
    given = as_array(values)
    if given.dtype.kind not in "buif":
        problems.append(_problem(field, "must be real numbers, in rows of one length."))
        return None
    if given.ndim != 2 or given.size == 0:
        problems.append(
            _problem(
                field,
                f"must have a shape (samples, features), both >= 1, but has {given.shape}. "
                "Flatten images with x.reshape(len(x), -1).",
            )
        )
        return None
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(given, dtype=np.float32)
    if not np.isfinite(array).all():
        rows = np.flatnonzero(~np.isfinite(array).all(axis=1))
        problems.append(
            _problem(
                field,
                f"must be finite in float32, but row {rows[0]} is not ({rows.size:,} such rows).",
            )
        )
    return array


def _integers(field: str, values: ArrayLike, problems: list[InputProblem]) -> IntArray | None:
    array = as_array(values)
    if array.ndim == 1 and array.dtype.kind in "iu":
        return np.ascontiguousarray(array, dtype=np.int64)
    problems.append(
        _problem(
            field,
            f"must be a flat array of integers, but has shape {array.shape} and type "
            f"{array.dtype}. Whole numbers stored as another type: {field}.astype(int).",
        )
    )
    return None


def _label_problems(
    prefix: str, x: FeatureArray | None, y: IntArray | None, num_classes: int
) -> list[InputProblem]:
    """Check that labels match their samples and stay in range."""
    features, labels = f"{prefix}x", f"{prefix}y"
    problems = []
    if x is not None and y is not None and len(x) != len(y):
        problems.append(
            _problem(labels, f"must have one label a row of {features}: {len(y)} for {len(x)}.")
        )
    if y is not None and num_classes >= 2:
        wrong = np.flatnonzero((y < 0) | (y >= num_classes))
        if wrong.size:
            problems.append(
                _problem(
                    labels,
                    f"must be 0 to num_classes - 1 = {num_classes - 1}, but entry {wrong[0]} is "
                    f"{y[wrong[0]]} ({wrong.size:,} such entries).",
                )
            )
    return problems


def _width_problems(
    x: FeatureArray | None, test_x: FeatureArray | None, image_shape: Sequence[int] | None
) -> list[InputProblem]:
    if x is None:
        return []
    problems = []
    width = x.shape[1]
    if test_x is not None and test_x.shape[1] != width:
        problems.append(
            _problem("test_x", f"must have the {width} features of x, but has {test_x.shape[1]}.")
        )
    if image_shape is not None and (
        min(image_shape, default=0) < 1 or math.prod(image_shape) != width
    ):
        problems.append(
            _problem(
                "image_shape",
                f"must multiply to the {width} features of x, but got {tuple(image_shape)}.",
            )
        )
    return problems


def _starts_problems(offsets: IntArray | None, x: FeatureArray | None) -> list[InputProblem]:
    if offsets is None or x is None:
        return []
    num_samples = len(x)
    if offsets.size < 2 or offsets[0] != 0 or offsets[-1] != num_samples:
        ends = f"{offsets[0]} to {offsets[-1]}" if offsets.size else "nothing"
        return [
            _problem(
                "starts",
                f"must go from 0 to the number of samples {num_samples} and hold num_clients + 1 "
                f"offsets, but got {offsets.size} offsets, from {ends}.",
            )
        ]
    empty = np.flatnonzero(np.diff(offsets) < 1)
    if empty.size:
        return [
            _problem(
                "starts",
                f"every client must hold at least 1 sample, but client {empty[0]} holds "
                f"{offsets[empty[0] + 1] - offsets[empty[0]]} ({empty.size:,} such clients). "
                "Leave them out.",
            )
        ]
    return []
