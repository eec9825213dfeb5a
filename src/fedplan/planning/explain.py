"""Explanations: a plan in plain words."""

from collections.abc import Sequence
from dataclasses import asdict

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate
from fedplan.convergence.pilots import Piloted
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import LIMIT_SLACK, TOTALS, Constraints
from fedplan.core.plan import Alternative, GroupCost, Plan
from fedplan.core.setting import Prediction
from fedplan.words import Table, amount, counted, table_of

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


def is_guess(regret: float | None) -> bool:
    """Whether a plan of this regret is no more than a guess."""
    return regret is not None and regret > _GUESS


def whole_message(plan: Plan, known: Bound | Estimate | Saturation, relative_to: str | None) -> str:
    """A plan's message, what its numbers are relative to, and what the pilots tell."""
    parts = [plan.message]
    if relative_to:
        units = "Rounds, time, energy, cost and limits are in relative units"
        parts.append(f"{units}: they are for {relative_to}.")
    if isinstance(known, Estimate):
        parts.append(f"Pilots: {known.message}")
    return " ".join(parts)


def how_sure(method: str) -> str:
    """How far one can rely on the least totals that a method finds attainable."""
    return "that can be counted on" if method == "robust" else "possible"


def explain_plan(
    plan: Plan,
    convergence: Bound | Saturation,
    num_clients: int,
    *,
    given: Constraints,
    clients_range: tuple[int, int],
    costs_nothing: bool,
    piloted: Piloted | None,
    quantile: float,
) -> str:
    """One paragraph: the choice, why to trust it, and what the alternatives would cost.

    given : the constraints asked for; others that bind come from the reach of the pilots.
    clients_range : the smallest and the largest K among which the plan was chosen.
    """
    if plan.prediction is None:
        raise AssertionError("only a plan with a setting is explained")
    sentences = [
        _UNSETTLED if plan.method == "robust" and is_guess(plan.regret) else "",
        _who(plan, plan.prediction, num_clients),
        _assumed(convergence, plan.regret)
        if isinstance(convergence, Saturation)
        else _trust(plan, quantile, clients_range, num_clients),
    ]
    if costs_nothing:
        sentences.append("Every setting costs nothing by these weights, so the fastest is taken.")
    if plan.binding:
        names = " and ".join(
            _REACH[name] if getattr(given, name) is None else _WORDS[name][0]
            for name in plan.binding
        )
        if plan.method == "robust":
            sentences.append(f"Held by {names}: beyond, another choice may be better.")
        else:
            sentences.append(f"Without {names} it would be cheaper.")
    if piloted is not None:
        sentences.append(_extrapolation(plan.prediction, piloted))
    sentences += [
        _would_cost(other)
        for other in plan.alternatives
        if plan.method != "paper" or other.name != "the paper's method"
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _who(plan: Plan, prediction: Prediction, num_clients: int) -> str:
    """Who trains, and for how many steps."""
    steps = counted(prediction.local_steps, "local step")
    groups = plan.groups
    if not groups:
        law = "" if plan.participation == "uniform" else f" ({plan.participation})"
        return (
            f"Use {prediction.clients_per_round:,} of {num_clients:,} clients per round{law} and "
            f"{steps}."
        )
    if len(groups) == 1:
        return f"All {num_clients:,} clients train in every round, with {steps}."
    return (
        f"{len(groups):,} groups take turns, with {steps}; a round takes "
        f"{amount(prediction.time_s / prediction.expected_rounds)} s on average, from "
        f"{amount(groups[0].time_s)} to {amount(groups[-1].time_s)} s by group."
    )


def _assumed(convergence: Saturation, regret: float | None) -> str:
    """What a plan without pilots rests on."""
    words = (
        f"Rounds are in proportion to the {amount(2 * convergence.rounds)} that all clients are "
        f"assumed to need with {amount(convergence.saturation)} local steps."
    )
    low, high = convergence.interval or (0.0, 0.0)
    if low == high or regret is None:
        return words
    return (
        f"{words} Nothing was measured: the steps suit a saturation from {amount(low)} to "
        f"{amount(high)}, and wherever in that range the truth lies, the plan costs at most "
        f"{regret:.0%} more than the best."
    )


def _extrapolation(prediction: Prediction, piloted: Piloted) -> str:
    """Where the plan is outside what was piloted, and the fit is extrapolated."""
    outside = []
    names = ("clients per round", "local steps")
    for value, (low, high), what in zip(prediction.pair, piloted, names, strict=True):
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


def _trust(plan: Plan, quantile: float, clients_range: tuple[int, int], num_clients: int) -> str:
    match plan.method:
        case "exact":
            return "Nothing cheaper meets what was asked, under this bound (proven, gap 0)."
        case "paper":
            return (
                "This is the paper's Algorithm 2: it takes every round at the mean device's speed "
                "and weighs sampling by c0 = b0; time, energy and cost are by that model."
            )
        case "robust" if plan.certificate is not None:
            proof, whichever = plan.certificate, "Whichever of the plausible bounds is true"
            slack = f" (no setting can get below {proof.lower_bound:.1%})" if proof.gap else ""
            if quantile < 1:
                whichever = f"Under {quantile:.0%} of the plausible bounds"
            low, high = clients_range
            among = "" if (low, high) == (1, num_clients) else f" with K from {low:,} to {high:,}"
            return (
                f"{whichever}, it costs at most {plan.regret:.1%} more than the best setting"
                f"{among} would{slack}."
            )
    return ""


def _would_cost(other: Alternative) -> str:
    comma = "," if "," in other.name else ""
    broken = "" if other.feasible else " and break a constraint"
    return (
        f"{other.name[0].upper()}{other.name[1:]}{comma} would cost "
        f"{_difference(other.cost_ratio)}{broken}."
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
    parts, alone = [], False
    for name, best in attainable.items():
        what, template = _WORDS[name]
        limit, least = getattr(constraints, name), getattr(best, TOTALS[name])
        alone = alone or least > limit * (1 + LIMIT_SLACK)
        parts.append(
            f"{what[0].upper()}{what[1:]} is {limit:,.6g}; the "
            f"{template.format(best, how_sure(method), amount(least))}, at {_where(best)}."
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


def group_table(groups: Sequence[GroupCost], *, title: str) -> Table:
    """The groups that take turns, with the cost of a round of each."""
    columns = {
        "group": "number",
        "devices": "clients",
        "share of data": "data_share",
        "share of rounds": "frequency",
        "round": "time_s",
        "energy": "energy_j",
        "cost": "cost",
    }
    rows = [{"number": place, **asdict(group)} for place, group in enumerate(groups, 1)]
    return table_of(rows, columns, title=title)
