"""Partitions: which client holds which sample, and the data grouped that way.

A partition is a list with one array of sample numbers per client; no sample is in it twice.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedplan.errors import InputError, InputProblem, refuse, require
from fedplan.tasks.dataset import FederatedData, IntArray, as_array, is_integers

Assignment = list[IntArray]
MAX_CONCENTRATION = 1e6  # already an equal split to three digits


def iid(num_samples: int, num_clients: int, seed: int = 0) -> Assignment:
    """Deal out shuffled samples evenly; sizes differ by at most one.

    >>> [len(samples) for samples in iid(10, 3)]
    [4, 3, 3]
    """
    _check_enough(num_samples, num_clients)
    return np.array_split(generator(seed).permutation(num_samples), num_clients)


def by_sizes(num_samples: int, sizes: Sequence[int] | IntArray, seed: int = 0) -> Assignment:
    """Deal out shuffled samples so that client k gets sizes[k]; the rest stays unused.

    >>> [len(samples) for samples in by_sizes(10, [5, 1, 2])]
    [5, 1, 2]
    """
    counts = as_array(sizes)
    refuse(sizes_problems(counts))
    if counts.sum() > num_samples:
        raise InputError(
            f"`sum of sizes <= num_samples` must hold, but got {counts.sum()} > {num_samples}. "
            "Lower the sizes, or bring more samples."
        )
    ends = np.cumsum(counts)
    return np.split(generator(seed).permutation(num_samples)[: ends[-1]], ends[:-1])


def power_law_sizes(
    num_clients: int, num_samples: int, *, exponent: float = 1.5, min_size: int = 1, seed: int = 0
) -> IntArray:
    """Draw client sizes with a power-law tail that add up to num_samples exactly.

    Every client has `min_size`; the rest is shared in proportion to Pareto draws with
    P(size > s) ~ s^-exponent, so with a smaller exponent fewer clients hold more of the data.

    >>> sizes = power_law_sizes(100, 6000, min_size=10, seed=1)
    >>> int(sizes.sum()), bool(sizes.min() >= 10)
    (6000, True)
    """
    rules = {"0.05 <= exponent < inf": 0.05 <= exponent < np.inf, "min_size >= 1": min_size >= 1}
    require(rules, exponent=exponent, min_size=min_size)
    _check_enough(num_samples, num_clients, min_size)
    shares = 1.0 + generator(seed).pareto(exponent, num_clients)
    return min_size + apportion(shares, num_samples - min_size * num_clients)


def dirichlet(y: ArrayLike, num_clients: int, concentration: float, seed: int = 0) -> Assignment:
    """Split each label over the clients by proportions drawn from Dirichlet(concentration).

    Near 0 each label is on one client; a large value gives an equal split. All samples are dealt
    out. A client left without any takes one from the client that holds most.

    >>> split = dirichlet([0, 0, 0, 1, 1, 1], num_clients=3, concentration=0.5, seed=4)
    >>> sum(len(samples) for samples in split), min(len(samples) for samples in split)
    (6, 1)
    """
    labels = label_array(y)
    rule = f"0 < concentration <= {MAX_CONCENTRATION:g}"
    require({rule: 0 < concentration <= MAX_CONCENTRATION}, concentration=concentration)
    _check_enough(len(labels), num_clients)
    random = generator(seed)
    parts: list[list[IntArray]] = [[] for _ in range(num_clients)]
    for label in np.unique(labels):
        samples = random.permutation(np.flatnonzero(labels == label))
        shares = random.dirichlet(np.full(num_clients, float(concentration)))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(samples)).astype(np.int64)
        for part, piece in zip(parts, np.split(samples, cuts), strict=True):
            part.append(piece)
    clients = [np.concatenate(part) for part in parts]
    return _fill_empty(clients)


def federate(
    x: ArrayLike,
    y: ArrayLike,
    assignment: Sequence[ArrayLike],
    *,
    num_classes: int | None = None,
    test_x: ArrayLike | None = None,
    test_y: ArrayLike | None = None,
    image_shape: Sequence[int] | None = None,
    name: str = "data",
) -> FederatedData:
    """Group samples by client; `num_classes` is the largest label + 1 unless given.

    >>> federate([[0.5], [1.5], [2.5]], [0, 1, 0], [[2], [0, 1]])
    <FederatedData 'data': 2 clients, 3 samples (1 to 2 a client), 1 features, 2 classes,
    no test samples>
    """
    samples, labels = as_array(x), label_array(y)
    if samples.shape[:1] != labels.shape:
        raise InputError(
            f"x must have one row per label, but has shape {samples.shape}, for {len(labels)}."
        )
    clients = _checked(assignment, len(labels))
    order = np.concatenate(clients)
    if num_classes is None:
        num_classes = max(2, int(labels.max()) + 1)
    return FederatedData(
        x=samples[order],
        y=labels[order],
        starts=np.cumsum([0, *map(len, clients)]),
        num_classes=num_classes,
        test_x=test_x,
        test_y=test_y,
        image_shape=image_shape,
        name=name,
    )


def apportion(shares: ArrayLike, total: int) -> IntArray:
    """Share `total` in whole numbers in proportion to `shares`, by largest remainder.

    >>> apportion([1.0, 1.0, 2.0], 10).tolist()
    [3, 2, 5]
    """
    proportions = np.asarray(shares, dtype=np.float64)
    exact = proportions / proportions.sum() * total
    counts: IntArray = np.floor(exact).astype(np.int64)
    by_remainder = np.argsort(counts - exact, kind="stable")
    counts[by_remainder[: total - counts.sum()]] += 1
    return counts


def label_array(y: ArrayLike) -> IntArray:
    """The labels as a flat int64 array; anything else is an InputError."""
    labels = as_array(y)
    if not is_integers(labels):
        raise InputError(
            f"y must be a flat array of at least one integer, but has shape {labels.shape} and "
            f"type {labels.dtype}."
        )
    return labels.astype(np.int64)


def generator(seed: int) -> np.random.Generator:
    """A generator for this seed; a negative seed is an InputError."""
    require({"seed >= 0": seed >= 0}, seed=seed)
    return np.random.default_rng(seed)


def sizes_problems(sizes: NDArray[Any], num_clients: float | None = None) -> list[str]:
    """What keeps this array from being the numbers of samples of so many clients."""
    if is_integers(sizes) and sizes.min() >= 1 and num_clients in (None, sizes.size):
        return []
    wanted = "" if num_clients is None else f"{num_clients} "
    shown = np.array2string(sizes, threshold=6)
    return [f"sizes must be {wanted}integers >= 1, one per client, but got {shown}."]


def _check_enough(num_samples: int, num_clients: int, min_size: int = 1) -> None:
    require({"num_clients >= 1": num_clients >= 1}, num_clients=num_clients)
    if num_samples < num_clients * min_size:
        raise InputError(
            f"every client needs at least {min_size} sample{'s' * (min_size > 1)}, but "
            f"{num_clients} clients share {num_samples}. "
            f"Use at most {max(0, num_samples) // min_size} clients, or bring more samples."
        )


def _fill_empty(clients: Assignment) -> Assignment:
    sizes = np.array([len(samples) for samples in clients])
    for empty in np.flatnonzero(sizes == 0):
        giver = int(np.argmax(sizes))
        clients[empty], clients[giver] = clients[giver][-1:], clients[giver][:-1]
        sizes[empty], sizes[giver] = 1, sizes[giver] - 1
    return clients


def _checked(assignment: Sequence[ArrayLike], num_samples: int) -> Assignment:
    clients = [as_array(samples) for samples in assignment]
    problems = []
    for client, samples in enumerate(clients):
        if not is_integers(samples):
            problems.append(f"client {client} must hold a flat array of at least one integer.")
        elif samples.min() < 0 or samples.max() >= num_samples:
            problems.append(
                f"client {client} holds sample numbers {samples.min()} to {samples.max()}, but "
                f"they must be 0 to {num_samples - 1}."
            )
    if not clients:
        problems.append("the assignment must name at least one client, but is empty.")
    if not problems:
        held = np.bincount(np.concatenate(clients), minlength=num_samples)
        if held.max() > 1:
            problems.append(
                f"no sample may be held twice, but sample {held.argmax()} stands {held.max()} "
                f"times ({np.count_nonzero(held > 1)} such samples)."
            )
    refuse(InputProblem(column="assignment", message=text) for text in problems)
    return [samples.astype(np.int64) for samples in clients]
