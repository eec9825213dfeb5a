"""Study files: reading with overrides, writing, and the command that runs one.

All problems of what is read are reported at once.
"""

import json
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedplan.atomic import at_home
from fedplan.errors import InputError, InputProblem, suggestion
from fedplan.studies.keys import DATA_SETS, KEYS, TABLES
from fedplan.studies.rules import Tables, settle
from fedplan.studies.study import Study, make_study, unknown_key
from fedplan.tables import read_fleet

_BUILT_IN = Path(__file__).parent / "builtin"
_PATHS = ("data", "file")  # keys whose value may be a path
_COMMAND_LINE = "command line"
_MOST_BYTES = 1 << 20  # of a study file, far more than it needs
Configuration = Mapping[str, Mapping[str, Any]]


def builtin_studies() -> list[str]:
    """Names of the studies that come with fedplan.

    >>> builtin_studies()
    ['demo', 'setup1', 'setup2', 'setup3']
    """
    return sorted(path.stem for path in _BUILT_IN.glob("*.toml"))


def read_study(
    name: str, overrides: Iterable[str] = (), *, required: Collection[str] = ()
) -> Study:
    """Read a built-in study by name, or a study file by path.

    overrides : `key=value` or `table.key=value`, which override the file; a value is
        written as in TOML, and text needs no quotes. If a key is given twice, the last counts.
    required : keys that must have a value, and tables that must exist, although a study can do
        without them.

    A relative path is relative to the folder of its study file, or to the current folder
    if it is an override. InputError carries every problem of the file and of the overrides.

    >>> study = read_study("demo", ["clients-per-round=3", "training.seeds=2"])
    >>> study.training.clients_per_round, study.training.seeds
    (3, 2)
    """
    source = _Source(name)
    given, problems = _parse_overrides(overrides)
    tables = {table: dict(values) for table, values in source.tables.items()}
    for key, value in given.items():
        tables.setdefault(KEYS[key].table, {})[key] = value
    tables, faults = settle(tables, given.keys(), required)
    for fault in faults:
        if fault.key in given:
            source.problems.append(InputProblem(source=_COMMAND_LINE, message=fault.message))
        elif source.text is not None:
            source.note(fault.message, _find_line(source.text, fault.table, fault.key))
    if problems := [*source.problems, *problems]:
        raise InputError([*problems, *_fleet_problems(tables)])
    return make_study(source.name, tables)


class _Source:
    """A study file: its content, and what is wrong before its keys are checked.

    text : None if it cannot be read, or is not TOML.
    """

    text: str | None = None

    def __init__(self, name: str) -> None:
        is_own = name in builtin_studies()
        path = _BUILT_IN / f"{name}.toml" if is_own else Path(name)
        self.name, self._shown = path.stem, f"study {name}" if is_own else name
        self.problems: list[InputProblem] = []
        self.tables: Tables = {}
        for table, values in self._read(name, path).items():
            if table in TABLES and isinstance(values, dict):
                self.tables[table] = {
                    key: _from_folder(key, value, path) for key, value in values.items()
                }
            else:
                self.note(_stray(table, values), _find_line(self.text or "", table, None))

    def _read(self, name: str, path: Path) -> dict[str, Any]:
        """The content of the TOML; empty if it cannot be read."""
        try:
            text = _read_text(path)
            content = tomllib.loads(text)
        except (FileNotFoundError, NotADirectoryError):
            names = builtin_studies()
            self.note(
                "there is no such study. Give the path of a study file, or a built-in study: "
                f"{', '.join(names)}.{suggestion(name, names)}"
            )
        except IsADirectoryError:
            self.note("is a folder. Give the path of a study file.")
        except UnicodeDecodeError:
            self.note("is not text in UTF-8.")
        except tomllib.TOMLDecodeError as error:
            place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
            line, column = (int(place[1]), place[2]) if place else (None, None)
            self.note(f"is not valid TOML: {str(error).split(' (at ')[0].lower()}.", line, column)
        except RecursionError:
            self.note("has lists or tables nested too deeply. Write them flat.")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error).split(";")[0]
            self.note(f"cannot be read ({reason}). Check the path and the file.")
        else:
            self.text = text
            return content
        return {}

    def note(self, message: str, line: int | None = None, column: str | None = None) -> None:
        """Something wrong with the file."""
        self.problems.append(
            InputProblem(source=self._shown, line=line, column=column, message=message)
        )


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(f"a study file has at most {_MOST_BYTES:,} bytes")
    return content.decode("utf-8-sig")


