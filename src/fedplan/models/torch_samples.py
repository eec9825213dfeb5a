"""The clients' datasets, of whatever kind, read once into tensors."""

import operator
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils.data import TensorDataset

from fedplan.errors import InputError


class Dataset(Protocol):
    """A map-style dataset of pairs (x, label): a TensorDataset, a Subset, a list of pairs."""

    def __len__(self) -> int:
        """Number of samples."""

    def __getitem__(self, index: int, /) -> Any:
        """One pair."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Samples as tensors: x of shape (samples, ...), labels y of shape (samples,)."""

    x: torch.Tensor
    y: torch.Tensor

    def __len__(self) -> int:
        return len(self.y)


class _DatasetError(Exception):
    """A rule that a dataset breaks, by which problems are grouped, and how it breaks it."""

    def __init__(self, rule: str, how: str) -> None:
        super().__init__(f"{rule}, {how}")
        self.rule = rule


def read_samples(
    clients: Sequence[Dataset], test: Dataset | None
) -> tuple[list[Samples], Samples | None]:
    """Each client's samples, and the test samples, all of one shape.

    Floating-point samples become float32; integers, such as tokens, are unchanged.
    """
    named = [(f"client {k}", dataset) for k, dataset in enumerate(clients)]
    if not named:
        raise InputError("clients must hold at least one dataset, but holds none.")
    if test is not None:
        named.append(("test", test))
    read: list[Samples] = []
    problems: dict[str, list[str]] = defaultdict(list)
    first = ""
    for name, dataset in named:
        try:
            samples = _read(dataset)
            if read and samples.x.shape[1:] != read[0].x.shape[1:]:
                raise _DatasetError(
                    f"samples must have the shape of those of {first}",
                    f"{tuple(read[0].x.shape[1:])}, but have {tuple(samples.x.shape[1:])}. "
                    "Resize or pad them.",
                )
        except _DatasetError as error:
            problems[error.rule].append(f"{name}: {error}")
        else:
            first = first or name
            read.append(samples)
    if problems:
        raise InputError(
            found[0] + (f" ({len(found):,} such datasets.)" if len(found) > 1 else "")
            for found in problems.values()
        )
    return (read, None) if test is None else (read[:-1], read[-1])


def _read(dataset: Dataset) -> Samples:
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise _DatasetError(
            "must be a map-style dataset, with len(dataset) and dataset[index]",
            f"but is a {type(dataset).__name__}. Give a DataLoader's .dataset.",
        )
    if len(dataset) == 0:
        raise _DatasetError("must hold at least 1 sample", "but holds none. Leave it out.")
    if type(dataset) is TensorDataset and len(dataset.tensors) == 2:
        x, y = (tensor.detach().cpu() for tensor in dataset.tensors)
        if y.ndim != 1 or y.is_floating_point() or y.is_complex():
            raise _DatasetError(
                "labels must be whole numbers, one per sample",
                f"but have shape {tuple(y.shape)} and type {y.dtype}. Classes stored as another "
                "type: y.long().",
            )
    else:
        x, y = _stack(dataset)
    if x.is_floating_point():
        x = x.float()
        if not torch.isfinite(x).all():
            raise _DatasetError("samples must be finite in float32", "but some are not.")
    if y.min() < 0:
        raise _DatasetError("labels must be 0 or more", f"but {int(y.min())} occurs.")
    return Samples(x, y.long())


def _stack(dataset: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    """Stack the samples one by one, for any kind of dataset."""
    xs, ys = [], []
    for index in range(len(dataset)):
        pair = dataset[index]
        try:
            x, label = pair
            x = x if isinstance(x, torch.Tensor) else torch.tensor(np.asarray(x))
            ys.append(operator.index(label))
        except (TypeError, ValueError) as error:
            raise _DatasetError(
                "a sample must be a pair (x, label) of an array of numbers and a whole number",
                f"but sample {index} is a {type(pair).__name__} ({error}).",
            ) from None
        xs.append(x.detach().cpu())
    try:
        return torch.stack(xs), torch.tensor(ys)
    except RuntimeError as error:
        rule = "samples must have one shape"
        raise _DatasetError(rule, f"but {error}. Resize or pad them.") from None
