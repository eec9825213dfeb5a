"""State: what a page sends, checked; all problems are reported at once.

It is one flat object, so that a link can hold it. What is left out has its usual value.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from fedplan.convergence.bound import Bound, target_gap_problems
from fedplan.convergence.estimation import Estimate
from fedplan.convergence.saturation import RANGE, ROUNDS
from fedplan.core.constraints import MAX_STEPS
from fedplan.core.fleet import QUANTITIES, draw_fleet, with_stragglers
from fedplan.core.plan import METHODS
from fedplan.csvfile import MOST_PROBLEMS
from fedplan.errors import Collector, InputError, wrong_value
from fedplan.participation import LAWS
from fedplan.planning.example import EXAMPLE_BOUND
from fedplan.prices_and_limits import LIMITS, PRICES
from fedplan.web.question import COEFFICIENTS, Convergence, Devices, Question, make_question
from fedplan.web.shelf import MOST_ROWS, Shelf

DRAWN_FILE = "drawn-fleet.csv"  # what a command reads a drawn fleet from
_ASSUMED = {"saturation_low": RANGE[0], "saturation_high": RANGE[1], "rounds": 2 * ROUNDS}


def _one_of(words: tuple[str, ...], usual: str | None = None) -> Any:
    kind: Any = Literal.__getitem__(words)
    return kind | None, usual


def _number(kind: Any, usual: float | None = None, low: Any = None, high: Any = None) -> Any:
    return (kind if usual is not None else kind | None), Field(usual, ge=low, le=high)


_ID = (str, Field("given", max_length=64))
# Keys of a drawn fleet; the usual values are those of the page.
_DRAWN = {
    "num_clients": _number(int, 100, 2, MOST_ROWS),  # more are read from a file with counts
    "step_time_s": _number(float, 0.1),
    "comm_time_s": _number(float, 2.0),
    "step_energy_j": _number(float, 1e-3),
    "comm_energy_j": _number(float, 2e-2),
    "spread": _number(float, 0.33, 0.0, 1.5),
    "straggler_share": _number(float, 0.0, 0.0, 0.5),
    "straggler_slowdown": _number(float, 5.0, 1.0, 20.0),
    "fleet_seed": _number(int, 1, 0, 2**31 - 1),
    "law": _one_of(("normal", "lognormal"), "normal"),
}
# Every key of a state: its kind, its usual value and its range.
KEYS: dict[str, Any] = {
    "fleet": _ID,
    "pilots": _ID,
    "bound": _one_of(("given", "own", "none"), "given"),
    "objective": _one_of(("weight", "prices"), "weight"),
    "method": _one_of(METHODS),
    "participation": _one_of(tuple(LAWS)),
    "energy_weight": _number(float, 0.0),
    "target_gap": _number(float, 1.0),
    "current_clients_per_round": _number(int, low=1),
    **_DRAWN,
    **{name: _number(float) for name in COEFFICIENTS},
    **{name: _number(float, usual, 1.0, 1e6) for name, usual in _ASSUMED.items()},
    **{name: _number(float, 0.0) for name in PRICES},
    **{name: _number(limit.kind) for name, limit in LIMITS.items()},
    "current_local_steps": _number(int, low=1, high=MAX_STEPS),
}
_State: type[BaseModel] = create_model(
    "_State", __config__=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False), **KEYS
)


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
    state = _values(given, collector)
    devices = collector.attempt(partial(_devices, state, shelf))
    convergence = collector.attempt(partial(_convergence, state, shelf))
    current = _current(state, devices, collector)
    reference = _reference(state, shelf, devices, convergence)
    return make_question(
        state, collector, devices, convergence, current=current, reference=reference
    )


def _values(given: Mapping[str, Any], collector: Collector) -> dict[str, Any]:
    """The value of every key; a wrong one is noted, and has its usual value."""
    said = {name: value for name, value in given.items() if value not in (None, "")}
    try:
        return _State.model_validate(said).model_dump()
    except ValidationError as error:
        found = {str(one["loc"][0]): one for one in error.errors(include_url=False)}
    for name, details in [*found.items()][:MOST_PROBLEMS]:
        is_known = details["type"] != "extra_forbidden"
        words = wrong_value(name, details) if is_known else f"{name[:40]} is not known. Remove it."
        collector.add(words)
    sound = {name: value for name, value in said.items() if name not in found}
    return _State.model_validate(sound).model_dump()


def _devices(state: Mapping[str, Any], shelf: Shelf) -> Devices:
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


def _convergence(state: Mapping[str, Any], shelf: Shelf) -> Convergence:
    if state["bound"] == "own":
        return _own_bound(state)
    if state["bound"] != "none":
        given = shelf.find_pilots(state["pilots"])
        if given.is_measured:
            return given
    return Convergence.unmeasured(*(state[name] for name in _ASSUMED))


def _own_bound(state: Mapping[str, Any]) -> Convergence:
    coefficients = {name: state[name] for name in COEFFICIENTS}
    if missing := [name for name, value in coefficients.items() if value is None]:
        raise InputError(f"a bound of your own needs {', '.join(missing)}. Give a0, b0 and c0.")
    if problems := target_gap_problems(state["target_gap"]):
        raise InputError(problems)
    return Convergence(name="your own", known=Bound(**coefficients), target_gap=state["target_gap"])


def _current(
    state: Mapping[str, Any], devices: Devices | None, collector: Collector
) -> tuple[int, int] | None:
    clients, steps = state["current_clients_per_round"], state["current_local_steps"]
    if clients is None or steps is None:
        return None
    if devices is not None and clients > (size := len(devices.fleet)):
        collector.add(f"current_clients_per_round must be from 1 to {size:,}, not {clients:,}.")
    return clients, steps


def _reference(
    state: Mapping[str, Any], shelf: Shelf, devices: Devices | None, convergence: Convergence | None
) -> Bound | Estimate:
    """The bound that the user's own is compared with: the given one, or the example's."""
    if devices is None or convergence is None:
        return EXAMPLE_BOUND
    try:
        given = convergence if convergence.num_pilots else shelf.find_pilots(state["pilots"])
        method = state["method"] if convergence.num_pilots else None
        known = given.fitted(len(devices.fleet), method)
    except InputError:  # it cannot be had any more
        return EXAMPLE_BOUND
    return known if isinstance(known, Bound | Estimate) else EXAMPLE_BOUND
