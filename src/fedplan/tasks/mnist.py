"""MNIST: its four files, read from a folder and checked; and a tenth of it."""

import gzip
import hashlib
import lzma
import math
import os
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedplan.atomic import at_home
from fedplan.errors import Collector, InputError, InputProblem
from fedplan.tasks.dataset import FeatureArray, IntArray

Bytes = NDArray[np.uint8]
IMAGE_SHAPE = (28, 28)
NUM_DIGITS = 10
DATA_VARIABLE = "FEDPLAN_DATA"
MINI_FILE = Path(__file__).parent / "data" / "mnist_mini.xz"  # made by tools/mnist_mini.py
NUM_MINI, NUM_MINI_TEST = 6_000, 1_000


class IdxFile(NamedTuple):
    """One of the files: its name, the shape of its array, its size, the hash of its content.

    The hash is that of the content before compression, so a copy that somebody compressed anew
    is as good as the original.
    """

    name: str
    shape: tuple[int, ...]
    gz_bytes: int
    sha256: str


FILES = (
    IdxFile("train-images-idx3-ubyte.gz", (60_000, *IMAGE_SHAPE), 9_912_422,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    IdxFile("train-labels-idx1-ubyte.gz", (60_000,), 28_881,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    IdxFile("t10k-images-idx3-ubyte.gz", (10_000, *IMAGE_SHAPE), 1_648_877,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    IdxFile("t10k-labels-idx1-ubyte.gz", (10_000,), 4_542,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Digits:
    """Handwritten digits, not yet partitioned: training and test images with their labels.

    x, test_x : float32 pixels from 0 (paper) to 1 (ink), shape (images, 784).
    y, test_y : int64 digits 0 to 9, shape (images,).
    """

    x: FeatureArray
    y: IntArray
    test_x: FeatureArray
    test_y: IntArray
    name: str

    def __repr__(self) -> str:
        return f"<Digits {self.name!r}: {len(self.y):,} training, {len(self.test_y):,} test images>"


def load_mnist(folder: str | os.PathLike[str] | None = None) -> Digits:
    """Read and check MNIST from a folder with its four .gz files.

    Without a folder it searches $FEDPLAN_DATA/mnist, $FEDPLAN_DATA, then the user's cache
    (`default_folder()`). `fetch_mnist` downloads the files; `mnist_mini` needs none.

    >>> load_mnist("no/such/folder")
    Traceback (most recent call last):
    fedplan.errors.InputError: no/such/folder: holds none of MNIST's files. ...
    """
    if folder is None:
        folder = found_folder()
    if folder is None:
        looked = ", ".join(map(str, _folders()))
        remedy = _remedy(default_folder())
        raise InputError(f"MNIST was not found; looked in {looked}. {remedy}")
    return _digits(*read_arrays(at_home(folder)), name="MNIST")


def default_folder() -> Path:
    """The user's own copy: fedplan/mnist in $XDG_CACHE_HOME or ~/.cache."""
    return at_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "fedplan" / "mnist"


def read_arrays(folder: Path) -> list[Bytes]:
    """Training images, training labels, test images and test labels, as stored.

    One InputError names every file that is missing, truncated or altered.
    """
    if not any((folder / file.name).exists() for file in FILES):
        raise _wrong(folder, f"holds none of MNIST's files. {_remedy(folder)}")
    collector = Collector()
    arrays = [collector.attempt(partial(read_idx, folder / file.name, file)) for file in FILES]
    found = [array for array in arrays if array is not None]
    if len(found) < len(FILES):
        collector.add(_remedy(folder))
    return collector.finished(found)


def read_idx(path: Path, file: IdxFile) -> Bytes:
    """The array in one file, once its SHA-256 is right."""
    size = math.prod(file.shape)
    try:
        with gzip.open(path) as stream:
            content = stream.read(2 * size + 64)  # the header is short; more is something else
    except FileNotFoundError:
        raise _wrong(path, "is missing.") from None
    except EOFError:
        raise _wrong(path, "is cut short: the compressed data stop before their end.") from None
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise _wrong(path, f"cannot be read as gzip ({reason}).") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise _wrong(path, f"was altered: SHA-256 {digest[:12]}..., not {file.sha256[:12]}....")
    return np.frombuffer(content, np.uint8)[-size:].reshape(file.shape)


def mnist_mini() -> Digits:
    """6,000 training and 1,000 test images of MNIST, digits in MNIST's own proportions.

    They are inside the package. Images keep their order in MNIST, and test images come from MNIST's
    test set. MNIST is by Y. LeCun and C. Cortes, licence CC BY-SA 3.0
    (data/mnist_mini.LICENSE.txt).

    >>> digits = mnist_mini()
    >>> digits, digits.x.shape, digits.x.dtype
    (<Digits 'MNIST mini': 6,000 training, 1,000 test images>, (6000, 784), dtype('float32'))
    """
    content = np.frombuffer(lzma.decompress(MINI_FILE.read_bytes()), np.uint8)
    pixels = math.prod(IMAGE_SHAPE)
    ends = np.cumsum([NUM_MINI * pixels, NUM_MINI, NUM_MINI_TEST * pixels])
    x, y, test_x, test_y = np.split(content, ends)
    return _digits(x.reshape(-1, pixels), y, test_x.reshape(-1, pixels), test_y, name="MNIST mini")


def _digits(
    images: Bytes, labels: Bytes, test_images: Bytes, test_labels: Bytes, *, name: str
) -> Digits:
    """Pixels as float32 from 0 to 1, one image per row; labels as int64."""
    x, test_x = (
        each.reshape(len(each), -1).astype(np.float32) / np.float32(255)
        for each in (images, test_images)
    )
    y, test_y = labels.astype(np.int64), test_labels.astype(np.int64)
    return Digits(x=x, y=y, test_x=test_x, test_y=test_y, name=name)


def found_folder() -> Path | None:
    """The first folder looked in that holds any of the files; they may be damaged."""
    return next(
        (folder for folder in _folders() if any((folder / file.name).exists() for file in FILES)),
        None,
    )


def _folders() -> list[Path]:
    folders = [default_folder()]
    if data := os.environ.get(DATA_VARIABLE):
        folders = [at_home(data) / "mnist", at_home(data), *folders]
    return folders


def _remedy(folder: Path) -> str:
    names = ", ".join(file.name for file in FILES)
    return (
        f"Download them (fedplan simulate --download, or fedplan.tasks.fetch_mnist), put {names} "
        f"into {folder}, or use mnist-mini, which needs no download."
    )


def _wrong(path: Path, message: str) -> InputError:
    return InputError(InputProblem(source=str(path), message=message))
