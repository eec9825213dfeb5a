"""What the commands on a store share: finding by name, and writing it out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fedplan.errors import InputError

if TYPE_CHECKING:
    from fedplan.store import ExperimentEntry, Store, StudyEntry

_DIGITS = 12


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
