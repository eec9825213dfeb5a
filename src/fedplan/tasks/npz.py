"""Arrays of .npz files, whose headers are checked before any data is read."""

import lzma
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from fedplan.errors import InputError, InputProblem

Arrays = dict[str, NDArray[Any]]
# Arrays may take this much memory, or so many times their file if that is more: plain data that are
# compressed well stay below, and a file that was made to fill the memory does not.
_MOST_BYTES, _MOST_RATIO = 1 << 28, 16
_WIDEST = 8  # bytes of a number once it is in use: integers become 64 bits wide
_BROKEN = (
    EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError, TypeError, ValueError,
    lzma.LZMAError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Header:
    """What an array is said to be; its data are not read yet."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Memory that it takes once it is in use."""
        return math.prod(self.shape) * max(self.dtype.itemsize, _WIDEST)

    def flat(self) -> NDArray[Any]:
        """An array of this type and shape, images as rows, that takes no memory."""
        first, *rest = self.shape or (0,)
        is_image = len(rest) > 1 and math.prod(self.shape) > 0
        shape = (first, math.prod(rest)) if is_image else self.shape
        return np.broadcast_to(np.zeros((), dtype=self.dtype), shape)


class NpzFile:
    """One .npz file: the headers of some of its arrays, what is wrong with them, and the arrays.

    check : what is wrong with an array by its header; None if nothing is.
    """

    def __init__(
        self,
        path: Path,
        required: Sequence[str],
        optional: Sequence[str],
        check: Callable[[str, Header], str | None],
    ) -> None:
        self.path = path
        self.headers: dict[str, Header] = {}
        self._members: dict[str, str] = {}
        self.problems: list[InputProblem] = []
        try:
            with path.open("rb") as stream:
                if stream.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
                    self.note(None, "holds one bare array. Save with numpy.savez.")
                    return
                with zipfile.ZipFile(stream) as archive:
                    names = archive.namelist()
                    self._members = {name.removesuffix(".npy"): name for name in names}
                    there = [key for key in optional if key in self._members]
                    for key in (*required, *there):
                        if wrong := self._look_at(archive, key, check):
                            self.note(key, wrong)
        except FileNotFoundError:
            self.note(None, "does not exist.")
        except _BROKEN:
            self.note(None, "is not a readable .npz file. Save with numpy.savez.")

    def note(self, key: str | None, message: str) -> None:
        """Something wrong with the file, or with one array of it."""
        self.problems.append(InputProblem(source=str(self.path), column=key, message=message))

    def read(self) -> Arrays:
        """The arrays; InputError if one is damaged."""
        arrays: Arrays = {}
        with zipfile.ZipFile(self.path) as archive:
            for key in self.headers:
                try:
                    with archive.open(self._members[key]) as member:
                        arrays[key] = npy.read_array(member, allow_pickle=False)
                        if member.read(1):
                            raise ValueError("it goes on after its end")
                except _BROKEN as error:
                    self.note(key, f"is damaged ({error}). Write the file again.")
        if self.problems:
            raise InputError(self.problems)
        return arrays

    def _look_at(
        self, archive: zipfile.ZipFile, key: str, check: Callable[[str, Header], str | None]
    ) -> str | None:
        """Keep the header of an array, or return what is wrong with it."""
        if key not in self._members:
            listed = ", ".join(list(self._members)[:20]) or "none"
            return f"is missing; the file has the arrays: {listed}."
        try:
            with archive.open(self._members[key]) as member:
                header = _header(member)
            wrong = check(key, header)
        except _BROKEN as error:
            return f"is damaged or no array ({error}). Save with numpy.savez."
        if not wrong:
            self.headers[key] = header
        return wrong


def _header(member: IO[bytes]) -> Header:
    version = npy.read_magic(member)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about headers of Python 2
        shape, _, dtype = read(member)
    if any(not isinstance(size, int) or not 0 <= size < 1 << 63 for size in shape):
        raise ValueError("its shape is none")
    return Header(shape, dtype)


def check_sizes(files: Iterable[NpzFile]) -> None:
    """Refuse files whose arrays would take far more memory than the files take on the disk."""
    files = list(files)
    needed = sum(header.nbytes for file in files for header in file.headers.values())
    most = max(_MOST_BYTES, _MOST_RATIO * sum(file.path.stat().st_size for file in files))
    if needed > most:
        message = (
            f"would take {needed / 1e6:,.0f} MB of memory, and {most / 1e6:,.0f} MB are accepted "
            "for a file of this size. Where it is right, save it uncompressed, with numpy.savez."
        )
        raise InputError(InputProblem(source=str(files[0].path), message=message))
