"""Rules that the keys of a study must satisfy together."""

import math
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from fedplan.errors import suggestion
from fedplan.participation import LAWS
from fedplan.prices_and_limits import PRICES, kebab
from fedplan.studies.courses import PAPER
from fedplan.studies.keys import DATA_SETS, KEYS, TABLES
from fedplan.studies.study import Fault, find_faults

Tables = dict[str, dict[str, Any]]
Found = Iterator[tuple[str, str]]  # keys, and what is wrong with each

# Keys that a schedule of learning rates cannot do without.
_RATE_KEYS = {"decay-every": "step", "decay-rounds": "cosine", "rates": "list"}
_PRICES = [kebab(name) for name in PRICES if name != "mb_per_client_round"]


def settle(
    tables: Tables, overridden: Collection[str], required: Collection[str]
) -> tuple[Tables, list[Fault]]:
    """The tables without keys that an override made pointless, and all their faults.

    `required` are keys that must have a value and tables that must be there.
    A key that requires another value of a second key is a fault, unless an override of that
    second key made it so: `partition=iid` silently drops a file's `shards-per-label`.
    """
    tables = {table: dict(values) for table, values in tables.items()}
    for table in ("task", "training"):
        tables.setdefault(table, {})
    faults = [*find_faults(tables), *_faults(_missing_data(tables["task"].get("data")))]
    wrong = {fault.key for fault in faults}
    faults += _faults(_retire(tables, overridden, wrong))
    known = {  # every key whose value is certain, given or by default
        name: tables.get(key.table, {}).get(name, key.default)
        for name, key in KEYS.items()
        if name not in wrong and (name in tables.get(key.table, {}) or not key.required)
    }
    faults += _missing(known, tables, wrong, required)
    return tables, faults + _faults(_contradictions(known, has_fleet="fleet" in tables))


def _faults(found: Found) -> list[Fault]:
    return [Fault(table=KEYS[name].table, key=name, message=message) for name, message in found]


def _missing_data(data: Any) -> Found:
    if isinstance(data, str) and data not in DATA_SETS and not os.path.exists(data):  # noqa: PTH110
        message = (
            f"data must be {', '.join(DATA_SETS)}, or the path of an .npz file or a folder, but "
            f"there is no {data!r}.{suggestion(Path(data).name, DATA_SETS)}"
        )
        yield "data", message


def _retire(tables: Tables, overridden: Collection[str], wrong: Collection[str | None]) -> Found:
    """Remove keys that an override made pointless; other pointless keys are faults."""
    changed = set(overridden)
    for name, key in KEYS.items():
        given = tables.get(key.table, {})
        if key.only is None or name not in given:
            continue
        other, values = key.only
        at = given.get(other, KEYS[other].default)
        if other in wrong or at in values or (KEYS[other].required and other not in given):
            continue
        if other in changed and name not in overridden:
            del given[name]
            changed.add(name)
            continue
        goes_with = " or ".join(str(value) for value in values if value is not None)
        message = f"{name} goes with {other} = {goes_with}, not with {other} = {at}."
        if values == (None,):
            message = f"give {other} or {name}, not both: the file has its own."
        elif name in overridden:
            message += f" Leave it out, or set {other} too."
        yield name, message


def _missing(
    known: dict[str, Any], tables: Tables, wrong: Collection[str | None], required: Collection[str]
) -> Iterator[Fault]:
    for table in required:
        if table in TABLES and table not in tables:
            message = f"[{table}] is missing, and needed here. Add it to the study."
            yield Fault(table=table, key=None, message=message)
    wanted = []
    if "fleet" in tables and known.get("file") is None and "file" not in wrong:
        wanted += ["step-time-s", "comm-time-s"]
    if _is_paper(known):
        wanted += ["pairs", "upper-loss", "lower-loss"]
    wanted += [name for name in _RATE_KEYS if known.get("schedule") == _RATE_KEYS[name]]
    missing = [name for name in wanted if known.get(name) in (None, [])]
    # A required key must have an effect: a target-loss of 0 has none.
    for name in required:
        if name in KEYS and not known.get(name):
            other, values = KEYS[name].only or (None, ())
            if other not in known or known[other] in values:
                missing.append(name)
    for name in missing:
        if name not in wrong:
            table = KEYS[name].table
            message = (
                f"{name} is missing: set it in [{table}], or add {name}=... to the command. "
                f"{KEYS[name].text}"
            )
            yield Fault(table=table, key=None, message=message)


