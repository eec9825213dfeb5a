"""FederatedData: labelled samples, grouped by the client that holds them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedplan.errors import InputError, InputProblem, refuse

FeatureArray = NDArray[np.float32]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
MOST_CLASSES = 1 << 16  # larger labels are hardly numbers of classes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FederatedData:
    """What the clients of a federation learn from; arrays are read-only.

    x : float32, shape (samples n, features); the rows of one client are adjacent.
    y : int64 labels, shape (n,), from 0 to num_classes - 1.
    starts : int64 row offsets, shape (num_clients + 1,); client k holds rows
        starts[k] to starts[k + 1], at least one.
    test_x, test_y : samples no client trains on, or None.
    image_shape : shape of one sample, such as (28, 28), if it is an image.
    name : of the data, for reports.

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
        given = {"x": x, "y": y, "starts": starts, "test_x": test_x, "test_y": test_y}
        held = {field: as_array(values) for field, values in given.items() if values is not None}
        wrong = {field: array_problem(field, values) for field, values in held.items()}
        arrays = {field: _stored(field, held[field]) for field in held if not wrong[field]}
        problems = [_problem(field, message) for field, message in wrong.items() if message]
        if (test_x is None) != (test_y is None):
            problems.append(InputProblem(message="give both test_x and test_y, or neither."))
        problems += _disagreements(arrays, num_classes, image_shape)
        refuse(problems)
        for field in given:
            object.__setattr__(self, field, arrays.get(field))
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


def is_integers(values: NDArray[Any]) -> bool:
    """Whether this is a flat array of at least one integer."""
    return values.ndim == 1 and values.size > 0 and values.dtype.kind in "iu"


def array_problem(field: str, values: NDArray[Any]) -> str | None:
    """What keeps an array from being samples (x) or whole numbers (all others), by itself."""
    if not field.endswith("x"):
        if values.ndim == 1 and values.dtype.kind in "iu":
            return None
        return (
            f"must be a flat array of integers, but has shape {values.shape} and type "
            f"{values.dtype}. Whole numbers stored as another type: {field}.astype(int)."
        )
    if values.dtype.kind not in "buif":
        return "must be real numbers, in rows of one length."
    if values.ndim != 2 or values.size == 0:
        return (
            "must have a shape (samples, features), with at least one number, but has "
            f"{values.shape}. Flatten images with x.reshape(len(x), -1)."
        )
    return None


def _stored(field: str, values: NDArray[Any]) -> NDArray[Any]:
    """The array as it is kept: of one type, and read-only."""
    with np.errstate(over="ignore"):
        kind = np.float32 if field.endswith("x") else np.int64
        stored = np.ascontiguousarray(values, dtype=kind).view()
    stored.flags.writeable = False
    return stored


def _disagreements(
    arrays: dict[str, NDArray[Any]], num_classes: int, image_shape: Sequence[int] | None
) -> Iterator[InputProblem]:
    """What is wrong with the values of arrays that are right by themselves, and between them."""
    if num_classes < 2:
        yield _problem("num_classes", f"must be >= 2, but got {num_classes}.")
    if num_classes > MOST_CLASSES:
        yield _problem(
            "num_classes",
            f"must be at most {MOST_CLASSES:,}, but got {num_classes:,}. Number the labels 0, 1, "
            "2, ...: y = numpy.unique(y, return_inverse=True)[1].",
        )
    for prefix in ("", "test_"):
        x, y = arrays.get(f"{prefix}x"), arrays.get(f"{prefix}y")
        if x is not None and not np.isfinite(x).all():
            rows = np.flatnonzero(~np.isfinite(x).all(axis=1))
            yield _problem(
                f"{prefix}x",
                f"must be finite in float32, but row {rows[0]} is not ({rows.size:,} such rows).",
            )
        if x is not None and y is not None and len(x) != len(y):
            yield _problem(
                f"{prefix}y", f"must have one label per row of {prefix}x: {len(y)} for {len(x)}."
            )
        if y is not None and num_classes >= 2:
            yield from _label_problems(f"{prefix}y", y, num_classes)
    x, test_x, starts = (arrays.get(field) for field in ("x", "test_x", "starts"))
    if x is None:
        return
    width = x.shape[1]
    if test_x is not None and test_x.shape[1] != width:
        yield _problem("test_x", f"must have the {width} features of x, but has {test_x.shape[1]}.")
    if image_shape is not None and (
        min(image_shape, default=0) < 1 or math.prod(image_shape) != width
    ):
        yield _problem(
            "image_shape",
            f"must multiply to the {width} features of x, but got {tuple(image_shape)}.",
        )
    if starts is not None:
        yield from _starts_problems(starts, len(x))


def _label_problems(field: str, y: IntArray, num_classes: int) -> Iterator[InputProblem]:
    wrong = np.flatnonzero((y < 0) | (y >= num_classes))
    if wrong.size:
        yield _problem(
            field,
            f"must be 0 to num_classes - 1 = {num_classes - 1}, but entry {wrong[0]} is "
            f"{y[wrong[0]]} ({wrong.size:,} such entries).",
        )


def _starts_problems(starts: IntArray, num_samples: int) -> Iterator[InputProblem]:
    if starts.size < 2 or starts[0] != 0 or starts[-1] != num_samples:
        ends = f"{starts[0]} to {starts[-1]}" if starts.size else "nothing"
        yield _problem(
            "starts",
            f"must go from 0 to the number of samples {num_samples} and hold num_clients + 1 "
            f"offsets, but got {starts.size} offsets, from {ends}.",
        )
        return
    empty = np.flatnonzero(np.diff(starts) < 1)
    if empty.size:
        yield _problem(
            "starts",
            f"every client must hold at least 1 sample, but client {empty[0]} holds "
            f"{starts[empty[0] + 1] - starts[empty[0]]} ({empty.size:,} such clients). "
            "Leave them out.",
        )
