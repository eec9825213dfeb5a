"""Files that are complete or absent: written beside the target, then moved over it."""

import os
import platform
import re
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fedplan.errors import InputError, InputProblem

# A draft is named after its machine and process, so that leftovers of killed processes can be told
# from files that are being written.
_DRAFT = re.compile(r"\.fedplan-([0-9a-f]{8})-(\d+)-[0-9a-f]{16}\.tmp")


@contextmanager
def draft_of(path: str | os.PathLike[str], suffixes: Sequence[str] | None = None) -> Iterator[Path]:
    """A path to write to; it replaces the target if the block succeeds, and is removed otherwise.

    Drafts of killed processes are removed from the folder first.

    suffixes : allowed file endings; if given, a disk error is an InputError.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "answer.txt"
    ...     with draft_of(target) as draft:
    ...         _ = draft.write_text("42")
    ...     target.read_text(), len(list(Path(folder).iterdir()))
    ('42', 1)
    """
    target = Path(path).resolve()  # a link keeps pointing where it did
    draft = target.with_name(f".fedplan-{_machine()}-{os.getpid()}-{secrets.token_hex(8)}.tmp")
    try:
        _remove_leftovers(target.parent)
        yield draft
        draft.replace(target)
    except OSError as error:
        if suffixes is None:
            raise
        reason = f"cannot be written ({error.strerror or error})"
        raise unwritable(path, suffixes, reason) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def at_home(path: str | os.PathLike[str]) -> Path:
    """The path with ~ as the user's home folder; a ~ that stands for none is a name like others."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - the method of a path raises there


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _remove_leftovers(folder: Path) -> None:
    """Remove the drafts of processes of this machine that have ended."""
    for path in folder.iterdir():
        draft = _DRAFT.fullmatch(path.name)
        if draft and draft[1] == _machine() and not _is_running(int(draft[2])):
            with suppress(OSError):  # of another user, or another process was quicker
                path.unlink()


def _is_running(pid: int) -> bool:
    if os.name != "posix":
        return True  # on Windows, signal 0 would be Ctrl-C
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def check_target(path: str | os.PathLike[str], suffixes: Sequence[str]) -> None:
    """Refuse a path with another ending, or one that is known to be unwritable in advance.

    >>> check_target("no/such/folder/runs.csv", (".csv", ".json"))
    Traceback (most recent call last):
    fedplan.errors.InputError: no/such/folder/runs.csv: is in a folder that does not exist...
    """
    if Path(path).suffix.lower() not in suffixes:
        raise unwritable(path, suffixes, f"must end in {_either(suffixes)}")
    try:
        target = Path(path).resolve()
        is_folder, has_folder = target.is_dir(), target.parent.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a null byte
        reason = f"is not a usable path ({getattr(error, 'strerror', None) or error})"
        raise unwritable(path, suffixes, reason) from error
    if is_folder:
        raise unwritable(path, suffixes, "is a folder")
    if not has_folder:
        reason = f"is in a folder that does not exist: {target.parent}"
        raise unwritable(path, suffixes, reason)


def unwritable(path: str | os.PathLike[str], suffixes: Sequence[str], reason: str) -> InputError:
    """The error of a file that cannot be written, with advice."""
    remedy = f"Give the path of a {_either(suffixes)} file in a folder you can write to."
    return InputError(InputProblem(source=str(path), message=f"{reason}. {remedy}"))


def _either(suffixes: Sequence[str]) -> str:
    *others, last = suffixes
    return f"{', '.join(others)} or {last}" if others else last
