"""Copies: a question as a command, and as Python, that give exactly the same plan."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict

from fedplan.core.constraints import Constraints
from fedplan.studies.keys import PRICE_KEYS
from fedplan.web.knowledge import COEFFICIENTS
from fedplan.web.state import DRAWN_FILE, LIMITS, Question


def as_command(question: Question) -> str:
    """What to type; a fleet that was drawn or uploaded stands in a file of the name shown."""
    file = fleet_file(question)
    words = ["fedplan", "plan", *(("--fleet", file) if file else question.devices.flags)]
    words += _convergence_flags(question)
    if question.prices is not None:
        given = asdict(question.prices)
        words += _flags({key: given[name] for key, name in PRICE_KEYS.items() if given[name]})
    elif question.energy_weight:
        words += _flags({"energy_weight": question.energy_weight})
    limits = {name: getattr(question.constraints, name) for name in LIMITS}
    words += _flags({name: limit for name, limit in limits.items() if limit is not None})
    if question.method is not None:
        words += ["--method", question.method]
    else:
        words += ["--participation", question.participation]
    return shlex.join(words)


def fleet_file(question: Question) -> str | None:
    """The file that the command reads and nobody has yet; None where there is none."""
    flags = question.devices.flags
    if flags == ("--example",):  # which brings a bound
        return None if question.convergence.is_measured else "example-fleet.csv"
    return DRAWN_FILE if flags == ("--fleet", DRAWN_FILE) else None


def as_python(question: Question) -> str:
    """A few lines that make the plan and print its message."""
    known = question.convergence.python
    if question.estimate is not None:
        how = ', method="pairwise"' if question.method == "paper" else ""
        known = f"estimate_bound({known}, len(fleet){how})"
    name = "bound" if question.convergence.is_measured else "saturation"
    parts = ["fleet=fleet"]
    if question.prices is not None:
        parts.append(f"objective={_call('Prices', asdict(question.prices), 0.0)}.objective()")
    else:
        parts.append(f"objective=Objective.weighted({question.energy_weight!r})")
    if question.constraints != Constraints():
        parts.append(f"limits={_call('Constraints', asdict(question.constraints), None)}")
    options = []
    if question.convergence.target_gap != 1.0:
        options.append(f"target_gap={question.convergence.target_gap!r}")
    if question.method is not None:
        options.append(f"method={question.method!r}")
    else:
        options.append(f"participation={question.participation!r}")
    body = [
        f"fleet = {question.devices.python}",
        f"{name} = {known}",
        "problem = Problem(",
        *(f"    {part}," for part in parts),
        ")",
        f"plan = make_plan({', '.join(['problem', name, *options])})",
        "print(plan.message)",
    ]
    return "\n".join([*_imports("\n".join(body)), "", *body, ""])


def _convergence_flags(question: Question) -> list[str]:
    known = question.convergence
    if known.flags or question.devices.flags == ("--example",):
        return list(known.flags)
    # The example's bound with another fleet: --example would bring its own.
    bound = question.knowledge
    coefficients = ",".join(f"{name}={getattr(bound, name)!r}" for name in COEFFICIENTS)
    return ["--bound", coefficients, "--target-gap", repr(known.target_gap)]


def _flags(values: dict[str, float]) -> list[str]:
    return [
        word
        for name, value in values.items()
        for word in ("--" + name.replace("_", "-"), repr(value))
    ]


def _call(name: str, values: dict[str, object], usual: object) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in values.items() if value != usual)
    return f"{name}({given})"


_NAMES = (
    "Bound",
    "Constraints",
    "Objective",
    "Prices",
    "Problem",
    "Saturation",
    "draw_fleet",
    "estimate_bound",
    "make_plan",
    "read_fleet",
    "read_pilots",
    "with_stragglers",
)


def _imports(body: str) -> list[str]:
    used = [name for name in _NAMES if re.search(rf"\b{name}[(.]", body)]
    lines = [f"from fedplan import {', '.join(used)}"]
    if "example_fleet(" in body:
        lines.append("from fedplan.planning.example import example_fleet")
    return lines
