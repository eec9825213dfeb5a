"""Adaptive tau: local steps chosen by client drift, within a budget.

Wang et al., "Adaptive Federated Learning in Resource Constrained Edge Computing Systems" (2019).
Clients report how quickly their loss and its gradient change, rho and beta, and how far their
gradients are from everyone's, delta. With a local step that costs c and an aggregation that costs b
of a budget B, T = (B - c - b) tau / (c tau + b) steps are possible, and tau minimises

    (1 + sqrt(1 + 4 T^2 phi rho eta h / tau)) / (2 T eta phi) + rho h,
    h = delta / beta ((eta beta + 1)^tau - 1) - eta delta tau

among 1 .. 10 tau_before, at most 100.

What differs from the paper: c and b are costs by the objective, of all clients, so that energy can
count (a budget may be of anything). Training goes on when the budget is spent, as that only sets
tau. Gradients are of one batch, which the client takes anyway in its first step;
a second one and two losses are extra work, which the paper does not charge either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.core.records import RoundRecord
from fedplan.course.published import Published, Turning
from fedplan.errors import InputError

MOST_STEPS, MOST_TIMES = 100, 10  # tau at most, and at most so many times the one before
BUDGET_ROUNDS = 100.0  # the paper's 15 s, at 0.013 s a step and 0.13 s an aggregation


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveTau(Published):
    """Begins with one step and all clients, as in the paper, unless given otherwise.

    phi : the paper's control parameter; 0.025 is its value for an SVM, 5e-5 for a CNN.
    budget : B in the unit of the objective; by default the cost of 100 rounds of one step.
    """

    name: ClassVar[str] = "adaptive-tau"
    wants_clients: ClassVar[bool] = True
    usual_share: ClassVar[float] = 1.0
    usual_steps: ClassVar[int] = 1
    phi: float = 0.025
    budget: float | None = None

    def __post_init__(self) -> None:
        if self.problem.learning_rate is None:
            raise InputError("adaptive tau needs the learning rate. Give the problem one.")

    @cached_property
    def costs(self) -> tuple[float, float]:
        """What a local step and an aggregation of a round cost, c and b."""
        fleet, objective = self.problem.fleet, self.problem.objective
        clients = self.setting.pair[0]
        step = objective.of_round(
            fleet.step_time_s.max(), clients * fleet.mean("step_energy_j"), 0.0
        )
        aggregation = objective.of_round(
            fleet.comm_time_s.max(), clients * fleet.mean("comm_energy_j"), clients
        )
        return float(step), float(aggregation)

    def begin(self) -> AdaptiveTauSteering:
        """A new training."""
        return AdaptiveTauSteering(self)


class AdaptiveTauSteering(Turning):
    """Chooses tau anew after every round."""

    def __init__(self, course: AdaptiveTau) -> None:
        super().__init__(course.setting, "One step to begin with, or what is given.")
        self._course = course
        self._samples = course.problem.fleet.per_device(course.problem.fleet.samples)

    def tell(self, record: RoundRecord) -> None:
        """Report a round; its clients' rho, beta and delta, by their samples, give the next tau."""
        reports, rate = record.reports, self._course.problem.learning_rate
        if reports is None or rate is None or not record.cohort:
            return
        held = self._samples[list(record.cohort)]
        shares, norms = held / held.sum(), reports.update_norms
        moved = np.where(norms > 0, norms, np.inf)  # who did not move counts as 0
        rho = float(shares @ (np.abs(reports.losses_after - reports.losses) / moved))
        beta = float(shares @ (reports.gradient_changes / moved))
        delta = float(shares @ reports.gradient_spreads)
        if not np.isfinite([rho, beta, delta]).all():
            return
        clients, before = self._setting.pair
        tau = np.arange(1.0, min(MOST_TIMES * before, MOST_STEPS) + 1)
        bounds = self.bounds(tau, rho, beta, delta, rate.at(record.round))
        why = f"rho {rho:.3g}, beta {beta:.3g} and delta {delta:.3g} were measured."
        chosen = int(tau[np.argmin(bounds)])
        self.turn_to(self._course.uniform(clients, chosen), record.round + 1, why)

    def bounds(
        self, tau: FloatArray, rho: float, beta: float, delta: float, rate: float
    ) -> FloatArray:
        """The expression to minimise, for each tau; infinite where numbers overflow."""
        step, aggregation = self._course.costs
        budget = self._course.budget
        if budget is None:
            budget = BUDGET_ROUNDS * (step + aggregation)
        phi = self._course.phi
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            possible = (budget - step - aggregation) * tau / (step * tau + aggregation)
            drift = np.zeros(tau.size)
            if beta > 0:
                grown = (rate * beta + 1.0) ** tau - 1.0
                drift = np.maximum(delta / beta * grown - rate * delta * tau, 0.0)
            root = np.sqrt(1.0 + 4.0 * possible**2 * phi * rho * rate * drift / tau)
            found = (1.0 + root) / (2.0 * possible * rate * phi) + rho * drift
        return np.where(np.isnan(found) | (found < 0), np.inf, found)
