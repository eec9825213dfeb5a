"""Study: a study file, read and checked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from fedplan.errors import suggestion, wrong_value
from fedplan.studies.keys import (
    DATA_SETS,
    KEYS,
    FleetTable,
    ObjectiveTable,
    PlanningTable,
    TaskTable,
    TrainingTable,
)

# Keys that came later: their defaults are not stored, so that earlier studies are found again.
_LATER = {
    "training": ("decay-every", "decay-rounds", "rates", "participation", "groups", "dropout"),
    "planning": ("course", "pilots", "earlier-runs", "saturation"),
}
# Keys and values that no longer exist, and what to do instead.
_ONLINE = "training itself is the pilot now, and every round counts"
_GONE = {
    "pilot-budget": f"pilot-budget is gone: {_ONLINE}. Leave it out; max-time-s and max-energy-j "
    "bound what is spent.",
    "pilots": f"pilots are no longer designed: {_ONLINE}. Leave pilots out, or set course=paper "
    "for the paper's.",
}


class Study(BaseModel):
    """A study, read and checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    task: TaskTable
    training: TrainingTable
    fleet: FleetTable | None = None
    objective: ObjectiveTable = ObjectiveTable()
    planning: PlanningTable = PlanningTable()

    def configuration(self) -> dict[str, Any]:
        """Every key of the study, as the store keeps it."""
        tables = self.model_dump(by_alias=True, exclude={"name"})
        written = {name: table for name, table in tables.items() if table is not None}
        for table, names in _LATER.items():
            for name in names:
                if written[table][name] == KEYS[name].default:
                    del written[table][name]
        return written

    def to_text(self) -> str:
        """The whole study in one line, for programs elsewhere; `study_from_text` reads it."""
        tables = self.configuration()
        if self.task.data not in DATA_SETS:
            tables["task"]["data"] = str(Path(self.task.data).absolute())
        return json.dumps({"name": self.name, "tables": tables}, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something wrong with a key, or with a whole table."""

    table: str
    key: str | None
    message: str


def find_faults(tables: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    """What is wrong with each key by itself."""
    try:
        make_study("", tables)
    except ValidationError as error:
        return [_fault(dict(details)) for details in error.errors(include_url=False)]
    return []


def _fault(details: dict[str, Any]) -> Fault:
    """Pydantic's error in fedplan's own words."""
    table, name = map(str, details["loc"][:2])
    message = wrong_value(name, details)
    if details["type"] == "extra_forbidden":
        message = unknown_key(name, table)
    elif details["type"] == "missing":
        message = f"{name} is missing from [{table}]. {KEYS[name].text}"
    elif (name, details["input"]) == ("pilots", "designed"):
        message = _GONE["pilots"]
    return Fault(table=table, key=name, message=message)


def make_study(name: str, tables: Mapping[str, Mapping[str, Any]]) -> Study:
    """The study that tables without faults describe."""
    return Study.model_validate({"name": name, **tables})


def study_from_text(text: str) -> Study:
    """The study that `Study.to_text` wrote down."""
    written = json.loads(text)
    return make_study(written["name"], written["tables"])


def unknown_key(name: str, table: str | None = None) -> str:
    """The message for an unknown key, or one that belongs to another table."""
    if name in KEYS:
        return f"{name} belongs in [{KEYS[name].table}], not in [{table}]."
    if name in _GONE:
        return _GONE[name]
    return f"{name} is no key of a study.{suggestion(name, KEYS)}"
