"""The study of an app on a live federation: what was asked of it, and its outcome.

What was asked is stored as a step of the study; everything else follows from its rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fedplan.core.constraints import Constraints
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord, Stop
from fedplan.core.setting import Setting
from fedplan.participation import Turns
from fedplan.studies.devices import Devices
from fedplan.studies.outcome import Measured, Outcome, Status, forecast_of
from fedplan.studies.verdict import arrived, course_words
from fedplan.studies.workflow import alternatives_of, groups_of

ASKED = "asked"  # the step
# Ends of runs that did not arrive; any other end counts as "not reached".
_ENDS: tuple[Status, ...] = ("diverged", "hopeless", "unavailable", "unfinished")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an app asked for when it was last started."""

    name: str
    stop: Stop
    objective: Objective
    constraints: Constraints

    @classmethod
    def from_step(cls, name: str, step: Mapping[str, Any]) -> Asked:
        """Read it from a stored step."""
        return cls(
            name=name,
            stop=Stop(**step["stop"]),
            objective=Objective(**step["objective"]),
            constraints=Constraints(**step["limits"]),
        )


def asked_step(problem: Problem, stop: Stop) -> dict[str, Any]:
    """What is asked, as the store keeps it: what is not limited is left out."""
    limits, ends = asdict(problem.limits), asdict(stop)
    return {
        "stop": {name: ends[name] for name in ("target_loss", "max_rounds", "patience")},
        "objective": asdict(problem.objective),
        "limits": {name: value for name, value in limits.items() if value is not None},
    }


def app_outcome(asked: Asked, runs: Sequence[RunRecord], devices: Devices) -> Outcome:
    """The outcome of the trainings with the same course as the last of them."""
    last = runs[-1]
    own = [run for run in runs if run.course == last.course]
    problem = Problem(
        fleet=devices.fleet, objective=asked.objective, limits=asked.constraints,
        target_loss=asked.stop.target_loss,
    )  # fmt: skip
    measured = Measured.of(own, asked.objective)
    began = _first_groups(last, len(problem.fleet))
    outcome = Outcome(
        status=next((end for end in _ENDS if end == last.status), "not reached"),
        course=last.course or "fixed",
        message=f"{course_words(last)}. {last.message}".rstrip(),
        setting=began,
        groups=groups_of(began, problem),
        measured=measured,
        forecast=forecast_of(own, problem, asked.stop.max_rounds),
    )
    if not measured.reached:
        return outcome
    status, words = arrived(asked, measured, measured.bill, outcome.forecast)
    return replace(
        outcome, status=status, message=words, alternatives=alternatives_of(own, problem)
    )


def _first_groups(run: RunRecord, clients: int) -> Setting:
    """The first setting by which all of these clients took turns, or else the last setting."""
    settings = [one.setting for one in run.rounds if one.setting is not None] or [run.setting]
    for setting in settings:
        law = setting.participation
        if isinstance(law, Turns) and len(law.groups) > 1 and sum(map(len, law.groups)) == clients:
            return setting
    return settings[-1]
