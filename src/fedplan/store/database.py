"""The file of a store: checked before it is opened, written in whole transactions."""

import os
import sqlite3
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

from fedplan.atomic import at_home
from fedplan.errors import FedplanError, InputError, InputProblem
from fedplan.store import schema

DEFAULT_URL = "sqlite:///fedplan.db"
BUSY_TIMEOUT_S = 60.0
_SCHEME = "sqlite:///"
# What reading may raise if a cell does not hold what was stored in it.
UNREADABLE = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    struct.error, zlib.error,
)  # fmt: skip
_LEAST_BYTES = 512  # of an SQLite database
_NO_LOCKS = "Its file system may have no locks, as some across a network: keep it on a local disk."
_REMEDIES = {
    **dict.fromkeys(
        ("SQLITE_IOERR_LOCK", "SQLITE_IOERR_RDLOCK", "SQLITE_PROTOCOL"),
        f"cannot be locked. {_NO_LOCKS}",
    ),
    "SQLITE_FULL": "there is no space left. What was saved before is safe: free some space, and "
    "start again.",
    "SQLITE_BUSY": f"another program has kept it locked for {BUSY_TIMEOUT_S:g} s. Wait for that "
    "program, or end it, and start again. Is there none? " + _NO_LOCKS,
    "SQLITE_IOERR": "the disk failed to read or write it. What was saved before is safe: check the "
    "disk and its limits, and start again.",
}
_OF_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_ERROR")  # the second where tables are not as they were made
_NOT_TEXT = "Could not decode to UTF-8"  # what sqlite3 says of a damaged text
_WRONG_PLACES = {
    "SQLITE_NOTADB": "is not a fedplan store. Choose another file; this one is as it was.",
    "SQLITE_READONLY": "cannot be written to. Make the file and its folder writable, or choose "
    "another place.",
    "SQLITE_CANTOPEN": "cannot be opened. Check that you may read and write both it and its "
    "folder, or choose another place.",
    "SQLITE_PERM": "cannot be opened. Check that you may read and write it, or choose another.",
}


def path_of(url: str) -> Path:
    """The file that a store's URL names.

    >>> path_of("sqlite:///runs/fedplan.db").as_posix(), path_of("sqlite:////tmp/a.db").as_posix()
    ('runs/fedplan.db', '/tmp/a.db')
    """
    name = url.removeprefix(_SCHEME)
    if name == url or name in ("", "/", ":memory:") or "\0" in name:
        message = (
            f"a store's URL must look like {DEFAULT_URL} (in the current folder) or "
            f"sqlite:////home/me/fedplan.db (four slashes: a full path), but got {url!r}."
        )
        if url and ":" not in url and "\0" not in url:
            message += f" Write {_SCHEME}{url}."
        raise InputError(message)
    return at_home(name)


