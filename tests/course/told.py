"""Records and problems made by hand, to tell courses of."""

from __future__ import annotations

import numpy as np

from fedplan.core.fleet import Fleet
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord
from fedplan.core.signal import ClientReports

REPORTED = ("update_norms", "losses", "losses_after", "gradient_changes", "gradient_spreads")


def a_problem(*, samples, step_time_s=1.0, comm_time_s=0.0, rate=1.0, energy_weight=0.0, **fleet):
    return Problem(
        fleet=Fleet(
            step_time_s=step_time_s,
            comm_time_s=comm_time_s,
            samples=np.asarray(samples, dtype=float),
            **fleet,
        ),
        objective=Objective.weighted(energy_weight),
        learning_rate=rate if isinstance(rate, LearningRate) else LearningRate(initial=rate),
    )


def a_round(number, *, cohort=(), loss=None, accuracy=None, **reported):
    """A round; numbers that are not given are zeros."""
    reports = None
    if reported:
        zeros = dict.fromkeys(REPORTED, [0.0] * len(cohort))
        reports = ClientReports(
            **{name: np.array(values, dtype=float) for name, values in (zeros | reported).items()}
        )
    return RoundRecord(
        round=number,
        loss=loss,
        accuracy=accuracy,
        cohort=tuple(cohort),
        seconds=0.0,
        joules=0.0,
        reports=reports,
    )
