"""State: what a page sends, checked; every problem of it is said at once.

It is one flat object, so that a link can hold it. What is left out has its usual value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, draw_fleet, with_stragglers
from fedplan.core.objective import Objective, Prices
from fedplan.core.plan import Method
from fedplan.core.problem import Problem
from fedplan.errors import Collector, InputError, InputProblem
from fedplan.planning.steps import steps_range
from fedplan.planning.turns import check_group_sizes
from fedplan.planning.uniform_plan import method_problems
from fedplan.studies.keys import LIMIT_KEYS, PRICE_KEYS
from fedplan.web.basis import Convergence, Devices, Shelf
from fedplan.web.knowledge import (
    ASSUMED,
    COEFFICIENTS,
    read_convergence,
    read_estimate,
    read_reference,
)
from fedplan.web.reader import CHOICES, Reader

DRAWN_FILE = "drawn-fleet.csv"  # what a command reads a drawn fleet from
MAX_DRAWN = 200_000  # devices; more are read from a file with counts
LIMITS = (*LIMIT_KEYS, "max_rounds")
WHOLE = (*(name for name in LIMITS if name not in ("deadline_s", "energy_budget_j")),)
CURRENT = ("current_clients_per_round", "current_local_steps")
# A drawn fleet: each key with its usual value (the page's own, a test sees to it) and its range.
DRAWN = {
    "num_clients": (100, 2, MAX_DRAWN),
    "step_time_s": (0.1, 1e-3, 10.0),
    "comm_time_s": (2.0, 1e-2, 100.0),
    "step_energy_j": (1e-3, 1e-4, 10.0),
    "comm_energy_j": (2e-2, 1e-3, 100.0),
    "spread": (0.33, 0.0, 1.5),
    "straggler_share": (0.0, 0.0, 0.5),
    "straggler_slowdown": (5.0, 1.0, 20.0),
    "fleet_seed": (1, 0, 2**31 - 1),
}
_WHOLE_DRAWN = ("num_clients", "fleet_seed")
KEYS = frozenset(
    {"fleet", "pilots", "energy_weight", "target_gap", *CHOICES, *DRAWN, *COEFFICIENTS}
    | {*ASSUMED, *PRICE_KEYS, *LIMITS, *CURRENT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A state, understood: what to plan for, and how to ask the same on the command line."""

    devices: Devices
    convergence: Convergence
    estimate: Estimate | None
    participation: str
    energy_weight: float | None
    prices: Prices | None
    constraints: Constraints
    method: Method | None  # of uniform sampling with a bound; the rest have one way to be planned
    current: tuple[int, int] | None
    reference: Bound | Estimate  # what a bound of one's own is moved away from

    @property
    def fleet(self) -> Fleet:
        """The devices."""
        return self.devices.fleet

    @property
    def knowledge(self) -> Bound | Estimate | Saturation:
        """What to plan with."""
        known = self.estimate or self.convergence.bound or self.convergence.saturation
        if known is None:
            raise AssertionError("without an estimate or a bound, something is assumed")
        return known

    @property
    def problem(self) -> Problem:
        """What the plan is made for."""
        return Problem(fleet=self.fleet, objective=self.objective, limits=self.constraints)

    @property
    def objective(self) -> Objective:
        """What a second, a joule and a client's round are worth."""
        if self.prices is not None:
            return self.prices.objective()
        return Objective.weighted(self.energy_weight or 0.0)


def parse_json(body: bytes) -> dict[str, Any]:
    """A JSON object of finite numbers; anything else is refused."""

    def refuse(word: str) -> NoReturn:
        raise InputError(f"a number must be finite, but got {word}.")

    try:
        value = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the body must be JSON, but: {error}.") from None
    if not isinstance(value, dict):
        raise InputError("the body must be a JSON object, such as {}.")
    return value