def _stray(name: str, value: Any) -> str:
    """The message on something at the top of a file that is not a table of a study."""
    if name in TABLES:
        return f"[{name}] must be a table, but got {name} = {value!r}."
    if name in KEYS:
        return f"{name} stands outside of a table, but belongs in [{KEYS[name].table}]."
    return f"[{name}] is no table of a study.{suggestion(name, [*TABLES, *KEYS])}"


def _from_folder(key: str, value: Any, path: Path) -> Any:
    if key not in _PATHS or not isinstance(value, str) or (key == "data" and value in DATA_SETS):
        return value
    return str(path.parent / at_home(value))


def _parse_overrides(overrides: Iterable[str]) -> tuple[dict[str, Any], list[InputProblem]]:
    given: dict[str, Any] = {}
    problems = []
    for text in overrides:
        name, equals, value = text.partition("=")
        table, dot, key = name.strip().rpartition(".")
        if equals and key in KEYS and (not dot or table == KEYS[key].table):
            given[key] = _from_folder(key, _parse_value(value.strip()), Path())
        else:
            missing = f"{text!r} must look like key=value."
            message = unknown_key(key, table) if equals else missing
            problems.append(InputProblem(source=_COMMAND_LINE, message=message))
    return given, problems


def _parse_value(text: str) -> Any:
    """A value as in TOML; anything else is a text.

    >>> _parse_value("3"), _parse_value("'a b'"), _parse_value("mnist-mini")
    (3, 'a b', 'mnist-mini')
    """
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if parsed.keys() == {"value"} else text


def _fleet_problems(tables: Tables) -> Iterable[InputProblem]:
    """The problems of the study's fleet.csv, to be reported with the rest."""
    file = tables.get("fleet", {}).get("file")
    try:
        if isinstance(file, str):
            read_fleet(file)
    except InputError as error:
        return error.problems
    return ()


def _find_line(text: str, table: str, key: str | None) -> int | None:
    """Line of a key, or of its table where the key has none; tomllib keeps no positions.

    >>> _find_line("[task]\\ndata = 'mnist'\\n", "task", "data")
    2
    """
    current, header = "", None
    for number, line in enumerate(text.splitlines(), start=1):
        if bracket := re.match(r"\s*\[([^\[\]]+)\]", line):
            current = _plain(bracket[1])
            if current == table:
                header = header or number
        elif entry := re.match(r"\s*([^=#]+?)\s*=", line):
            name = _plain(f"{current}.{entry[1]}" if current else entry[1])
            if name == f"{table}.{key}":
                return number
            if name.split(".")[0] == table and not current:
                header = header or number
    return header


def _plain(dotted: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))


def study_toml(configuration: Configuration) -> str:
    """The study file of a configuration, without default values.

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
    """The arguments of `fedplan run` for this study: its name, and what it overrides.

    None unless it is a built-in study: any other needs a file.

    apart_from : keys of [training] that are left out, since they are given otherwise.

    >>> study_words("demo", read_study("demo", ["seeds=2"]).configuration())
    ['demo', 'seeds=2']
    """
    if name not in builtin_studies():
        return None
    usual = read_study(name).configuration()
    settled = {table: dict(values) for table, values in configuration.items()}
    settled["training"] |= {key: usual["training"].get(key) for key in apart_from}
    words = [
        f"{key}={value if isinstance(value, str) else _toml(value)}"
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


def _toml(value: Any) -> str:
    """A value as TOML writes it; JSON writes texts, numbers and lists the same way."""
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else "nan"
    if isinstance(value, float) and value == float(f"{value:g}"):
        return f"{value:g}"
    return json.dumps(value, ensure_ascii=False)
