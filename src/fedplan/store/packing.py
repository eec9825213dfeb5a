"""Numbers as the store keeps them, so that every one comes back as it was."""

from __future__ import annotations

import math
import sys
import zlib
from array import array
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from fedplan.errors import InputError

if TYPE_CHECKING:
    from fedplan.core.signal import Signal

_LEVEL = 3  # cohorts are random: higher ones save a few percent for several times the time


def pack_cohorts(cohorts: Sequence[Sequence[int]]) -> bytes:
    """All cohorts of a run in one blob: of each its size, then its clients.

    Little-endian 64-bit integers, compressed by zlib:
    `numpy.frombuffer(zlib.decompress(blob), "<i8")`.

    >>> unpack_cohorts(pack_cohorts([(), (7, 3), (5,)]))
    [(), (7, 3), (5,)]
    """
    numbers = array("q")
    try:
        for cohort in cohorts:
            numbers.append(len(cohort))
            numbers.extend(cohort)
    except (OverflowError, TypeError) as error:
        raise InputError(f"a cohort must be whole numbers below 2^63, but: {error}.") from error
    if sys.byteorder == "big":
        numbers.byteswap()
    return zlib.compress(numbers.tobytes(), _LEVEL)


def unpack_cohorts(blob: bytes) -> list[tuple[int, ...]]:
    """The cohorts that were packed."""
    numbers = array("q", zlib.decompress(blob))
    if sys.byteorder == "big":
        numbers.byteswap()
    flat = numbers.tolist()
    cohorts, start = [], 0
    while start < len(flat):
        end = start + 1 + flat[start]
        cohorts.append(tuple(flat[start + 1 : end]))
        start = end
    return cohorts


def pack_shares(shares: Sequence[Sequence[float]], sizes: Sequence[int]) -> bytes:
    """All shares of a run in one blob, of rounds of these sizes; NaN where none were recorded.

    Little-endian 64-bit floats, compressed by zlib.

    >>> unpack_shares(pack_shares([(), (0.25, 0.5), ()], [0, 2, 1]), [0, 2, 1])
    [(), (0.25, 0.5), ()]
    """
    numbers = array("d")
    for each, size in zip(shares, sizes, strict=True):
        if each and len(each) != size:
            raise InputError(f"a cohort of {size} clients has {size} shares, or none recorded.")
        numbers.extend(each or [math.nan] * size)
    if sys.byteorder == "big":
        numbers.byteswap()
    return zlib.compress(numbers.tobytes(), _LEVEL)


def unpack_shares(blob: bytes | None, sizes: Sequence[int]) -> list[tuple[float, ...]]:
    """The shares that were packed, of rounds of these sizes; empty where none were recorded."""
    numbers = array("d", b"" if blob is None else zlib.decompress(blob))
    if sys.byteorder == "big":
        numbers.byteswap()
    if blob is None:
        return [()] * len(sizes)
    flat = iter(numbers.tolist())
    found = [tuple(islice(flat, size)) for size in sizes]
    return [() if each and math.isnan(each[0]) else each for each in found]


def pack_signal(signal: Signal | None) -> bytes | None:
    """The sketches of a round, the whole one first; nothing where there is none.

    Little-endian 64-bit floats, compressed by zlib.
    """
    if signal is None:
        return None
    numbers = array("d", [*signal.whole.tolist(), *signal.halfway.tolist()])
    if sys.byteorder == "big":
        numbers.byteswap()
    return zlib.compress(numbers.tobytes(), _LEVEL)


def unpack_signal(blob: bytes | None) -> Signal | None:
    """The sketches that were packed."""
    if blob is None:
        return None
    import numpy as np  # lists of runs need none of it

    from fedplan.core.signal import Signal

    whole, halfway = np.frombuffer(zlib.decompress(blob), "<f8").reshape(2, -1)
    return Signal(whole=whole, halfway=halfway)


def pack_number(value: float | None) -> float | str | None:
    """A number as a column keeps it: SQLite has no NaN and would store nothing.

    >>> pack_number(0.5), pack_number(float("nan")), pack_number(None)
    (0.5, 'nan', None)
    """
    if value is None:
        return None
    number = float(value)
    return number if number == number else "nan"


def unpack_number(value: float | str | None) -> float | None:
    """The number that was packed."""
    return None if value is None else float(value)
