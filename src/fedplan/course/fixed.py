"""Fixed: K clients at random and E local steps from the first round to the last."""

from __future__ import annotations

from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.course.published import USUAL_SHARE, USUAL_STEPS
from fedplan.participation import uniform


def fixed(
    *, problem: Problem, clients_per_round: int | None = None, local_steps: int | None = None
) -> Setting:
    """A setting, which is a course that never changes; a tenth of the clients and E = 20 without.

    >>> from fedplan.core.fleet import Fleet
    >>> problem = Problem(fleet=Fleet(step_time_s=0.1, comm_time_s=2.0, count=50))
    >>> fixed(problem=problem).pair
    (5, 20)
    """
    usual = max(1, round(USUAL_SHARE * len(problem.fleet)))
    clients = usual if clients_per_round is None else clients_per_round
    return uniform(clients, USUAL_STEPS if local_steps is None else local_steps)
