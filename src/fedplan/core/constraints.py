"""Constraints: the ranges of K and E, and the limits on time, energy and rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedplan.core.setting import Prediction
from fedplan.errors import InputError, amount_problems, refuse, unmet

LIMIT_SLACK = 1e-12  # relative; a limit exceeded by no more than rounding is met
MAX_STEPS = 10**9
# Limits on totals, and the number of a prediction that each of them limits.
TOTALS = {"deadline_s": "time_s", "energy_budget_j": "energy_j", "max_rounds": "expected_rounds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What a plan must respect. Limits apply to the expected totals until the target is reached."""

    deadline_s: float | None = None
    energy_budget_j: float | None = None
    max_rounds: int | None = None
    min_clients_per_round: int | None = None
    max_clients_per_round: int | None = None
    min_local_steps: int | None = None
    max_local_steps: int | None = None

    def __post_init__(self) -> None:
        given = {n: value for n in self.__slots__ if (value := getattr(self, n)) is not None}
        problems = amount_problems(**{name: given[name] for name in TOTALS if name in given})
        rules: dict[str, bool] = {}
        for what in ("clients_per_round", "local_steps"):
            low, high = f"min_{what}", f"max_{what}"
            rules |= {f"{n} >= 1": not given[n] < 1 for n in (low, high) if n in given}
            if low in given and high in given:
                rules[f"{low} <= {high}"] = not given[low] > given[high]
        for name in ("min_local_steps", "max_local_steps"):
            rules[f"{name} <= {MAX_STEPS}"] = not given.get(name, 1) > MAX_STEPS
        problems += unmet(rules, **given)
        problems += [
            f"{name} must be an integer, but got {name}={value}."
            for name, value in given.items()
            if name not in ("deadline_s", "energy_budget_j") and not isinstance(value, Integral)
        ]
        refuse(problems)

    @property
    def limits_totals(self) -> bool:
        """Whether time, energy or rounds are limited."""
        return any(getattr(self, name) is not None for name in TOTALS)

    def tightened(self, **ends: Any) -> Constraints:
        """These limits, with totals limited to these ends, too; infinite ends are ignored.

        >>> Constraints(deadline_s=60.0).tightened(deadline_s=90.0, max_rounds=10).max_rounds
        10
        """
        both = {name: min(end, getattr(self, name) or math.inf) for name, end in ends.items()}
        return replace(self, **{name: end for name, end in both.items() if end < math.inf})

    def ranges_only(self) -> Constraints:
        """The ranges of K and E without the limits on totals."""
        return replace(self, **dict.fromkeys(TOTALS))

    def clients_range(self, num_clients: int) -> tuple[int, int]:
        """Smallest and largest K allowed for a fleet of this size."""
        lowest = self.min_clients_per_round or 1
        if lowest > num_clients:
            raise InputError(
                "`min_clients_per_round <= num_clients` must hold, but got "
                f"min_clients_per_round={self.min_clients_per_round}, num_clients={num_clients}. "
                "Lower min_clients_per_round or add devices."
            )
        return lowest, min(self.max_clients_per_round or num_clients, num_clients)

    def steps_within(self, local_steps: float) -> int:
        """The nearest E allowed."""
        low, high = self.min_local_steps or 1, self.max_local_steps or MAX_STEPS
        return int(min(max(local_steps, low), high))

    def met(self, time_s: ArrayLike, energy_j: ArrayLike, rounds: ArrayLike) -> NDArray[np.bool_]:
        """Which of these totals respect every limit; arrays broadcast."""
        allowed = np.ones(
            np.broadcast_shapes(*map(np.shape, (time_s, energy_j, rounds))), dtype=bool
        )
        for name, total in zip(TOTALS, (time_s, energy_j, rounds), strict=True):
            if (limit := getattr(self, name)) is not None:
                allowed &= np.asarray(total) <= limit * (1 + LIMIT_SLACK)
        return allowed

    def are_met_by(self, prediction: Prediction) -> bool:
        """Whether these totals respect every limit."""
        return bool(self.met(prediction.time_s, prediction.energy_j, prediction.expected_rounds))

    def relaxations(self) -> Iterator[tuple[str, Constraints]]:
        """Each given constraint by name, with the constraints that remain without it."""
        for name in self.__slots__:
            if getattr(self, name) is not None:
                yield name, replace(self, **{name: None})
