"""Numbers as the store keeps them, so that every one comes back as it was."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence

from fedplan.errors import InputError

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
