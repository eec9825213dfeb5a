"""Plan: the chosen (K, E), what it will cost, the proof, and what else could have been chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fedplan.errors import InputError
from fedplan.notebook import Shown, in_words
from fedplan.theory.cost import Prediction

Method = Literal["exact", "paper", "robust"]
METHODS: tuple[Method, ...] = ("exact", "paper", "robust")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Proof of optimality: no integer (K, E) has an `objective` below `lower_bound`.

    `gap` is what the plan has above it, relative for a cost, absolute for a regret; 0 means
    equal to floating-point precision (1e-12). `objective` names what the method minimises: "cost"
    (exact), "regret" (robust), or "p3" (paper, whose search proves nothing, so both are None).
    """

    objective: Literal["cost", "regret", "p3"]
    lower_bound: float | None
    gap: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another setting, priced with exact stragglers and the plan's bound.

    `cost_ratio` is its cost over that of the planned (K, E), priced the same way; `feasible` says
    whether it respects the constraints.
    """

    name: str
    prediction: Prediction
    cost_ratio: float
    feasible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Shown):
    """The answer. A plan that cannot exist has status "infeasible" and says what is attainable.

    Numbers are expectations by the method's own model: exact stragglers and the full bound, or
    for `paper` mean times and c0 = b0. `time_s`, `energy_j` and `cost` go with
    `expected_rounds`; `rounds` is its ceiling. `regret` (robust only) is what the choice can cost
    above the best, over the plausible bounds. `best_attainable` (infeasible only) is the least
    value of each limited total. `binding` names the constraints that make the plan dearer; for
    `robust` the ends of ranges, given or where the pilots' support stops, that the choice sits on.
    """

    status: Literal["optimal", "infeasible"]
    method: Method
    unit: str
    prediction: Prediction | None
    certificate: Certificate | None
    alternatives: tuple[Alternative, ...]
    binding: tuple[str, ...]
    regret: float | None
    best_attainable: dict[str, Prediction]
    message: str

    @property
    def success(self) -> bool:
        """Whether there is a setting to use."""
        return self.prediction is not None

    @property
    def setting(self) -> tuple[int, int]:
        """(K, E); raises where the plan is infeasible."""
        if self.prediction is None:
            raise InputError(f"an infeasible plan has no setting. {self.message}")
        return self.prediction.clients_per_round, self.prediction.local_steps

    def __repr__(self) -> str:
        if self.prediction is None:
            return f"<Plan: infeasible ({self.method})>"
        found = ", ".join(f"{name} {value}" for name, value in self._facts() if name != "why")
        return f"<Plan: {found}>"

    def _facts(self) -> Iterator[tuple[str, str]]:
        if (found := self.prediction) is not None:
            yield "clients_per_round", in_words(found.clients_per_round)
            yield "local_steps", in_words(found.local_steps)
            yield "expected_rounds", in_words(found.expected_rounds)
            yield "time_s", in_words(found.time_s)
            yield "energy_j", in_words(found.energy_j)
            yield "cost", f"{in_words(found.cost)} {self.unit}"
        yield "status", f"{self.status} ({self.method})"
        yield "why", self.message
