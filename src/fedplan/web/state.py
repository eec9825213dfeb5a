"""State: what a page sends, checked; every problem of it is said at once.

It is one flat object, so that a link can hold it. What is left out has its usual value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from fedplan.convergence.bound import Bound, target_gap_problems
from fedplan.convergence.estimation import Estimate
from fedplan.convergence.saturation import RANGE, ROUNDS, Saturation
from fedplan.core.constraints import MAX_STEPS, Constraints
from fedplan.core.fleet import QUANTITIES, draw_fleet, with_stragglers
from fedplan.core.objective import Objective, Prices
from fedplan.core.plan import METHODS, Method
from fedplan.core.problem import Problem
from fedplan.errors import Collector, InputError, InputProblem
from fedplan.participation import LAWS
from fedplan.planning.example import EXAMPLE_BOUND
from fedplan.prices_and_limits import LIMITS, PRICES
from fedplan.web.question import Convergence, Devices, Knowledge, Question
from fedplan.web.shelf import Shelf

DRAWN_FILE = "drawn-fleet.csv"  # what a command reads a drawn fleet from
COEFFICIENTS = ("a0", "b0", "c0")
_ASSUMED = {"saturation_low": RANGE[0], "saturation_high": RANGE[1], "rounds": 2 * ROUNDS}


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of a state: its usual value and its range, or the words that it may have."""

    usual: Any = None
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    words: tuple[str, ...] = ()


_COUNT = _Key(low=1, whole=True)
_STEPS = _Key(low=1, high=MAX_STEPS, whole=True)
# Of a drawn fleet; usual values are the page's own.
_DRAWN = {
    "num_clients": _Key(100, 2, 200_000, whole=True),  # more are read from a file with counts
    "step_time_s": _Key(0.1),
    "comm_time_s": _Key(2.0),
    "step_energy_j": _Key(1e-3),
    "comm_energy_j": _Key(2e-2),
    "spread": _Key(0.33, 0.0, 1.5),
    "straggler_share": _Key(0.0, 0.0, 0.5),
    "straggler_slowdown": _Key(5.0, 1.0, 20.0),
    "fleet_seed": _Key(1, 0, 2**31 - 1, whole=True),
    "law": _Key("normal", words=("normal", "lognormal")),
}
KEYS = {
    "fleet": _Key("given"),
    "pilots": _Key("given"),
    "bound": _Key("given", words=("given", "own", "none")),
    "objective": _Key("weight", words=("weight", "prices")),
    "method": _Key(words=METHODS),
    "participation": _Key(words=tuple(LAWS)),
    "energy_weight": _Key(0.0),
    "target_gap": _Key(1.0),
    "current_clients_per_round": _COUNT,
    **_DRAWN,
    **dict.fromkeys(COEFFICIENTS, _Key()),
    **{name: _Key(usual, 1.0, 1e6) for name, usual in _ASSUMED.items()},
    **dict.fromkeys(PRICES, _Key(0.0)),
    **{name: _COUNT if limit.kind is int else _Key() for name, limit in LIMITS.items()},
    **dict.fromkeys(("min_local_steps", "max_local_steps", "current_local_steps"), _STEPS),
}


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
    """What this state asks; InputError carries everything that is wrong with its parts.

    What does not go together is said by whoever plans.
    """
    collector = Collector()
    for name in sorted(given.keys() - KEYS.keys())[:20]:
        collector.add(InputProblem(column=name[:40], message="is not known. Remove it."))
    state = _State(given, collector)
    devices = collector.attempt(partial(_devices, state, shelf))
    size = None if devices is None else len(devices.fleet)
    limits = collector.attempt(partial(_limits, state, size))
    counts = collector.attempt(partial(_objective, state))
    convergence = collector.attempt(partial(_convergence, state, shelf))
    is_measured = convergence is None or convergence.is_measured
    law = state["participation"] or ("uniform" if is_measured else "turns")
    has_method = law == "uniform" and is_measured
    method: Method | None = state["method"] if has_method else None
    knowledge = None
    if size is not None and convergence is not None:
        knowledge = collector.attempt(partial(convergence.fitted, size, method))
    current = _current(state, size, collector)
    collector.finish()
    if not (devices and limits and counts and convergence and knowledge):
        raise AssertionError("a missing part is always a noted problem")
    if has_method:
        method = method or ("robust" if isinstance(knowledge, Estimate) else "exact")
    prices, objective = counts
    return Question(
        devices=devices,
        convergence=convergence,
        problem=Problem(fleet=devices.fleet, objective=objective, limits=limits),
        knowledge=knowledge,
        participation=law,
        prices=prices,
        method=method,
        current=current,
        reference=_reference(state, shelf, knowledge, len(devices.fleet)),
    )


