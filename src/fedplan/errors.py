"""Exceptions, and the exit code of each kind.

FedplanError            1  anything fedplan raises on purpose
├── InputError          2  the request or a file is wrong; carries every problem found
└── MissingExtraError   1  an optional package is not installed; says what to type

A request that is well formed but impossible (no plan meets the deadline) is not an error: it is
the status of a result, and the command line turns it into exit code 3.
"""

import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

T = TypeVar("T")
EXIT_INFEASIBLE = 3
# The range of amounts other than 0: products and quotients of five of them, and squares of those of
# two, stay finite and above 0.
SMALLEST, LARGEST = 1e-40, 1e40


@dataclass(frozen=True, slots=True, kw_only=True)
class InputProblem:
    """One problem of the input, and its position.

    >>> where = {"source": "fleet.csv", "line": 7, "column": "count"}
    >>> str(InputProblem(message="must be > 0, but got 0.", **where))
    'fleet.csv, line 7, column count: must be > 0, but got 0.'
    """

    message: str
    source: str | None = None
    line: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        places = [
            self.source,
            None if self.line is None else f"line {self.line}",
            None if self.column is None else f"column {self.column}",
        ]
        where = ", ".join(place for place in places if place)
        return f"{where}: {self.message}" if where else self.message


class FedplanError(Exception):
    """Base class of every error that fedplan raises deliberately."""

    exit_code = 1


class InputError(FedplanError, ValueError):
    """Wrong input; `problems` lists all that were found, not only the first."""

    exit_code = 2

    def __init__(self, problems: str | InputProblem | Iterable[str | InputProblem]) -> None:
        if isinstance(problems, str | InputProblem):
            problems = [problems]
        self.problems = tuple(
            InputProblem(message=problem) if isinstance(problem, str) else problem
            for problem in problems
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))


def refuse(problems: Iterable[str | InputProblem]) -> None:
    """Raise an InputError with these problems, if there are any."""
    if found := list(problems):
        raise InputError(found)


def unmet(rules: Mapping[str, bool], **values: object) -> list[str]:
    """A message for every rule that does not hold, with the values that it names.

    >>> unmet({"every >= 1": False, "subset >= 1": True}, every=0, subset=5)
    ['`every >= 1` must hold, but got every=0.']
    """
    messages = []
    for rule, holds in rules.items():
        if not holds:
            named = re.findall(r"\w+", rule)
            got = ", ".join(f"{name}={value}" for name, value in values.items() if name in named)
            messages.append(f"`{rule}` must hold, but got {got}.")
    return messages


def require(rules: Mapping[str, bool], **values: object) -> None:
    """Raise an InputError with every rule that does not hold."""
    refuse(unmet(rules, **values))


def amount_problems(*, or_zero: bool = False, **values: float) -> list[str]:
    """Problems of numbers given by users; `or_zero` says that they may be 0.

    >>> amount_problems(target_gap=5e-324, ratio=-1.0)
    ['`1e-40 <= target_gap <= 1e+40` must hold, but got target_gap=5e-324.',
     '`ratio > 0 and finite` must hold, but got ratio=-1.0.']
    """
    rules = {}
    for name, value in values.items():
        if 0 < value < math.inf:
            rules[f"{SMALLEST:g} <= {name} <= {LARGEST:g}"] = SMALLEST <= value <= LARGEST
        else:
            rules[f"{name} {'>=' if or_zero else '>'} 0 and finite"] = or_zero and value == 0
    return unmet(rules, **values)


def suggestion(word: str, known: Iterable[str]) -> str:
    """A hint at the closest known word, if any is close.

    >>> suggestion("num_client", ["num-clients", "rounds"]), suggestion("x", ["rounds"])
    (' Did you mean num-clients?', '')
    """
    near = get_close_matches(word.replace("_", "-").lower(), list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else ""


_BOUNDS = {
    "greater_than": (">", "gt"),
    "greater_than_equal": (">=", "ge"),
    "less_than": ("<", "lt"),
    "less_than_equal": ("<=", "le"),
}
_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "list_type": "a list",
    "string_type": "a text",
    "string_too_long": "a short text",
}


def wrong_value(name: str, details: Mapping[str, Any]) -> str:
    """Pydantic's error about a value, in fedplan's own words."""
    kind, got, context = details["type"], details["input"], details.get("ctx", {})
    if kind in _BOUNDS:
        sign, limit = _BOUNDS[kind]
        shown = got if isinstance(got, float) else reprlib.repr(got)
        return f"`{name} {sign} {context[limit]:g}` must hold, but got {name}={shown}."
    if kind == "literal_error":
        words = context["expected"].replace("'", "")
        near = words.replace(" or ", ", ").split(", ") if isinstance(got, str) else ()
        hint = suggestion(got, near) if near else ""
        return f"{name} must be {words}, but got {reprlib.repr(got)}.{hint}"
    wanted = _TYPES.get(kind, details["msg"])
    return f"{name} must be {wanted}, but got {reprlib.repr(got)}."


class Collector:
    """Runs the parts of a request and collects their problems, to report all at once."""

    def __init__(self) -> None:
        self._problems: list[InputProblem] = []

    def attempt(self, part: Callable[[], T]) -> T | None:
        """The part's value, or None once its problems have been noted."""
        try:
            return part()
        except InputError as error:
            self._problems.extend(error.problems)
            return None

    def add(self, *problems: str | InputProblem) -> None:
        """Note problems."""
        self._problems.extend(InputError(problems).problems)

    def finish(self) -> None:
        """Raise everything noted, if anything was."""
        refuse(self._problems)

    def finished(self, value: T | None) -> T:
        """Raise all collected problems, if any; otherwise return the part."""
        self.finish()
        if value is None:
            raise AssertionError("a missing part is always a noted problem")
        return value


class MissingExtraError(FedplanError, ImportError):
    """An optional package is missing; the message has the command that installs it.

    >>> print(MissingExtraError("TorchLearner", "torch"))
    TorchLearner needs the package torch, which is not installed.
    Type: pip install 'fedplan[torch]'
    """

    def __init__(self, what: str, extra: str, *, package: str | None = None) -> None:
        super().__init__(
            f"{what} needs the package {package or extra}, which is not installed. "
            f"Type: pip install 'fedplan[{extra}]'"
        )
