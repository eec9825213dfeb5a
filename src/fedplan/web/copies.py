"""Copies: a question as a command, and as Python code, that give exactly the same plan."""

import re
import shlex
from dataclasses import asdict

import fedplan
from fedplan.convergence.estimation import Estimate
from fedplan.convergence.saturation import Saturation
from fedplan.planning.example import EXAMPLE_BOUND
from fedplan.prices_and_limits import PRICES, kebab
from fedplan.web.question import COEFFICIENTS, Question
from fedplan.web.state import DRAWN_FILE


def as_command(question: Question) -> str:
    """What to type; a fleet that was drawn or uploaded is in a file of the name shown."""
    file = fleet_file(question) or question.devices.file
    words = ["fedplan", "plan", *(("--fleet", file) if file else ("--example",))]
    words += _knowledge(question)[0]
    options: dict[str, object] = {}
    if question.prices is not None:
        given = asdict(question.prices)
        options = {name: given[price.field] or None for name, price in PRICES.items()}
    else:
        options["energy_weight"] = question.problem.objective.energy_weight or None
    options |= asdict(question.problem.limits)
    for name, value in options.items():
        if value is not None:
            words += [f"--{kebab(name)}", repr(value)]
    name, way = _way(question)
    return shlex.join([*words, f"--{name}", way])


def fleet_file(question: Question) -> str | None:
    """The file that the command reads and the user has yet to save; None if there is none."""
    if question.devices.file is None:  # the example, which brings a bound
        return None if question.convergence.is_measured else "example-fleet.csv"
    return DRAWN_FILE if question.devices.file == DRAWN_FILE else None


def as_python(question: Question) -> str:
    """A few lines that make the plan and print its message."""
    _, name, known = _knowledge(question)
    parts = ["fleet=fleet"]
    if question.prices is not None:
        parts.append(f"objective={_call('Prices', asdict(question.prices), 0.0)}.objective()")
    else:
        weight = question.problem.objective.energy_weight
        parts.append(f"objective=Objective.weighted({weight!r})")
    if limits := _call("Constraints", asdict(question.problem.limits), None):
        parts.append(f"limits={limits}")
    options = ["problem", name]
    if question.convergence.target_gap != 1.0:
        options.append(f"target_gap={question.convergence.target_gap!r}")
    options.append("{}={!r}".format(*_way(question)))
    body = [
        f"fleet = {question.devices.python}",
        f"{name} = {known}",
        "problem = Problem(",
        *(f"    {part}," for part in parts),
        ")",
        f"plan = make_plan({', '.join(options)})",
        "print(plan.message)",
    ]
    return "\n".join([*_imports("\n".join(body)), "", *body, ""])


def _way(question: Question) -> tuple[str, str]:
    """How it is planned: the option's name, and its value."""
    if question.method is not None:
        return "method", question.method
    return "participation", question.participation


def _knowledge(question: Question) -> tuple[list[str], str, str]:
    """What is known, as flags; and its name and expression in Python."""
    known, gap = question.knowledge, question.convergence.target_gap
    name = question.convergence.name
    if isinstance(known, Estimate):
        how = ', method="pairwise"' if question.method == "paper" else ""
        python = f"estimate_bound(read_pilots({name!r}), len(fleet){how})"
        return ["--pilots", name], "bound", python
    if isinstance(known, Saturation):
        low, high = known.interval or (known.saturation, known.saturation)
        python = f"Saturation.within({low!r}, {high!r}, rounds={known.rounds!r})"
        flags = ["--saturation", repr(low), repr(high), "--rounds", repr(2 * known.rounds)]
        return flags, "saturation", python
    values = {name: repr(getattr(known, name)).removesuffix(".0") for name in COEFFICIENTS}
    coefficients = ",".join(f"{name}={value}" for name, value in values.items())
    flags = ["--bound", coefficients, "--target-gap", repr(gap)]
    if question.devices.file is None and (known, gap) == (EXAMPLE_BOUND, 1.0):
        flags = []  # the example brings it
    return flags, "bound", repr(known)


def _call(name: str, values: dict[str, object], usual: object) -> str:
    """A call with the values that are not the usual one; empty if there are none."""
    given = ", ".join(f"{key}={value!r}" for key, value in values.items() if value != usual)
    return f"{name}({given})" if given else ""


def _imports(body: str) -> list[str]:
    used = [name for name in sorted(fedplan.__all__) if re.search(rf"\b{name}[(.]", body)]
    lines = [f"from fedplan import {', '.join(used)}"]
    if "example_fleet(" in body:
        lines.append("from fedplan.planning.example import example_fleet")
    return lines
