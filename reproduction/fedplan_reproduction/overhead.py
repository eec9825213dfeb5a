"""Overhead: both sides of Equation 26, what Algorithm 2's pilots cost beside the training."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from fedplan import Bound, Pilot, estimate_bound
from fedplan.convergence.bound import rounds_for_gap
from fedplan.convergence.estimation import estimation_overhead
from fedplan.studies import Study
from fedplan.studies.task import build_data
from fedplan_reproduction.table1 import Row
from fedplan_reproduction.weights import PAPER, Priced

_STEPS = 1_000  # of the search for the lowest loss; the last hundred hardly change it


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Equation 26 at one energy weight.

    rounds : R, that the paper's plan (K*, E*) took to the target loss F_R.
    measured : the left side, iterations of the pilots over R E*.
    best_loss : F*, the lowest loss that any model of this kind has on the data.
    predicted : the right side, with A0 and B0 from the pilots.
    """

    energy_weight: float
    clients_per_round: int
    local_steps: int
    pilot_iterations: float
    rounds: float
    measured: float
    best_loss: float
    predicted: float


def overheads(
    table1: Sequence[Row],
    priced: Sequence[Priced],
    *,
    num_clients: int,
    target_loss: float,
    best_loss: float,
) -> list[Overhead]:
    """A row for each weight whose plan arrives; none where a pilot never did."""
    pilots = [pilot for row in table1 if (pilot := _pilot(row)) is not None]
    if not pilots or len(pilots) < len(table1) or best_loss >= target_loss:
        return []
    bound = scaled_bound(pilots, num_clients, best_loss)
    found = []
    for one in priced:
        if one.method != PAPER or one.local_steps is None or not math.isfinite(one.rounds):
            continue
        clients, steps = one.clients_per_round or num_clients, one.local_steps
        predicted = rounds_for_gap(bound, clients, steps, num_clients, target_loss - best_loss)
        found.append(
            Overhead(
                energy_weight=one.energy_weight,
                clients_per_round=clients,
                local_steps=steps,
                pilot_iterations=estimation_overhead(pilots, rounds=1, local_steps=1),
                rounds=one.rounds,
                measured=estimation_overhead(pilots, one.rounds, steps),
                best_loss=best_loss,
                predicted=estimation_overhead(pilots, float(predicted), steps),
            )
        )
    return found


def scaled_bound(pilots: Sequence[Pilot], num_clients: int, best_loss: float) -> Bound:
    """A0 and B0 themselves, not their ratio alone: Equation 23, with F* known.

    >>> def pilot(clients, steps):  # of the paper's bound with A0 = 400, B0 = 2, and F* = 0.1
    ...     spread = 400 + 2 * (1 + (10 - clients) / (9 * clients)) * steps**2
    ...     rounds = [spread / steps / (loss - 0.1) for loss in (0.6, 0.3)]
    ...     return Pilot(clients_per_round=clients, local_steps=steps, upper_loss=0.6,
    ...                  lower_loss=0.3, rounds_to_upper=rounds[0], rounds_to_lower=rounds[1])
    >>> bound = scaled_bound([pilot(10, 5), pilot(5, 20), pilot(2, 40)], 10, 0.1)
    >>> round(bound.a0, 6), round(bound.b0, 6)
    (400.0, 2.0)
    """
    ratio = estimate_bound(pilots, num_clients, method="pairwise").ratio
    own = Bound.from_ratio(ratio)
    scales = []
    for pilot in pilots:
        gaps = pilot.upper_loss - best_loss, pilot.lower_loss - best_loss
        upper, lower = (
            float(rounds_for_gap(own, pilot.clients_per_round, pilot.local_steps, num_clients, gap))
            for gap in gaps
        )
        scales.append((pilot.rounds_to_lower - pilot.rounds_to_upper) / (lower - upper))
    scale = statistics.fmean(scales)
    return Bound(a0=ratio * scale, b0=scale)


def best_loss_of(study: Study) -> float:
    """F*: the lowest loss of softmax regression on all samples; 0 of a network, taken as found."""
    if study.task.model != "logistic":
        return 0.0
    data = build_data(study.task)
    x = np.column_stack([data.x, np.ones(len(data.x))]).astype(np.float64)
    return lowest_loss(x, data.y, data.num_classes)


def lowest_loss(x: NDArray[np.float64], y: NDArray[np.int64], num_classes: int) -> float:
    """The lowest mean cross-entropy of softmax regression.

    >>> x = np.array([[1.0], [1.0], [1.0], [1.0]])
    >>> round(lowest_loss(x, np.array([0, 0, 0, 1]), 2), 4)  # the entropy of a quarter
    0.5623
    """
    rows = np.arange(len(y))

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logs = log_softmax(x @ flat.reshape(x.shape[1], num_classes), axis=1)
        slopes = np.exp(logs)
        slopes[rows, y] -= 1.0
        return -float(logs[rows, y].mean()), (x.T @ slopes / len(y)).ravel()

    start = np.zeros(x.shape[1] * num_classes)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return float(found.fun)


def _pilot(row: Row) -> Pilot | None:
    upper, lower = row.upper.mean, row.lower.mean
    if upper is None or lower is None or row.upper.never or row.lower.never:
        return None
    return Pilot(
        clients_per_round=row.clients_per_round,
        local_steps=row.local_steps,
        upper_loss=row.upper.loss,
        lower_loss=row.lower.loss,
        rounds_to_upper=upper,
        rounds_to_lower=lower,
    )
