"""Knowledge: what a state says of convergence: a bound, pilots to fit one to, or nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, estimate_bound
from fedplan.convergence.pilots import Pilot
from fedplan.convergence.saturation import RANGE, ROUNDS
from fedplan.core.plan import Method
from fedplan.errors import InputError
from fedplan.planning.example import EXAMPLE_BOUND
from fedplan.web.basis import Convergence, Shelf, unmeasured
from fedplan.web.reader import Reader

COEFFICIENTS = ("a0", "b0", "c0")
# What is assumed where nothing was measured: each key with its usual value.
ASSUMED = {"saturation_low": RANGE[0], "saturation_high": RANGE[1], "rounds": 2 * ROUNDS}
_MOST_ASSUMED = 1e6  # rounds, or local steps


def read_convergence(reader: Reader, shelf: Shelf) -> Convergence:
    """What rounds are to be foretold from."""
    which = reader.choice("bound", "given")
    if which == "own":
        return _own_bound(reader)
    given = None if which == "none" else _given(reader, shelf)
    if given is not None and given.is_measured:
        return given
    assumed = [
        reader.within(name, usual, 1.0, _MOST_ASSUMED, whole=False)
        for name, usual in ASSUMED.items()
    ]
    return unmeasured(*assumed)


def read_estimate(convergence: Convergence, num_clients: int, method: Method | None) -> Estimate:
    """The bound that is fitted to the pilots."""
    # The paper's method is the whole of Algorithm 2, its averaging over pairs included.
    how: Literal["pairwise", "joint"] = "pairwise" if method == "paper" else "joint"
    estimate = _estimated(convergence.pilots, num_clients, how)
    if not estimate.success:
        raise InputError(f"there is no bound to plan with. {estimate.message}")
    return estimate


def read_reference(reader: Reader, shelf: Shelf, num_clients: int) -> Bound | Estimate:
    """What a bound of one's own is moved away from: what was given, or that of the example."""
    try:
        given = _given(reader, shelf)
        if given.pilots:
            return read_estimate(given, num_clients, None)
    except InputError:  # it cannot be had any more
        return EXAMPLE_BOUND
    return given.bound or EXAMPLE_BOUND


def _given(reader: Reader, shelf: Shelf) -> Convergence:
    which = reader.text("pilots", "given")
    return shelf.basis.convergence if which == "given" else shelf.find_pilots(which)


def _own_bound(reader: Reader) -> Convergence:
    coefficients = {name: reader.number(name) for name in COEFFICIENTS}
    gap = reader.number("target_gap", 1.0)
    if missing := [name for name, value in coefficients.items() if value is None]:
        raise InputError(f"a bound of one's own needs {', '.join(missing)}. Give a0, b0 and c0.")
    if not gap > 0:
        raise InputError(f"`target_gap > 0` must hold, but got target_gap={gap}.")
    bound = Bound(**coefficients)
    words = ",".join(f"{name}={getattr(bound, name)!r}" for name in COEFFICIENTS)
    return Convergence(
        name="your own",
        bound=bound,
        target_gap=gap,
        is_own=True,
        flags=("--bound", words, "--target-gap", repr(gap)),
        python=repr(bound),
    )


@lru_cache(maxsize=64)  # a slider seldom moves what pilots say
def _estimated(
    pilots: tuple[Pilot, ...], num_clients: int, how: Literal["pairwise", "joint"]
) -> Estimate:
    return estimate_bound(pilots, num_clients, method=how)
