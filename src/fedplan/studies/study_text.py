"""A study as text: the file that says it, and the command that runs it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fedplan.errors import InputError
from fedplan.studies.keys import KEYS, TABLES
from fedplan.studies.study_file import builtin_studies, read_study

Configuration = Mapping[str, Mapping[str, Any]]


def study_toml(configuration: Configuration) -> str:
    """The study file of a configuration; what is as it is by default is left out.

    >>> from fedplan.studies import read_study
    >>> print(study_toml(read_study("demo").configuration()).split("[training]")[0])
    [task]
    data = "synthetic"
    num-clients = 20
    <BLANKLINE>
    <BLANKLINE>
    """
    parts = []
    for table in TABLES:
        if table in configuration:
            lines = [f"{key} = {_toml(value)}" for key, value in _said(configuration, table)]
            parts.append("\n".join([f"[{table}]", *lines]))
    return "\n\n".join(part for part in parts if "\n" in part or part == "[fleet]") + "\n"


def study_words(
    name: str, configuration: Configuration, *, apart_from: Collection[str] = ()
) -> list[str] | None:
    """What `fedplan run` has to be given for this study: its name, and what takes another's place.

    None where the study is not a built-in one, for then it needs a file. Keys of [training] that
    are said otherwise, `apart_from`, may be as they like.

    >>> from fedplan.studies import read_study
    >>> study_words("demo", read_study("demo", ["seeds=2"]).configuration())
    ['demo', 'seeds=2']
    """
    if name not in builtin_studies():
        return None
    usual = read_study(name).configuration()
    settled = {table: dict(values) for table, values in configuration.items()}
    settled["training"] |= {key: usual["training"].get(key) for key in apart_from}
    words = [
        f"{key}={_word(value)}"
        for table, values in settled.items()
        for key, value in values.items()
        if key in KEYS and value is not None and usual.get(table, {}).get(key) != value
    ]
    try:
        again = read_study(name, words).configuration()
    except InputError:
        return None
    # A key cannot be taken back on the command line, and a table cannot be left out.
    return [name, *words] if settled == again else None


def _said(configuration: Configuration, table: str) -> Iterator[tuple[str, Any]]:
    for name, key in KEYS.items():
        value = configuration[table].get(name) if key.table == table else None
        if value is not None and (key.required or value != key.default):
            yield name, value


def _word(value: Any) -> str:
    return value if isinstance(value, str) else _toml(value)


def _toml(value: Any) -> str:
    """A value as TOML writes it; JSON writes texts, numbers and lists the same way."""
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else "nan"
    if isinstance(value, float) and value == float(f"{value:g}"):
        return f"{value:g}"
    return json.dumps(value, ensure_ascii=False)
