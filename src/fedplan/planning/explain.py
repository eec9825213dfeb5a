"""Explanations: a plan in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from fedplan.convergence.bound import Bound
from fedplan.convergence.pilots import Piloted
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import LIMIT_SLACK, Constraints
from fedplan.core.plan import Alternative, GroupCost
from fedplan.core.prediction import Prediction
from fedplan.planning.robust import RobustOptimum

_WORDS = {
    "deadline_s": ("the deadline", "fastest {1} is {2} s"),
    "energy_budget_j": ("the energy budget", "least energy {1} is {2} J"),
    "max_rounds": ("the limit on rounds", "fewest {1} is {0.rounds:,} rounds"),
    "min_clients_per_round": ("the minimum of clients per round", ""),
    "max_clients_per_round": ("the maximum of clients per round", ""),
    "min_local_steps": ("the minimum of local steps", ""),
    "max_local_steps": ("the maximum of local steps", ""),
}
_REACH = {
    "min_clients_per_round": "the limit of half the fewest clients per round piloted",
    "max_local_steps": "the limit of twice the most local steps piloted",
}
_GUESS = 0.5  # the regret from which on a plan is one
_UNSETTLED = (
    "The pilots do not settle this, and the plan is a guess: add a pilot where `fedplan estimate` "
    "says."
)


def plain(value: float) -> str:
    """A number without an exponent: four digits, or all before the point.

    >>> plain(0.123456), plain(745.0), plain(36000.0)
    ('0.1235', '745', '36,000')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def is_guess(regret: float | None) -> bool:
    """Whether a plan of this regret is no more than a guess."""
    return regret is not None and regret > _GUESS


def how_sure(method: str) -> str:
    """What the least that a method finds attainable is; the likeliest bound may promise more."""
    return "that can be counted on" if method == "robust" else "possible"


