"""Two labels per client: the partitions of the paper's MNIST experiments."""

from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from fedplan.errors import InputError, refuse, unmet
from fedplan.tasks.dataset import IntArray
from fedplan.tasks.partition import Assignment, generator, label_array

TRIES = 10  # ways of pairing labels, where the first does not give halves; the most even is kept


def two_labels_balanced(
    y: ArrayLike, num_clients: int, samples_per_client: int, seed: int = 0
) -> Assignment:
    """Give every client the same number of samples, of exactly two labels (Setup 1).

    Every label is on equally many clients, and a client has half of its samples from each of
    its two labels, as far as there are enough samples of every label; where there are not, the
    halves bend until no label is overdrawn. Which labels meet on a client, and who gets
    which sample, is drawn.

    >>> labels = np.repeat(np.arange(10), 600)
    >>> split = two_labels_balanced(labels, num_clients=20, samples_per_client=300)
    >>> {len(samples) for samples in split}, {len(set(labels[samples])) for samples in split}
    ({300}, {2})
    """
    values, position = np.unique(label_array(y), return_inverse=True)
    counts = np.bincount(position)
    _check_balanced(counts, num_clients, samples_per_client)
    random = generator(seed)
    slots = _slots(counts, num_clients, samples_per_client)
    found: list[tuple[int, IntArray, IntArray]] = []  # worst share, pairs, shares
    for _ in range(TRIES):
        pairs = _draw_pairs(slots, num_clients, random)
        shares = _balance(pairs, counts, samples_per_client)
        if shares is not None:
            found.append((int(shares.min()), pairs, shares))
            if shares.min() == samples_per_client // 2:
                break
    if not found:
        raise InputError(
            f"no way was found to give {num_clients} clients {samples_per_client} samples of two "
            f"labels each, with {counts.tolist()} samples of labels {values.tolist()}. "
            "Lower samples_per_client or num_clients."
        )
    _, pairs, shares = max(found, key=lambda option: option[0])
    pools = [random.permutation(np.flatnonzero(position == label)) for label in range(len(values))]
    used = np.zeros(len(values), np.int64)
    clients = []
    for pair, share in zip(pairs, shares, strict=True):
        pieces = [
            pools[label][used[label] : used[label] + count]
            for label, count in zip(pair, share, strict=True)
        ]
        used[pair] += share
        clients.append(np.concatenate(pieces))
    return clients


def two_labels_shards(
    y: ArrayLike, num_clients: int = 100, shards_per_label: int = 20, seed: int = 0
) -> Assignment:
    """Cut each label into contiguous shards; each client takes one of two labels (Setup 2).

    The samples of a label, in the order of y, are cut into `shards_per_label` shards, the first
    (count mod shards) of them one longer. Client after client draws 2 distinct labels, uniformly
    among those with shards left (`numpy.random.RandomState(seed).choice`), and takes the last
    shard of each. Where only one label is left, the earliest client without it swaps its first
    shard for one of that label. RandomState(6) on MNIST gives sizes of mean 600 and sd 20.14.

    >>> labels = np.repeat(np.arange(10), 600)
    >>> split = two_labels_shards(labels, seed=6)
    >>> len(split), {len(samples) for samples in split}
    (100, {60})
    """
    labels = label_array(y)
    values, counts = np.unique(labels, return_counts=True)
    _check_shards(values, counts, num_clients, shards_per_label, seed)
    random = np.random.RandomState(seed)
    left = [np.array_split(np.flatnonzero(labels == value), shards_per_label) for value in values]
    held: list[dict[int, IntArray]] = []  # label -> shard, for every client so far
    for _ in range(num_clients):
        available = [label for label, shards in enumerate(left) if shards]
        if len(available) > 1:
            drawn = random.choice(available, 2, replace=False).tolist()
            held.append({label: left[label].pop() for label in drawn})
            continue
        (last,) = available
        giver = next(client for client, shards in enumerate(held) if last not in shards)
        (first, given), (second, kept) = held[giver].items()
        held[giver] = {last: left[last].pop(), second: kept}
        held.append({last: left[last].pop(), first: given})
    return [np.concatenate(list(shards.values())) for shards in held]


def _check_balanced(counts: IntArray, num_clients: int, samples_per_client: int) -> None:
    rules = {
        "num_clients >= 1": num_clients >= 1,
        "samples_per_client >= 2": samples_per_client >= 2,
    }
    problems = unmet(rules, num_clients=num_clients, samples_per_client=samples_per_client)
    if len(counts) < 2:
        problems.append(f"y must have at least 2 different labels, but has {len(counts)}.")
    # A client takes at least 1 and at most samples_per_client - 1 of a label.
    usable = np.minimum(counts, num_clients * (samples_per_client - 1)).sum()
    if not problems and num_clients * samples_per_client > usable:
        problems.append(
            f"`num_clients * samples_per_client <= {usable}` usable samples must hold, but got "
            f"{num_clients} * {samples_per_client}. Lower one of them, or bring more samples."
        )
    refuse(problems)


