"""Plan: the chosen setting, its expected cost, the proof, and the alternatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from fedplan.core.objective import Objective
from fedplan.core.setting import Participation, Prediction, Setting
from fedplan.errors import InputError
from fedplan.notebook import Shown
from fedplan.words import in_words

Method = Literal["exact", "paper", "robust", "expected"]
METHODS: tuple[Method, ...] = ("exact", "paper", "robust")  # of uniform sampling; others: expected


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """One group of a plan by turns: its devices, how often it trains, the cost of its round.

    clients : devices of the group. data_share : their share of all samples.
    frequency : the share of rounds in which it trains.
    """

    clients: int
    data_share: float
    frequency: float
    time_s: float
    energy_j: float
    cost: float

    @classmethod
    def of(cls, objective: Objective, **values: Any) -> GroupCost:
        """The row with its cost worked out."""
        cost = objective.of_round(values["time_s"], values["energy_j"], values["clients"])
        return cls(**values, cost=float(cost))


@runtime_checkable
class LazyLaw(Protocol):
    """A law that is written out only when it is asked for: it may have very many devices."""

    law: ClassVar[str]

    def whole(self) -> Participation:
        """The law, with every client by its number."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Proof of optimality: no integer (K, E) has an `objective` below `lower_bound`.

    `gap` is how far the plan is above it, relative for a cost, absolute for a regret; 0 for a cost
    means that both agree to 1e-9. `objective` names what the method minimises: "cost" (exact),
    "regret" (robust), or "p3" (paper, whose search proves nothing, so both are None).
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Shown):
    """The answer. If no plan exists, the status is "infeasible" and it says what is attainable.

    Numbers are expectations by the method's own model: exact stragglers and the full bound, or
    for `paper` mean times and c0 = b0. `time_s`, `energy_j` and `cost` go with
    `expected_rounds`; `rounds` is its ceiling. `regret` (robust only) is what the choice can cost
    above the best, over the plausible bounds. `best_attainable` (infeasible only) is the least
    value of each limited total. `binding` names the constraints that make the plan dearer; for
    `robust` the ends of ranges, given or set by the pilots, at which the choice lies.
    `law` is who trains when; `groups` are those that take turns, where they do.
    """

    status: Literal["optimal", "infeasible"]
    method: Method
    unit: str
    prediction: Prediction | None = None
    certificate: Certificate | None = None
    alternatives: tuple[Alternative, ...] = ()
    binding: tuple[str, ...] = ()
    regret: float | None = None
    best_attainable: dict[str, Prediction] = field(default_factory=dict)
    message: str = ""
    law: Participation | LazyLaw | None = None
    groups: tuple[GroupCost, ...] = ()

    @property
    def success(self) -> bool:
        """Whether there is a setting to use."""
        return self.prediction is not None

    @property
    def participation(self) -> str:
        """The name of the law: who trains when."""
        return self.law.law if self.law is not None else "uniform"

    @property
    def visits(self) -> tuple[int, ...]:
        """How often each group trains in a cycle, if groups take turns."""
        return tuple(getattr(self.law, "visits", ()))

    @property
    def setting(self) -> Setting:
        """The setting to train with; raises if the plan is infeasible."""
        if self.prediction is None or self.law is None:
            raise InputError(f"an infeasible plan has no setting. {self.message}")
        law = self.law.whole() if isinstance(self.law, LazyLaw) else self.law
        return Setting(participation=law, local_steps=self.prediction.local_steps)

    def _facts(self) -> Iterator[tuple[str, str]]:
        if (found := self.prediction) is not None:
            yield "participation", self.participation
            if found.clients_per_round is None:
                yield "groups", in_words(len(self.groups))
            else:
                yield "clients_per_round", in_words(found.clients_per_round)
            for name in ("local_steps", "expected_rounds", "time_s", "energy_j"):
                yield name, in_words(getattr(found, name))
            yield "cost", f"{in_words(found.cost)} {self.unit}"
        yield "status", f"{self.status} ({self.method})"
        yield "why", self.message