def explain_plan(
    method: str,
    prediction: Prediction,
    gap: float | None,
    num_clients: int,
    holds: Sequence[str],
    robust: RobustOptimum | None,
    alternatives: Sequence[tuple[str, float, bool]],
    costs_nothing: bool,
    piloted: Piloted | None,
) -> str:
    """One paragraph: the choice, why it can be trusted, and what others would pay."""
    sentences = [
        _UNSETTLED if robust is not None and is_guess(robust.regret) else "",
        f"Use {prediction.clients_per_round:,} of {num_clients:,} clients per round and "
        f"{prediction.local_steps:,} local step{'s' if prediction.local_steps > 1 else ''}.",
        _trust(method, gap, robust),
    ]
    if costs_nothing:
        sentences.append("Every setting costs nothing by these weights, so the fastest is taken.")
    if holds:
        names = " and ".join(holds)
        if robust is None:
            sentences.append(f"Without {names} it would be cheaper.")
        else:
            sentences.append(f"Held by {names}: beyond, another choice may be better.")
    if piloted is not None:
        sentences.append(_extrapolation(prediction, piloted))
    sentences += [
        f"{name[0].upper()}{name[1:]} costs {_difference(ratio)}"
        f"{'' if feasible else ' and breaks a constraint'}."
        for name, ratio, feasible in alternatives
        if method != "paper" or name != "the paper's method"
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def explain_law_plan(
    law: str,
    prediction: Prediction,
    groups: Sequence[GroupCost],
    convergence: Bound | Saturation,
    regret: float | None,
    alternatives: Sequence[Alternative],
    num_clients: int,
) -> str:
    """One paragraph: who trains when, what that rests on, and what others would pay."""
    steps = f"{prediction.local_steps:,} local step{'s' if prediction.local_steps > 1 else ''}"
    if groups:
        noun = "group takes" if len(groups) == 1 else "groups take"
        slowest, quickest = groups[-1], groups[0]
        sentences = [
            f"{len(groups):,} {noun} turns; {steps}; a round takes "
            f"{plain(prediction.time_s / prediction.expected_rounds)} s on average, from "
            f"{plain(quickest.time_s)} to {plain(slowest.time_s)} s by group."
        ]
        if len(groups) == 1:
            sentences = [f"All {num_clients:,} clients train in every round; {steps}."]
    else:
        sentences = [
            f"Use {prediction.clients_per_round:,} of {num_clients:,} clients per round "
            f"({law}) and {steps}."
        ]
    if isinstance(convergence, Saturation):
        sentences.append(_assumed(convergence, regret))
    sentences += [
        f"{other.name[0].upper()}{other.name[1:]} "
        f"{'cost' if other.prediction.clients_per_round is None else 'costs'} "
        f"{_difference(other.cost_ratio)}"
        f"{'' if other.feasible else ' and breaks a constraint'}."
        for other in alternatives
    ]
    return " ".join(sentences)


def _assumed(convergence: Saturation, regret: float | None) -> str:
    """What a plan without pilots rests on."""
    words = f"Rounds are for a training that takes {plain(2 * convergence.rounds)} with all clients"
    words += f" and {plain(convergence.saturation)} local steps; others are in proportion."
    if convergence.interval is None or regret is None:
        return words
    low, high = convergence.interval
    return (
        f"{words} Nothing was measured: the steps are for a saturation from {plain(low)} to "
        f"{plain(high)}, and wherever in it the truth lies, they cost at most {regret:.0%} more "
        "than the best."
    )


def hold_words(name: str, *, given: bool) -> str:
    """What holds a plan: a limit that was given, or as far as the pilots are trusted.

    >>> hold_words("max_local_steps", given=True), hold_words("max_local_steps", given=False)
    ('the maximum of local steps', 'the limit of twice the most local steps piloted')
    """
    return _WORDS[name][0] if given else _REACH[name]


def _extrapolation(prediction: Prediction, piloted: Piloted) -> str:
    """Where the plan is outside what was piloted, and the fit is extrapolated."""
    outside = []
    for value, (low, high), what in zip(
        prediction.pair,
        piloted,
        ("clients per round", "local steps"),
        strict=True,
    ):
        if not low <= value <= high:
            side = "fewer" if value < low else "more"
            ends = f"{low:,}" if low == high else f"{low:,} to {high:,}"
            outside.append(f"{side} {what} than any pilot had ({ends})")
    if not outside:
        return ""
    return (
        f"That is {' and '.join(outside)}, and so extrapolated: a pilot with "
        f"K={prediction.clients_per_round:,}, E={prediction.local_steps:,} would make sure."
    )


def _trust(method: str, gap: float | None, robust: RobustOptimum | None) -> str:
    if method == "exact":
        return "Nothing cheaper meets what was asked, under this bound (proven, gap 0)."
    if robust is not None:
        slack = f" (no setting can get below {robust.lower_bound:.1%})" if gap else ""
        whichever = "Whichever of the plausible bounds is true"
        if robust.quantile < 1:
            whichever = f"Under {robust.quantile:.0%} of the plausible bounds"
        return (
            f"{whichever}, it costs at most {robust.regret:.1%} more than the best setting "
            f"would{slack}."
        )
    return (
        "This is the paper's Algorithm 2: it takes every round at the mean device's speed and "
        "weighs sampling by c0 = b0; time, energy and cost are by that model."
    )


def _difference(ratio: float) -> str:
    if abs(ratio - 1) < 5e-4:
        return "the same"
    if ratio >= 3:
        return f"{ratio:,.1f} times as much" if ratio < 10 else f"{ratio:,.0f} times as much"
    return f"{abs(ratio - 1):.1%} {'more' if ratio > 1 else 'less'}"


def explain_infeasible(
    method: str, constraints: Constraints, attainable: dict[str, Prediction]
) -> str:
    """Which limits cannot be met, what the best attainable is, and what to change."""
    limits = {name: getattr(constraints, name) for name in attainable}
    reached = {
        "deadline_s": lambda p: p.time_s,
        "energy_budget_j": lambda p: p.energy_j,
        "max_rounds": lambda p: p.expected_rounds,
    }
    parts = []
    alone = False
    for name, best in attainable.items():
        what, template = _WORDS[name]
        least = reached[name](best)
        impossible = least > limits[name] * (1 + LIMIT_SLACK)
        alone = alone or impossible
        parts.append(
            f"{what[0].upper()}{what[1:]} is {limits[name]:,.6g}; the "
            f"{template.format(best, how_sure(method), plain(least))}, at {_where(best)}."
        )
    head = "No setting meets the limits"
    if method == "robust":
        head += " under enough of the plausible bounds"
    elif not alone:
        head += " together, though each alone can be met"
    return f"{head}. {' '.join(parts)} Raise the limit, or widen the ranges of K and E."


def _where(best: Prediction) -> str:
    if best.clients_per_round is None:
        return f"local_steps={best.local_steps:,}"
    return f"clients_per_round={best.clients_per_round:,}, local_steps={best.local_steps:,}"
