"""What the commands on a store share: opening it, finding by name, and writing it out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fedplan.errors import Collector, InputError, InputProblem

if TYPE_CHECKING:
    from fedplan.store import ExperimentEntry, Store, StudyEntry

_DIGITS = 12


def open_stored(url: str) -> Store:
    """The store, to read; one that is not there is refused."""
    from fedplan.store import Store
    from fedplan.store.database import path_of

    store = Store(url, readonly=True)  # says first what is wrong with the URL
    if not path_of(url).exists():
        store.close()
        message = "is not there. Check the URL; `fedplan run` and `fedplan sweep` make a store."
        raise InputError(InputProblem(source=f"store {path_of(url)}", message=message))
    return store


@contextmanager
def one_stored(
    url: str, name: str, *checks: Callable[[], None]
) -> Iterator[tuple[Store, StudyEntry | ExperimentEntry]]:
    """The store, to read, and what has this name in it; every problem is said at once."""
    collector = Collector()
    for check in checks:
        collector.attempt(check)
    if (store := collector.attempt(lambda: open_stored(url))) is None:
        collector.finish()
        raise AssertionError("what cannot be opened is a noted problem")
    with store:
        entry = collector.attempt(lambda: find_stored(store, name, url))
        collector.finish()
        if entry is None:
            raise AssertionError("what is not found is a noted problem")
        yield store, entry


def find_stored(store: Store, name: str, url: str) -> StudyEntry | ExperimentEntry:
    """The newest study of this name, or the one thing whose fingerprint begins like this."""
    studies = store.studies()
    named = [study for study in studies if study.name == name]
    if named:
        return named[-1]
    entries: list[StudyEntry | ExperimentEntry] = [*studies, *store.experiments()]
    found = [entry for entry in entries if name and entry.fingerprint.startswith(name.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(short(entry.fingerprint) for entry in found)
        raise InputError(f"{name} is the beginning of {len(found)}: {ids}. Give more of it.")
    near = get_close_matches(name, [study.name for study in studies], n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise InputError(
        f"there is no study or experiment {name!r} in {url}.{hint} `fedplan list` shows what there "
        "is; --store says where."
    )


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as lines.

    >>> list(flat({"task": {"data": "mnist", "seeds": [1, 2]}, "rounds": None}))
    [('task.data', 'mnist'), ('task.seeds', '[1, 2]'), ('rounds', '-')]
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        elif value is None:
            yield f"{prefix}{key}", "-"
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)


def short(fingerprint: str) -> str:
    """As much of a fingerprint as tells it from others."""
    return fingerprint[:_DIGITS]


def local_time(created: str) -> str:
    """A stored moment, by the clock on the wall."""
    return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")
