"""The report's sections on the study's configuration, versions and reproduction."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fedplan.store import StudyEntry
from fedplan.store.entries import current_versions
from fedplan.studies.keys import KEYS, TABLES
from fedplan.studies.stored import Recalled
from fedplan.studies.study_file import study_toml, study_words
from fedplan.web.report.page import Code, Part, Sections
from fedplan.words import Table, flat

_GRID = ("clients-per-round", "groups", "local-steps")


def origin_sections(found: Recalled) -> Sections:
    """Reproduction, configuration, versions."""
    return {
        "How to reproduce it": _reproduce(found),
        "Configuration": _configuration(found),
        "Made with": _versions(found),
    }


def _reproduce(found: Recalled) -> list[Part]:
    if found.experiment is None or (found.outcome is None and found.sweep is None):
        return ["The report has all that the store knows; what began these runs is not in it."]
    live = ["--runner", "flower", "--federation", found.federation] if found.federation else []
    command = ["fedplan", "run" if found.sweep is None else "sweep"]
    tables, grid = _without_grid(found.entry.configuration)
    said = [word.partition("=")[0] for word in grid]
    known = None if live else study_words(found.entry.name, tables, apart_from=said)
    parts: list[Part] = []
    if known is None:
        file = f"{found.entry.name}.toml"
        parts = [f"This file, {file}:", Code(study_toml(tables)), "and this command:"]
        known = [file]
    again = "With the versions below it comes to the same numbers, on any number of cores."
    if live:
        again = "Devices and network are real: losses and seconds will differ."
    return [*parts, Code(shlex.join([*command, *known, *grid, *live])), again]


def _without_grid(configuration: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The tables of a study, and the words of its grid where it was swept."""
    tables = {name: dict(values) for name, values in configuration.items()}
    training = tables.get("training", {})
    swept = [key for key in _GRID if isinstance(training.get(key), list)]
    return tables, [f"{key}={','.join(map(str, training.pop(key)))}" for key in swept]


def _configuration(found: Recalled) -> list[Part]:
    shown = found.entry.configuration or found.entry.settings
    shown = {name: shown[name] for name in (*TABLES, *shown) if name in shown}
    return [_table_of(name, value) for name, value in shown.items()]


def _table_of(name: str, value: Any) -> Table:
    given = {name: value}
    if isinstance(value, Mapping):
        given = {key: value[key] for key in (*KEYS, *value) if key in value and _counts(key, value)}
    rows = [row for row in flat(given) if row[1] != "-"]
    return Table(("key", "value"), rows, title=f"[{name}]", plain=True)


def _counts(key: str, given: Mapping[str, Any]) -> bool:
    """Whether a key has a meaning beside the others of its table."""
    only = KEYS[key].only if key in KEYS else None
    return only is None or given.get(only[0]) in only[1]


def _versions(found: Recalled) -> list[Part]:
    entry, now = found.entry, asdict(current_versions())
    then = asdict(entry.versions) if isinstance(entry, StudyEntry) else {}
    rows = [(name, then.get(name, "-"), version) for name, version in now.items()]
    kind = "study" if isinstance(entry, StudyEntry) else "experiment"
    return [
        Table(("package", "the study", "this report"), rows, title="Versions", plain=True),
        f"Begun {entry.created}. Fingerprint of the {kind}:",
        Code(entry.fingerprint),
    ]
