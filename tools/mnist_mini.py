"""Make the tenth of MNIST in the package anew: python tools/mnist_mini.py FOLDER_OF_MNIST."""

from __future__ import annotations

import argparse
import lzma
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedplan.atomic import draft_of
from fedplan.tasks.mnist import MINI_FILE, NUM_DIGITS, NUM_MINI, NUM_MINI_TEST, read_arrays
from fedplan.tasks.partition import apportion

SEED = 2021
# Best of the settings tried: literal contexts of 4 bits, no alignment.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


def mini_content(folder: Path) -> bytes:
    """What data/mnist_mini.xz holds uncompressed, drawn from the full MNIST files in `folder`.

    Training pixels, training labels, test pixels, test labels, one byte each. Of each digit as
    many as its share of MNIST (largest remainder), drawn by RandomState(2021), digit after digit,
    training set first.
    """
    images, labels, test_images, test_labels = read_arrays(folder)
    random = np.random.RandomState(SEED)
    rows = _draw_rows(labels, NUM_MINI, random)
    test_rows = _draw_rows(test_labels, NUM_MINI_TEST, random)
    parts = (images[rows], labels[rows], test_images[test_rows], test_labels[test_rows])
    return b"".join(part.tobytes() for part in parts)


def write_mini(folder: Path, path: Path = MINI_FILE) -> None:
    """Make the embedded file anew from the full MNIST files in `folder`."""
    with draft_of(path) as draft:
        draft.write_bytes(lzma.compress(mini_content(folder), filters=FILTERS))


def _draw_rows(
    labels: NDArray[np.uint8], count: int, random: np.random.RandomState
) -> NDArray[np.int64]:
    wanted = apportion(np.bincount(labels, minlength=NUM_DIGITS), count)
    drawn = [
        random.permutation(np.flatnonzero(labels == digit))[: wanted[digit]]
        for digit in range(NUM_DIGITS)
    ]
    return np.sort(np.concatenate(drawn))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    write_mini(parser.parse_args().folder)
