"""Options of a planned strategy: validation, and plans read from files."""

import json
import math
import os
import re
from pathlib import Path

from fedplan.errors import InputError, InputProblem, unmet


def read_plan(path: str | os.PathLike[str]) -> tuple[int, int]:
    """(K, E) of a JSON file that `fedplan plan --format json` wrote."""
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
        setting = (plan["clients_per_round"], plan["local_steps"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or repr(error)
        message = f"is no plan ({reason}). Write one: fedplan plan ... --format json > plan.json."
        raise InputError(InputProblem(source=str(path), message=message)) from error
    if not _is_pair(setting):
        message = "must have K and E >= 1, but has ({}, {}). To take turns, leave plan out."
        message = message.format(*setting)
        raise InputError(InputProblem(source=str(path), message=message))
    return setting


def _is_pair(value: object) -> bool:
    """Whether this can be a (K, E)."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(part, int) and part >= 1 for part in value)
    )


def check_options(
    study: str, target_loss: float, patience: int, min_clients: int, plan: object
) -> None:
    """Refuse what makes no sense, all at once."""
    rules = {
        "target_loss > 0 and finite": 0 < target_loss < math.inf,
        "patience >= 1": patience >= 1,
        "min_clients >= 1": min_clients >= 1,
    }
    problems = unmet(rules, target_loss=target_loss, patience=patience, min_clients=min_clients)
    if plan is not None and not _is_pair(plan):
        problems.append(f"plan must be (K, E), both whole and >= 1, but is {plan!r}.")
    if not re.fullmatch(r"[\w.-]+", study) or study.startswith("."):
        problems.append(f"study names a folder: letters, digits, - and _, but got {study!r}.")
    if problems:
        raise InputError(problems)
