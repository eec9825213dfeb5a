"""Arrays and numbers in the store, which come back exactly as they were.

Lists of numbers are blobs: little-endian integers or floats of 64 bits, compressed by zlib, such as
`numpy.frombuffer(zlib.decompress(blob), "<i8")` reads.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from fedplan.errors import InputError

if TYPE_CHECKING:
    from fedplan.core.signal import Signal

_LEVEL = 3  # cohorts are random: higher ones save a few percent for several times the time


def _pack(code: str, values: Sequence[float]) -> bytes:
    return zlib.compress(struct.pack(f"<{len(values)}{code}", *values), _LEVEL)


def _unpack(code: str, blob: bytes) -> tuple[Any, ...]:
    numbers = zlib.decompress(blob)
    return struct.unpack(f"<{len(numbers) // 8}{code}", numbers)


def _taken(flat: Iterator[Any], size: int) -> tuple[Any, ...]:
    """The next `size` numbers; fewer are an error."""
    found = tuple(islice(flat, size))
    if len(found) != size:
        raise ValueError(f"{size} numbers were packed, and {len(found)} are left")
    return found


def pack_cohorts(cohorts: Sequence[Sequence[int]]) -> bytes:
    """All cohorts of a run in one blob: for each its size, then its clients.

    >>> unpack_cohorts(pack_cohorts([(), (7, 3), (5,)]))
    [(), (7, 3), (5,)]
    """
    numbers: list[int] = []
    for cohort in cohorts:
        numbers.append(len(cohort))
        numbers.extend(cohort)
    try:
        return _pack("q", numbers)
    except struct.error as error:
        raise InputError(f"a cohort must be whole numbers below 2^63, but: {error}.") from error


def unpack_cohorts(blob: bytes) -> list[tuple[int, ...]]:
    """The cohorts that were packed."""
    flat = iter(_unpack("q", blob))
    return [_taken(flat, size) for size in flat]


def pack_shares(shares: Sequence[Sequence[float]], sizes: Sequence[int]) -> bytes:
    """All shares of a run in one blob, of rounds of these sizes; NaN if none were recorded.

    >>> unpack_shares(pack_shares([(), (0.25, 0.5), ()], [0, 2, 1]), [0, 2, 1])
    [(), (0.25, 0.5), ()]
    """
    numbers: list[float] = []
    for each, size in zip(shares, sizes, strict=True):
        if each and len(each) != size:
            raise InputError(f"a cohort of {size} clients has {size} shares, or none recorded.")
        numbers.extend(each or [math.nan] * size)
    return _pack("d", numbers)


def unpack_shares(blob: bytes | None, sizes: Sequence[int]) -> list[tuple[float, ...]]:
    """The shares that were packed, of rounds of these sizes; empty if none were recorded."""
    if blob is None:
        return [()] * len(sizes)
    flat = iter(_unpack("d", blob))
    found = [_taken(flat, size) for size in sizes]
    return [() if each and math.isnan(each[0]) else each for each in found]


def pack_signal(signal: Signal | None) -> bytes | None:
    """The sketches of a round, the whole one first; nothing if there is none."""
    if signal is None:
        return None
    return _pack("d", [*signal.whole.tolist(), *signal.halfway.tolist()])


def unpack_signal(blob: bytes | None) -> Signal | None:
    """The sketches that were packed."""
    if blob is None:
        return None
    import numpy as np  # lists of runs need none of it

    from fedplan.core.signal import Signal

    whole, halfway = np.reshape(_unpack("d", blob), (2, -1))
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
