"""Files that are whole or not there: written beside the target, then moved over it."""

from __future__ import annotations

import secrets
from pathlib import Path


def write_whole(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file, or leave the one that was there as it is."""
    target = path.resolve()  # a link keeps pointing where it did
    draft = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        draft.touch(mode=mode, exist_ok=False)  # before it has a content that others might read
        draft.write_bytes(content)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