class Database:
    """One connection for all threads of the process, one at a time.

    SQLite lets one connection write at a time anyway, and a single one is sure to be closed.
    A child process opens its own: SQLite connections do not survive a fork.
    """

    def __init__(self, url: str, *, readonly: bool) -> None:
        self._path = path_of(url)
        self._lock = threading.Lock()
        # If it cannot be opened to read, there is nothing to survey.
        with self._translated(left="Nothing in it can be read." if readonly else None):
            self._connection = self._open_to_read() if readonly else self._open_to_write()

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """A transaction that is kept whole or not at all; on the disk once the block ends."""
        return self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A consistent snapshot of the store, whoever writes meanwhile.

        An error in the block that is one of `UNREADABLE` means that rows are damaged.
        """
        with self._transaction("BEGIN") as connection:
            try:
                yield connection
            except OverflowError:
                raise
            except UNREADABLE as error:
                raise damaged(self._path, error) from error

    @property
    def bare(self) -> sqlite3.Connection:
        """The connection itself, without transactions: for one thread alone."""
        return self._connection

    def close(self) -> None:
        """Close the file; what was saved is in it."""
        with self._lock, self._translated():
            self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._translated(), whole(self._connection, begin):
            yield self._connection

    def _open_to_write(self) -> sqlite3.Connection:
        folder = self._path.absolute().parent
        if not folder.is_dir():
            message = f"the folder {folder} does not exist. Make it, or choose another place."
            raise self._wrong(message)
        connection = self._connect("rwc")
        with _closed_on_error(connection):
            # FULL: a commit returns once it is on the disk, so that not even a power cut undoes
            # it. NORMAL would survive kill -9 alone; a commit takes milliseconds, a run longer.
            connection.execute("PRAGMA synchronous = FULL")
            self._migrate(connection)
            # Not before: with foreign keys on, remaking a table deletes the rows that refer to it.
            connection.execute("PRAGMA foreign_keys = ON")
            _use_write_ahead_log(connection)
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        """Open the file to read; a missing one reads as an empty store, and is not created."""
        connection = self._connect(self._mode_to_read()) if self._size() else _open(":memory:")
        with _closed_on_error(connection):
            with whole(connection, "BEGIN"):
                version = self._check(connection)
            if version < schema.VERSION:
                # The tables that an older store lacks are made in a copy.
                with closing(connection):
                    copy = _open(":memory:")
                    connection.backup(copy)
                connection = copy
                self._migrate(connection)
            connection.execute("PRAGMA query_only = ON")
        return connection

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def _mode_to_read(self) -> str:
        # If we may write, we open to write: SQLite then removes its log files when it closes.
        # Otherwise we must leave none: they would be ours, and in the writer's way.
        if _may_write(self._path) and _may_write(self._path.absolute().parent):
            return "rw"
        has_log = any(Path(f"{self._path}{suffix}").exists() for suffix in ("-wal", "-journal"))
        return "ro" if has_log else "ro&immutable=1"

    def _connect(self, mode: str) -> sqlite3.Connection:
        if self._path.is_dir():
            raise self._wrong("is a folder. Give the path of a file.")
        if 0 < self._size() < _LEAST_BYTES:  # SQLite takes one byte for an empty database
            raise self._wrong(_WRONG_PLACES["SQLITE_NOTADB"])
        return _open(f"{self._path.absolute().as_uri()}?mode={mode}")

    def _check(self, connection: sqlite3.Connection) -> int:
        """The version of a store, 0 for an empty file; anything else is refused.

        Call it in a transaction: another process may be making the store right now.
        """
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != schema.APPLICATION_ID and (application or version or tables):
            raise self._wrong(
                "is the database of another program. Choose another file; this one is as it was."
            )
        if version > schema.VERSION:
            raise self._wrong(
                f"was written by a newer fedplan (its tables have version {version}, this fedplan "
                f"knows {schema.VERSION}). Upgrade: pip install --upgrade fedplan."
            )
        if version not in (schema.VERSION, *schema.UPGRADES):
            raise self._wrong(
                f"was written by a fedplan that was never released (its tables have version "
                f"{version}). Choose another file; this one is as it was."
            )
        return int(version)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Bring the tables up to date, whole or not at all."""
        with whole(connection, "BEGIN IMMEDIATE"):
            version = self._check(connection)
            if version != schema.VERSION:
                for statement in schema.UPGRADES[version]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {schema.VERSION}")
            connection.execute("DELETE FROM steps WHERE 0")  # fails now, not after hours of work

    @contextmanager
    def _translated(self, left: str | None = None) -> Iterator[None]:
        """SQLite's errors as fedplan's own."""
        try:
            yield
        except OSError as error:
            raise self._wrong(f"{_WRONG_PLACES['SQLITE_CANTOPEN']} ({error.strerror})") from error
        except OverflowError as error:
            raise self._wrong("holds whole numbers from -2^63 to 2^63 - 1 alone.") from error
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(_OF_DAMAGE) or _NOT_TEXT in str(error):
                raise damaged(self._path, error, left) from error
            for start, message in _WRONG_PLACES.items():
                if name.startswith(start):
                    raise self._wrong(f"{message} ({error})") from error
            message = next((m for n, m in _REMEDIES.items() if name.startswith(n)), "failed.")
            raise FedplanError(f"store {self._path}: {message} ({error})") from error

    def _wrong(self, message: str) -> InputError:
        return InputError(InputProblem(source=f"store {self._path}", message=message))


def damaged(path: Path, error: Exception, left: str | None = None) -> FedplanError:
    """The error of a damaged store: what is left, and how to salvage it."""
    from fedplan.store.salvage import survey

    return FedplanError(
        f"store {path}: is damaged ({type(error).__name__}: {str(error)[:200]}). "
        f"{left or survey(path)} Restore a copy, or save what is readable: "
        f"fedplan export --salvage --store {_SCHEME}{path} --output rescued.db."
    )


def _open(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,  # transactions begin and end where `whole` says so
        check_same_thread=False,  # the lock sees to it
    )
    connection.row_factory = sqlite3.Row
    return connection


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


@contextmanager
def whole(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """A transaction: all of the block is kept, or nothing of it."""
    try:
        connection.execute(begin)
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # the first error is the one to tell
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let others read while one writes; a file system that cannot keeps the older, safe way."""
    give_up_at = time.monotonic() + BUSY_TIMEOUT_S
    mode = None
    while mode is None:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:  # the busy timeout does not cover this change
            busy = error.sqlite_errorname.startswith("SQLITE_BUSY")
            if not busy or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
