"""Pilot: one short training run, from which a convergence bound is estimated."""

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fedplan.core.fleet import MAX_CLIENTS
from fedplan.errors import LARGEST, InputProblem, refuse

# What rounds, seconds and joules refer to if they are predicted from pilots alone.
DESCENT = "the pilots' descent from upper_loss to lower_loss"
Piloted = tuple[tuple[int, int], tuple[int, int]]  # the smallest and the largest K, and E


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """One short training run at (K, E): the rounds at which the loss first fell to F_a and to F_b.

    clients_per_round, local_steps : K and E of the run.
    upper_loss, lower_loss : F_a and F_b, the loss where the measurement starts and ends.
    rounds_to_upper, rounds_to_lower : R_a and R_b; fractional where averaged over seeds.
    seed : the seed of a single run; None for an average.

    >>> pilot = Pilot(clients_per_round=5, local_steps=10, upper_loss=1.2, lower_loss=0.9,
    ...               rounds_to_upper=12, rounds_to_lower=20.5)
    >>> pilot.iterations
    85.0
    """

    clients_per_round: int
    local_steps: int
    upper_loss: float
    lower_loss: float
    rounds_to_upper: float
    rounds_to_lower: float
    seed: int | None = None

    def __post_init__(self) -> None:
        problems = _problems({name: getattr(self, name) for name in _RULES})
        refuse(problems)

    @property
    def iterations(self) -> float:
        """Local steps of a client between the two losses: E (R_b - R_a)."""
        return self.local_steps * (self.rounds_to_lower - self.rounds_to_upper)


def _is_count(value: object) -> bool:
    return isinstance(value, int | np.integer) and 1 <= int(value) <= MAX_CLIENTS


def _is_finite(value: object, least: float = -LARGEST) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(
        least <= value <= LARGEST
    )


_COUNT = "must be an integer >= 1 (and at most 10^12)", _is_count
_LOSS = "must be a finite number", _is_finite
_ROUNDS = "must be a finite number >= 0", partial(_is_finite, least=0.0)
# What each value must be, and whether it is.
_RULES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "clients_per_round": _COUNT,
    "local_steps": _COUNT,
    "upper_loss": _LOSS,
    "lower_loss": _LOSS,
    "rounds_to_upper": _ROUNDS,
    "rounds_to_lower": _ROUNDS,
    "seed": (
        "must be an integer, or left out",
        lambda value: value is None or isinstance(value, int | np.integer),
    ),
}
_ORDERED = (
    ("lower_loss", "upper_loss", "Give the higher of the two losses as upper_loss."),
    ("rounds_to_upper", "rounds_to_lower", "Swap them: the upper loss is reached first."),
)
_APART = "Set the two losses further apart."


def _problems(values: dict[str, Any]) -> list[InputProblem]:
    # Types are checked too: the reader of pilots.csv passes on cells that are no numbers.
    problems = [
        InputProblem(column=name, message=f"{requirement}, but got {reprlib.repr(values[name])}.")
        for name, (requirement, fits) in _RULES.items()
        if not fits(values[name])
    ]
    wrong = {problem.column for problem in problems}
    for low, high, swapped in _ORDERED:
        if wrong.isdisjoint((low, high)) and not values[low] < values[high]:
            got = f"{low}={values[low]}, {high}={values[high]}"
            remedy = _APART if values[low] == values[high] else swapped
            message = f"`{low} < {high}` must hold, but got {got}. {remedy}"
            problems.append(InputProblem(column=low, message=message))
    return problems
