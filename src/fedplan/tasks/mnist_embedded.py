"""A tenth of MNIST inside the package: 6,000 training and 1,000 test images, no download.

The file data/mnist_mini.xz is made from the full files, and made again, by

    python -c "from fedplan.tasks.mnist_embedded import write_mini; write_mini('folder/of/mnist')"
"""

from __future__ import annotations

import lzma
import math
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedplan.atomic import draft_of
from fedplan.tasks.dataset import IntArray
from fedplan.tasks.mnist import IMAGE_SHAPE, NUM_DIGITS, Digits, digits_of, read_arrays
from fedplan.tasks.partition import apportion

NUM_TRAINING = 6_000
NUM_TEST = 1_000
SEED = 2021
MINI_FILE = Path(__file__).parent / "data" / "mnist_mini.xz"
# Best of the settings tried: literal contexts of 4 bits, no alignment.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]

Bytes = NDArray[np.uint8]


def mnist_mini() -> Digits:
    """6,000 training and 1,000 test images of MNIST, digits in MNIST's own proportions.

    Images keep their order in MNIST, and test images come from MNIST's test set. MNIST is by
    Y. LeCun and C. Cortes, licence CC BY-SA 3.0 (data/mnist_mini.LICENSE.txt).

    >>> digits = mnist_mini()
    >>> digits, digits.x.shape, digits.x.dtype
    (<Digits 'MNIST mini': 6,000 training, 1,000 test images>, (6000, 784), dtype('float32'))
    """
    content = np.frombuffer(lzma.decompress(MINI_FILE.read_bytes()), np.uint8)
    images, labels = NUM_TRAINING * math.prod(IMAGE_SHAPE), NUM_TRAINING
    test_images = NUM_TEST * math.prod(IMAGE_SHAPE)
    x, y, test_x, test_y = np.split(content, np.cumsum([images, labels, test_images]))
    return digits_of(
        x.reshape(NUM_TRAINING, -1), y, test_x.reshape(NUM_TEST, -1), test_y, name="MNIST mini"
    )


def mini_content(folder: str | os.PathLike[str]) -> bytes:
    """What data/mnist_mini.xz holds uncompressed, drawn from the full MNIST files in `folder`.

    Training pixels, training labels, test pixels, test labels, one byte each. Of each digit as
    many as its share of MNIST (largest remainder), drawn by RandomState(2021), digit after digit,
    training set first.
    """
    images, labels, test_images, test_labels = read_arrays(Path(folder))
    random = np.random.RandomState(SEED)
    rows = _draw_rows(labels, NUM_TRAINING, random)
    test_rows = _draw_rows(test_labels, NUM_TEST, random)
    parts = (images[rows], labels[rows], test_images[test_rows], test_labels[test_rows])
    return b"".join(part.tobytes() for part in parts)


def write_mini(folder: str | os.PathLike[str], path: str | os.PathLike[str] = MINI_FILE) -> None:
    """Make the embedded file anew from the full MNIST files in `folder`."""
    with draft_of(path) as draft:
        draft.write_bytes(lzma.compress(mini_content(folder), filters=FILTERS))


def _draw_rows(labels: Bytes, count: int, random: np.random.RandomState) -> IntArray:
    wanted = apportion(np.bincount(labels, minlength=NUM_DIGITS), count)
    drawn = [
        random.permutation(np.flatnonzero(labels == digit))[: wanted[digit]]
        for digit in range(NUM_DIGITS)
    ]
    return np.sort(np.concatenate(drawn))