def _slots(counts: IntArray, num_clients: int, samples_per_client: int) -> IntArray:
    """How many clients hold each label: even while halves last, then in proportion to counts."""
    half = -(-samples_per_client // 2)
    slots = np.zeros(len(counts), np.int64)
    most = np.minimum(counts, num_clients)
    for _ in range(2 * num_clients):
        roomy = (counts >= (slots + 1) * half) & (slots < most)
        if roomy.any():
            choice = np.where(roomy, slots, np.iinfo(np.int64).max).argmin()
        else:  # _check_balanced has made sure that one is below its most
            choice = np.where(slots < most, counts / (slots + 1), -1.0).argmax()
        slots[choice] += 1
    return slots


def _draw_pairs(slots: IntArray, num_clients: int, random: np.random.Generator) -> IntArray:
    """Draw a pair of distinct labels for every client, shape (num_clients, 2), never stuck.

    Sorted places i and i + num_clients hold distinct labels, as no label has more places than
    there are clients; random swaps that keep the labels distinct then mix the pairs.
    """
    order = random.permutation(len(slots))
    places = np.repeat(order, slots[order])
    first, second = places[:num_clients].tolist(), places[num_clients:].tolist()
    for one, other in random.integers(num_clients, size=(20 * num_clients, 2)).tolist():
        if first[one] != second[other] and first[other] != second[one]:
            second[one], second[other] = second[other], second[one]
    pairs = np.stack([first, second], axis=1)
    flipped = random.random(num_clients) < 0.5
    pairs[flipped] = pairs[flipped, ::-1]
    return pairs


def _balance(pairs: IntArray, counts: IntArray, samples_per_client: int) -> IntArray | None:
    """Samples of each client's two labels: halves, bent until no label is overdrawn.

    A client with labels a and b can take one sample less of a and one more of b; a chain of such
    exchanges leads from an overdrawn label to one with samples to spare. None if there is none.
    """
    half = samples_per_client // 2
    shares = np.tile(np.array([samples_per_client - half, half]), (len(pairs), 1))
    spare = counts - np.bincount(pairs.ravel(), shares.ravel(), len(counts)).astype(np.int64)
    while (spare < 0).any():
        source = int(spare.argmin())
        chain = _chain(source, pairs, shares, spare)
        if chain is None:
            return None
        client, side = chain[-1]
        target = pairs[client, 1 - side]
        most = min(-spare[source], spare[target], *(shares[link] - 1 for link in chain))
        amount = max(1, most // 8)  # in small steps, to spread the exchanges over clients
        for client, side in chain:
            shares[client, side] -= amount
            shares[client, 1 - side] += amount
        spare[source] += amount
        spare[target] -= amount
    return shares


def _chain(
    source: int, pairs: IntArray, shares: IntArray, spare: IntArray
) -> list[tuple[int, int]] | None:
    """Shortest chain of (client, side that gives) from the source to a label with spare samples."""
    reached: dict[int, list[tuple[int, int]]] = {source: []}
    queue = deque([source])
    while queue:
        label = queue.popleft()
        clients, sides = np.nonzero((pairs == label) & (shares > 1))
        for best in np.argsort(-shares[clients, sides], kind="stable"):
            client, side = int(clients[best]), int(sides[best])
            target = int(pairs[client, 1 - side])
            if target not in reached:
                reached[target] = [*reached[label], (client, side)]
                if spare[target] > 0:
                    return reached[target]
                queue.append(target)
    return None


def _check_shards(
    values: IntArray, counts: IntArray, num_clients: int, shards_per_label: int, seed: int
) -> None:
    rules = {
        "num_clients >= 1": num_clients >= 1,
        "shards_per_label >= 1": shards_per_label >= 1,
        "0 <= seed < 2**32": 0 <= seed < 2**32,
    }
    problems = unmet(rules, num_clients=num_clients, shards_per_label=shards_per_label, seed=seed)
    if len(values) < 2:
        problems.append(f"y must have at least 2 different labels, but has {len(values)}.")
    elif 2 * num_clients > len(values) * shards_per_label:
        problems.append(
            f"{num_clients} clients take 2 shards each, but {len(values)} labels cut into "
            f"{shards_per_label} give {len(values) * shards_per_label}. Raise shards_per_label to "
            f"{-(-2 * num_clients // len(values))} or lower num_clients."
        )
    problems += [
        f"label {value} has {count} samples, too few for {shards_per_label} shards. "
        "Lower shards_per_label."
        for value, count in zip(values, counts, strict=True)
        if count < shards_per_label
    ]
    refuse(problems)
