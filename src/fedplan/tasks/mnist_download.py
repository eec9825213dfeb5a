"""Download MNIST once, on demand, from public mirrors; every file is checked before it is kept."""

from __future__ import annotations

import http.client
import os
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from fedplan.atomic import draft_of
from fedplan.errors import FedplanError, InputError, unmet
from fedplan.tasks import mnist
from fedplan.tasks.mnist import IdxFile, default_folder, found_folder, read_idx

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
CHUNK_BYTES = 1 << 16
MAX_GROWTH = 2  # a mirror that sends twice the original's size sends something else

Progress = Callable[[int, int], None]


def fetch_mnist(
    folder: str | os.PathLike[str] | None = None,
    *,
    mirrors: Sequence[str] = MIRRORS,
    progress: Progress | None = None,
    attempts: int = 3,
    timeout_s: float = 30.0,
    backoff_s: float = 1.0,
) -> Path:
    """Download the files that are missing or damaged (12 MB in all); returns their folder.

    folder : where the files go; unless given, where `load_mnist` finds some of them, or else the
        user's cache.
    mirrors : addresses to put a file's name behind; each attempt tries them in order.
    progress : called as progress(bytes_done, bytes_total), over all files.
    attempts, timeout_s, backoff_s : rounds over the mirrors, seconds of silence that end a
        connection, and seconds before the second round, doubled before each later one.

    A file takes its place only when complete and with the right SHA-256. If that cannot be had, a
    FedplanError says what each mirror answered and which files to put where by hand.

    >>> fetch_mnist("/tmp", mirrors=["ftp://example.org/"])
    Traceback (most recent call last):
    fedplan.errors.InputError: a mirror must start with http:// or https://, but got
    'ftp://example.org/'.
    """
    _check(mirrors, attempts, timeout_s, backoff_s)
    target = (found_folder() or default_folder()) if folder is None else Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {target} cannot be made: {error}.") from None
    tally = _Tally(progress)
    for file in mnist.FILES:
        if _is_good(target / file.name, file):
            tally.finish(file, (target / file.name).stat().st_size)
    for file in mnist.FILES:
        if file.name not in tally.finished:
            _fetch_one(file, target, mirrors, tally, attempts, timeout_s, backoff_s)
    return target


class _Tally:
    """Bytes done and to do over all files; a failed try gives its bytes back."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.finished: set[str] = set()
        self.sizes = {file.name: file.gz_bytes for file in mnist.FILES}

    def finish(self, file: IdxFile, size: int) -> None:
        self.sizes[file.name] = size
        self.finished.add(file.name)
        self.show(0)

    def show(self, under_way: int) -> None:
        if self.progress is not None:
            done = sum(self.sizes[name] for name in self.finished)
            self.progress(done + under_way, max(done + under_way, sum(self.sizes.values())))


def _fetch_one(
    file: IdxFile,
    folder: Path,
    mirrors: Sequence[str],
    tally: _Tally,
    attempts: int,
    timeout_s: float,
    backoff_s: float,
) -> None:
    failures: dict[str, str] = {}
    for attempt in range(attempts):
        if attempt:
            time.sleep(backoff_s * 2 ** (attempt - 1))
        for mirror in mirrors:
            url = f"{mirror.rstrip('/')}/{file.name}"
            try:
                with draft_of(folder / file.name) as draft:
                    size = _download(url, file, draft, tally, timeout_s)
                    read_idx(draft, file)
            except InputError as error:
                failures[url] = f"the file {error.problems[0].message}"
            except (OSError, http.client.HTTPException) as error:
                failures[url] = f"{error or type(error).__name__}"
            else:
                tally.finish(file, size)
                return
    wanted = [other.name for other in mnist.FILES if other.name not in tally.finished]
    answers = "\n".join(f"  {url}: {reason}" for url, reason in failures.items())
    raise FedplanError(
        f"{file.name} could not be downloaded in {attempts} attempts:\n{answers}\n"
        f"Check the connection and try again, or put {', '.join(wanted)} into {folder} by hand. "
        "fedplan.tasks.mnist_mini() needs no download."
    )


def _download(url: str, file: IdxFile, draft: Path, tally: _Tally, timeout_s: float) -> int:
    request = urllib.request.Request(url, headers={"User-Agent": "fedplan"})  # noqa: S310 - checked
    received = 0
    with (
        urllib.request.urlopen(request, timeout=timeout_s) as response,  # noqa: S310 - checked
        draft.open("wb") as stream,
    ):
        announced = response.headers.get("Content-Length", "")
        if announced.isdigit():
            tally.sizes[file.name] = int(announced)
        while chunk := response.read(CHUNK_BYTES):
            received += len(chunk)
            if received > MAX_GROWTH * file.gz_bytes:
                raise OSError(f"sends more than {MAX_GROWTH * file.gz_bytes:,} bytes")
            stream.write(chunk)
            tally.show(received)
    if announced.isdigit() and received != int(announced):
        raise OSError(f"the transfer stopped after {received:,} of {int(announced):,} bytes")
    return received


def _is_good(path: Path, file: IdxFile) -> bool:
    try:
        read_idx(path, file)
    except InputError:
        return False
    return True


def _check(mirrors: Sequence[str], attempts: int, timeout_s: float, backoff_s: float) -> None:
    problems = [
        f"a mirror must start with http:// or https://, but got {mirror!r}."
        for mirror in mirrors
        if not mirror.startswith(("http://", "https://"))
    ]
    if not mirrors:
        problems.append("give at least one mirror.")
    rules = {
        "attempts >= 1": attempts >= 1,
        "timeout_s > 0": timeout_s > 0,
        "backoff_s >= 0": backoff_s >= 0,
    }
    problems += unmet(rules, attempts=attempts, timeout_s=timeout_s, backoff_s=backoff_s)
    if problems:
        raise InputError(problems)
