"""A plan from a descent in words: how sure its limits are, what holds it, what could be kept."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fedplan.core.constraints import LIMIT_SLACK, Constraints
from fedplan.planning.explain import plain

_LIMITS = {
    "deadline_s": ("deadline", "s", "shortest"),
    "energy_budget_j": ("energy budget", "J", "smallest"),
    "max_rounds": ("limit", "rounds", "lowest"),
}
_TOLD = " that the pilots tell of"
_DIGITS = 3  # of what could be kept


def limit_words(name: str, limit: float) -> str:
    """A limit on a total, in words.

    >>> limit_words("deadline_s", 3600.0)
    'the deadline of 3,600 s'
    """
    what, unit, _ = _LIMITS[name]
    return f"the {what} of {plain(limit)} {unit}"


def kept_words(limits: Constraints, shares: Mapping[str, float]) -> str:
    """With what confidence the plan keeps each limit on a total.

    >>> kept_words(Constraints(deadline_s=3600.0), {"deadline_s": 0.97})
    ' It keeps the deadline of 3,600 s in 97% of what they leave possible.'
    """
    kept = [
        f"{limit_words(name, getattr(limits, name))} in {share:.0%}"
        for name, share in shares.items()
    ]
    return f" It keeps {' and '.join(kept)} of what they leave possible." if kept else ""


def held_words(
    limits: Constraints,
    setting: tuple[int, int],
    ranges: tuple[tuple[int, int], tuple[int, int]],
    num_clients: int,
) -> str:
    """Which ends of the ranges of K and E, given or of the pilots' reach, the choice sits on.

    >>> held_words(Constraints(max_local_steps=20), (5, 20), ((2, 10), (4, 20)), 10)
    ' Held by the maximum of local steps: beyond it another choice may be better.'
    """
    names = []
    for chosen, (low, high), what, natural in zip(
        setting, ranges, ("clients_per_round", "local_steps"), (num_clients, None), strict=True
    ):
        if low == high:
            continue  # there was no choice
        words = what.replace("_", " ")
        if chosen == low > 1:
            given = getattr(limits, f"min_{what}") is not None
            names.append(f"the minimum of {words}" if given else f"the fewest {words}{_TOLD}")
        if chosen == high != natural:
            given = getattr(limits, f"max_{what}") is not None
            names.append(f"the maximum of {words}" if given else f"the most {words}{_TOLD}")
    held = " and ".join(names)
    return f" Held by {held}: beyond it another choice may be better." if names else ""


def infeasible_words(
    limits: Constraints, attainable: Mapping[str, tuple[float, int, int]], confidence: float
) -> str:
    """Which limits no setting keeps, and the least of each that one does.

    attainable : of each limit on a total, the least that a (K, E) keeps, whatever the others say.
    """
    together = all(
        least <= getattr(limits, name) * (1 + LIMIT_SLACK)
        for name, (least, _, _) in attainable.items()
    )
    given = " and ".join(limit_words(name, getattr(limits, name)) for name in attainable)
    sentences = [
        f"No setting keeps {given}{' together' if together else ''} in {confidence:.0%} of what "
        "the pilots leave possible."
    ]
    for name, (least, clients, steps) in attainable.items():
        if math.isinf(least):
            sentences.append("None arrives as surely as that, whatever the limit.")
            break
        what, unit, word = _LIMITS[name]
        alone = " by itself" if len(attainable) > 1 else ""
        sentences.append(
            f"After these pilots the {word} {what} that can be counted on{alone} is "
            f"{plain(_rounded_up(least))} {unit}, with K={clients:,}, E={steps:,}."
        )
    remedy = "Raise the limit, raise the target loss, or widen the ranges of K and E."
    return " ".join([*sentences, remedy])


def _rounded_up(value: float) -> float:
    """The next number with few digits, which a limit may be set to.

    >>> _rounded_up(1234.5), _rounded_up(0.1), _rounded_up(math.inf)
    (1240.0, 0.1, inf)
    """
    if not 0 < value < math.inf:
        return value
    places = _DIGITS - 1 - math.floor(math.log10(value))
    shown = round(value, places)
    return shown if shown >= value else round(shown + 10.0**-places, places)
