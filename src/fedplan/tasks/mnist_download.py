"""Download MNIST on demand from public mirrors, checking every file."""

import http.client
import os
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fedplan.atomic import at_home, draft_of
from fedplan.errors import FedplanError, InputError, refuse
from fedplan.tasks import mnist
from fedplan.tasks.mnist import IdxFile, default_folder, found_folder, read_idx

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
CHUNK_BYTES = 1 << 16
MAX_GROWTH = 2  # a mirror that sends twice the original's size sends something else
ATTEMPTS = 3  # rounds over the mirrors
TIMEOUT_S = 30.0  # of silence, which ends a connection
BACKOFF_S = 1.0  # before the second round, doubled before each later one


def fetch_mnist(
    folder: str | os.PathLike[str] | None = None,
    *,
    mirrors: Sequence[str] = MIRRORS,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Download the files that are missing or damaged (12 MB in all); returns their folder.

    folder : where the files go; unless given, where `load_mnist` finds some of them, or else the
        user's cache.
    mirrors : base addresses of the files; each attempt tries them in order.
    progress : called as progress(bytes_done, bytes_total), over all files.

    A file takes its place only when complete and with the right SHA-256. If that cannot be had, a
    FedplanError says what each mirror answered and which files to put where by hand.

    >>> fetch_mnist("/tmp", mirrors=["ftp://example.org/"])
    Traceback (most recent call last):
    fedplan.errors.InputError: a mirror must start with http:// or https://, but got
    'ftp://example.org/'.
    """
    problems = [
        f"a mirror must start with http:// or https://, but got {mirror!r}."
        for mirror in mirrors
        if not mirror.startswith(("http://", "https://"))
    ]
    if not mirrors:
        problems.append("give at least one mirror.")
    refuse(problems)
    target = (found_folder() or default_folder()) if folder is None else at_home(folder)
    missing = [file for file in mnist.FILES if not _is_good(target / file.name, file)]
    try:
        if "~" in target.parts[:1]:
            raise OSError("there is no home folder")
        target.mkdir(parents=True, exist_ok=True)
        if missing and not os.access(target, os.W_OK):
            raise OSError("its permissions forbid it")
    except OSError as error:
        message = f"the folder {target} cannot be written to ({error.strerror or error})."
        raise InputError(f"{message} Set XDG_CACHE_HOME to one that can.") from None
    while missing:
        _fetch_first(missing, target, mirrors, progress)
        del missing[0]
    return target


def _fetch_first(
    missing: list[IdxFile],
    folder: Path,
    mirrors: Sequence[str],
    progress: Callable[[int, int], None] | None,
) -> None:
    file, total = missing[0], sum(each.gz_bytes for each in mnist.FILES)
    before = total - sum(each.gz_bytes for each in missing)
    failures: dict[str, str] = {}
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(BACKOFF_S * 2 ** (attempt - 1))
        for mirror in mirrors:
            url = f"{mirror.rstrip('/')}/{file.name}"
            try:
                with draft_of(folder / file.name) as draft:
                    for received in _download(url, file, draft):
                        if progress is not None:
                            progress(before + min(received, file.gz_bytes), total)
                    read_idx(draft, file)
            except InputError as error:
                failures[url] = f"the file {error.problems[0].message}"
            except (OSError, http.client.HTTPException) as error:
                failures[url] = f"{error or type(error).__name__}"
            else:
                return
    wanted = ", ".join(each.name for each in missing)
    answers = "\n".join(f"  {url}: {reason}" for url, reason in failures.items())
    raise FedplanError(
        f"{file.name} could not be downloaded in {ATTEMPTS} attempts:\n{answers}\n"
        f"Check the connection and try again, or put {wanted} into {folder} by hand. "
        "fedplan.tasks.mnist_mini() needs no download."
    )


def _download(url: str, file: IdxFile, draft: Path) -> Iterator[int]:
    """Write what a mirror sends; the bytes so far, chunk by chunk."""
    request = urllib.request.Request(url, headers={"User-Agent": "fedplan"})  # noqa: S310 - checked
    received = 0
    with (
        urllib.request.urlopen(request, timeout=TIMEOUT_S) as response,  # noqa: S310 - checked
        draft.open("wb") as stream,
    ):
        while chunk := response.read(CHUNK_BYTES):
            received += len(chunk)
            if received > MAX_GROWTH * file.gz_bytes:
                raise OSError(f"sends more than {MAX_GROWTH * file.gz_bytes:,} bytes")
            stream.write(chunk)
            yield received


def _is_good(path: Path, file: IdxFile) -> bool:
    try:
        read_idx(path, file)
    except InputError:
        return False
    return True