def _contradictions(known: dict[str, Any], *, has_fleet: bool) -> Found:
    """Each key that does not go with the others, and why."""
    if known.get("data") not in DATA_SETS:  # a file says itself how many clients there are
        known = {**known, "num-clients": None}
    for name in ("clients-per-round", "groups"):
        yield from _ordered(known, name, "num-clients", f" Lower {name} or raise num-clients.")
    law = known.get("participation")
    if law is not None and LAWS[law].needs_fleet and not has_fleet:
        message = (
            f"participation={law} depends on how quick devices are, and needs a [fleet]. Add one, "
            "or set participation=shuffled, which needs none."
        )
        yield "participation", message
    if any(known.get(name) for name in _PRICES) and known.get("energy-weight") is not None:
        message = "give energy-weight or prices, not both: each sets what is minimised."
        yield "energy-weight", message
    for price, amount in (("price-mb", "mb-per-client-round"), ("price-co2-kg", "co2-per-kwh")):
        if known.get(price) and not known.get(amount):
            yield price, f"{price} has nothing to multiply. Give {amount} too."
    for what in ("clients-per-round", "local-steps"):
        yield from _ordered(known, f"min-{what}", f"max-{what}")
    yield from _ordered(known, "min-clients-per-round", "num-clients")
    if _is_paper(known):
        yield from _paper_contradictions(known)
    ends = known.get("saturation")
    if ends is not None and not (len(ends) == 2 and 0 < ends[0] <= ends[1]):
        message = f"saturation must be [low, high] with 0 < low <= high, but got {ends}."
        yield "saturation", message
    for name in ("max-time-s", "max-energy-j"):
        if not has_fleet and known.get(name, math.inf) < math.inf:
            yield name, f"{name} needs a [fleet]: without one a run has neither seconds nor joules."
    for sd in ("comm-time-sd-s", "step-energy-sd-j", "comm-energy-sd-j"):
        mean = sd.replace("-sd", "")
        if known.get(mean) == 0 and known.get(sd, 0) > 0:
            yield sd, f"{sd} needs a mean above 0, but got {mean}=0. Raise {mean}."


def _ordered(known: dict[str, Any], low: str, high: str, remedy: str = "") -> Found:
    """The first key, where its value is above that of the second."""
    less, more = known.get(low), known.get(high)
    if less is not None and more is not None and less > more:
        yield low, f"`{low} <= {high}` must hold, but got {low}={less}, {high}={more}.{remedy}"


def _is_paper(known: dict[str, Any]) -> bool:
    return known.get("pilots") == "paper" or known.get("course") == PAPER


def _paper_contradictions(known: dict[str, Any]) -> Found:
    """What does not go with the paper's procedure."""
    if (course := known.get("course")) not in (None, PAPER):
        message = f"pilots=paper means course={PAPER}, not {course}. Leave one of them out."
        yield "pilots", message
    pairs, upper, lower = map(known.get, ("pairs", "upper-loss", "lower-loss"))
    if pairs is not None and not (
        len(set(map(tuple, pairs))) >= 2 and all(len(one) == 2 and min(one) >= 1 for one in pairs)
    ):
        yield "pairs", "pairs must be two or more different [K, E], such as [[10, 20], [5, 40]]."
    if upper is not None and lower is not None and not lower < upper:
        message = (
            f"`lower-loss < upper-loss` must hold, but got lower-loss={lower}, upper-loss={upper}."
        )
        yield "lower-loss", message
