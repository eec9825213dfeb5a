"""Files that are whole or not there: written beside the target, then moved over it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def draft_of(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to; once the block ends well it takes the target's place, else it goes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "answer.txt"
    ...     with draft_of(target) as draft:
    ...         _ = draft.write_text("42")
    ...     target.read_text(), len(list(Path(folder).iterdir()))
    ('42', 1)
    """
    target = Path(path).resolve()  # a link keeps pointing where it did
    draft = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        yield draft
        draft.replace(target)
    finally:
        with suppress(OSError):
            draft.unlink()