class _State(dict[str, Any]):
    """Values of a state by key, each checked once it is asked for.

    What is wrong with one is noted, and it has its usual value.
    """

    def __init__(self, given: Mapping[str, Any], collector: Collector) -> None:
        super().__init__()
        self._given, self._collector = given, collector

    def __missing__(self, name: str) -> Any:
        key, value = KEYS[name], self._given.get(name)
        if value is not None and (fault := _fault(key, value)):
            self._collector.add(InputProblem(column=name, message=fault))
            value = None
        if isinstance(value, int | float):
            value = int(value) if key.whole else float(value)
        self[name] = key.usual if value in (None, "") else value
        return self[name]


def _fault(key: _Key, value: Any) -> str:
    """What is wrong with a value, if anything is."""
    if key.words:
        return "" if value in key.words else f"must be one of {', '.join(key.words)}."
    if isinstance(key.usual, str):
        is_short = isinstance(value, str) and len(value) <= 64
        return "" if is_short else "must be a short text."
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number."
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        return "must be a finite number."
    if key.whole and number != int(number):
        return "must be a whole number."
    if not key.low <= number <= key.high:
        ends = f"from {key.low:,g} to {key.high:,g}" if key.high < math.inf else "at least 1"
        return f"must be {ends}, but got {number:,g}."
    return ""


def _devices(state: _State, shelf: Shelf) -> Devices:
    if state["fleet"] != "drawn":
        return shelf.find_fleet(state["fleet"])
    drawn = {name: state[name] for name in _DRAWN}
    return shelf.drawn(tuple(drawn.values()), partial(_draw, drawn))


def _draw(drawn: Mapping[str, Any]) -> Devices:
    size, law, seed = drawn["num_clients"], drawn["law"], drawn["fleet_seed"]
    spreads: dict[str, Any] = {
        name: (drawn[name], drawn["spread"] * drawn[name]) for name in QUANTITIES
    }
    fleet = draw_fleet(size, **spreads, law=law, seed=seed)
    words = ", ".join(f"{name}={spread!r}" for name, spread in spreads.items())
    python = f"draw_fleet({size}, {words}, law={law!r}, seed={seed})"
    if share := drawn["straggler_share"]:
        slowdown = drawn["straggler_slowdown"]
        fleet = with_stragglers(fleet, share, slowdown)
        python = f"with_stragglers({python}, {share!r}, {slowdown!r})"
    return Devices(name="a drawn fleet", fleet=fleet, file=DRAWN_FILE, python=python)


def _limits(state: _State, size: int | None) -> Constraints:
    limits = Constraints(**{name: state[name] for name in Constraints.__slots__})
    if size is not None:
        limits.clients_range(size)
    return limits


def _objective(state: _State) -> tuple[Prices | None, Objective]:
    if state["objective"] != "prices":
        return None, Objective.weighted(state["energy_weight"])
    prices = Prices(**{price.field: state[name] for name, price in PRICES.items()})
    return prices, prices.objective()


def _convergence(state: _State, shelf: Shelf) -> Convergence:
    if state["bound"] == "own":
        return _own_bound(state)
    if state["bound"] != "none":
        given = shelf.find_pilots(state["pilots"])
        if given.is_measured:
            return given
    return Convergence.unmeasured(*(state[name] for name in _ASSUMED))


def _own_bound(state: _State) -> Convergence:
    coefficients = {name: state[name] for name in COEFFICIENTS}
    if missing := [name for name, value in coefficients.items() if value is None]:
        raise InputError(f"a bound of one's own needs {', '.join(missing)}. Give a0, b0 and c0.")
    if problems := target_gap_problems(state["target_gap"]):
        raise InputError(problems)
    return Convergence(name="your own", known=Bound(**coefficients), target_gap=state["target_gap"])


def _current(state: _State, size: int | None, collector: Collector) -> tuple[int, int] | None:
    clients, steps = state["current_clients_per_round"], state["current_local_steps"]
    if clients is None or steps is None:
        return None
    if size is not None and clients > size:
        message = f"must be from 1 to {size:,}, not {clients:,}."
        collector.add(InputProblem(column="current_clients_per_round", message=message))
    return clients, steps


def _reference(state: _State, shelf: Shelf, knowledge: Knowledge, size: int) -> Bound | Estimate:
    """What a bound of one's own is moved away from: what was given, or that of the example."""
    if isinstance(knowledge, Estimate):
        return knowledge
    try:
        given = shelf.find_pilots(state["pilots"]).fitted(size)
    except InputError:  # it cannot be had any more
        return EXAMPLE_BOUND
    return EXAMPLE_BOUND if isinstance(given, Saturation) else given