def read_state(given: Mapping[str, Any], shelf: Shelf) -> Question:
    """What this state asks; InputError carries everything that is wrong with it."""
    collector = Collector()
    for name in sorted(given.keys() - KEYS)[:20]:
        collector.add(InputProblem(column=name[:40], message="is not known. Remove it."))
    reader = Reader(given, collector)
    devices = collector.attempt(partial(_devices, reader, shelf))
    constraints = _constraints(reader, devices, collector)
    weight, prices = _objective(reader, collector)
    convergence = collector.attempt(partial(read_convergence, reader, shelf))
    is_measured = convergence is None or convergence.is_measured
    law = reader.choice("participation", "uniform" if is_measured else "turns")
    method = reader.choice("method", None)
    if law != "uniform" or not is_measured:
        method = None
    estimate = None
    if devices is not None and convergence is not None and convergence.pilots:
        estimate = collector.attempt(
            partial(read_estimate, convergence, len(devices.fleet), method)
        )
    if constraints is not None:
        for problem in method_problems(
            method, constraints, robust_possible=estimate is not None, regret_quantile=1.0
        ):
            collector.add(problem)
        if convergence is not None and (bound := convergence.bound) is not None:
            collector.attempt(lambda: steps_range(constraints, bound))
    current = _current(reader, devices, collector)
    collector.finish()
    if devices is None or convergence is None or constraints is None:
        raise AssertionError("a missing part is always a noted problem")
    if law == "uniform" and is_measured:
        method = method or ("robust" if estimate is not None else "exact")
    question = Question(
        devices=devices,
        convergence=convergence,
        estimate=estimate,
        energy_weight=weight,
        prices=prices,
        constraints=constraints,
        participation=law,
        method=method,
        current=current,
        reference=estimate or read_reference(reader, shelf, len(devices.fleet)),
    )
    if law == "turns":
        check_group_sizes(question.problem)
    return question


def _devices(reader: Reader, shelf: Shelf) -> Devices:
    which = reader.text("fleet", "given")
    if which == "given":
        return shelf.basis.devices
    if which != "drawn":
        return shelf.find_fleet(which)
    law = reader.choice("law", "normal")
    drawn: dict[str, Any] = {
        name: reader.within(name, usual, low, high, whole=name in _WHOLE_DRAWN)
        if name in (*_WHOLE_DRAWN, "spread", "straggler_share", "straggler_slowdown")
        else reader.number(name, usual)
        for name, (usual, low, high) in DRAWN.items()
    }
    return shelf.drawn((law, *drawn.values()), partial(_draw, law, **drawn))


def _draw(
    law: Any,
    *,
    num_clients: int,
    spread: float,
    straggler_share: float,
    straggler_slowdown: float,
    fleet_seed: int,
    **means: float,
) -> Devices:
    quantities = {name: (mean, spread * mean) for name, mean in means.items()}
    fleet = draw_fleet(
        num_clients,
        step_time_s=quantities["step_time_s"],
        comm_time_s=quantities["comm_time_s"],
        step_energy_j=quantities["step_energy_j"],
        comm_energy_j=quantities["comm_energy_j"],
        law=law,
        seed=fleet_seed,
    )
    words = ", ".join(f"{name}={spread!r}" for name, spread in quantities.items())
    python = f"draw_fleet({num_clients}, {words}, law={law!r}, seed={fleet_seed})"
    if straggler_share:
        fleet = with_stragglers(fleet, straggler_share, straggler_slowdown)
        python = f"with_stragglers({python}, {straggler_share!r}, {straggler_slowdown!r})"
    return Devices(name="a drawn fleet", fleet=fleet, flags=("--fleet", DRAWN_FILE), python=python)


def _constraints(
    reader: Reader, devices: Devices | None, collector: Collector
) -> Constraints | None:
    limits = {name: reader.number(name, whole=name in WHOLE) for name in LIMITS}
    made = collector.attempt(lambda: Constraints(**limits))
    if made is not None and devices is not None:
        collector.attempt(lambda: made.clients_range(len(devices.fleet)))
    return made


def _objective(reader: Reader, collector: Collector) -> tuple[float | None, Prices | None]:
    if reader.choice("objective", "weight") == "prices":
        prices = {name: reader.number(key, 0.0) for key, name in PRICE_KEYS.items()}
        return None, collector.attempt(lambda: Prices(**prices))
    weight = reader.number("energy_weight", 0.0)
    collector.attempt(lambda: Objective.weighted(weight))
    return weight, None


def _current(
    reader: Reader, devices: Devices | None, collector: Collector
) -> tuple[int, int] | None:
    k, e = (reader.number(key, whole=True) for key in CURRENT)
    if k is None or e is None:
        return None
    check: Callable[[], None] = partial(_check_current, k, e, devices)
    collector.attempt(check)
    return k, e


def _check_current(k: int, e: int, devices: Devices | None) -> None:
    problems = []
    if k < 1 or (devices is not None and k > len(devices.fleet)):
        most = "the number of devices" if devices is None else f"{len(devices.fleet):,}"
        problems.append(
            InputProblem(column=CURRENT[0], message=f"must be from 1 to {most}, not {k:,}.")
        )
    if not 1 <= e <= 10**9:
        problems.append(
            InputProblem(column=CURRENT[1], message=f"must be from 1 to 10^9, not {e:,}.")
        )
    if problems:
        raise InputError(problems)
