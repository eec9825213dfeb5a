"""Estimation: from a few pilots to the bound, with intervals and an honest status.

Between its two losses a pilot needs E (R_b - R_a) = D (a0 + E^2 (b0 + c0 s(K))) local steps per
client (Eq. 24), where D is the same unknown for all pilots. So a0, b0 and c0 come out in units of
1 / D: "rounds" then means rounds from the upper to the lower loss, and the choice of (K, E), which
depends on ratios alone, needs nothing more.

`joint` fits all pilots at once by non-negative least squares on relative errors. Intervals are
profile likelihood: with five or so pilots a bootstrap resamples designs that cannot even be
fitted, and it is inconsistent where a coefficient sits on its bound of zero; the profile suits
linear models, respects the bound, and opens up by itself where the pilots say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, TypeVar

import numpy as np

from fedplan.convergence.bound import Bound, sampling_variance
from fedplan.convergence.joint_fit import CONFIDENCE, Interval, JointFit, suggest_pilot
from fedplan.convergence.pilots import Pilot, Piloted
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import FloatArray
from fedplan.errors import InputError, refuse
from fedplan.notebook import Shown
from fedplan.words import counted, expected, in_words

Method = Literal["joint", "pairwise"]
Known = TypeVar("Known", bound=Bound | Saturation)

# Belsley, Kuh and Welsch: above 30 a column of the design is all but a mixture of the others.
MAX_CONDITION = 30.0
MAX_CORRELATION = 0.95  # of log K and log E over the pilots
MAX_SAMPLING_RATIO = 50.0  # c0 / b0 allowed for where the pilots leave c0 open
TRUSTED_REACH = 2  # plans stay within this factor of the pilots' fewest clients and most steps


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Estimate(Shown):
    """A bound estimated from pilots, in units of the pilots' own descent.

    status : "ok"; "ill-conditioned" if the pilots cannot separate the effects; or
        "unidentified" if they determine nothing, and then `bound` is None.
    ratio, ratio_interval : a0 / b0, infinite if b0 may be 0.
    intervals : of a0, b0 and c0, at `CONFIDENCE`.
    plausible : bounds at the ends of every interval, the input of the robust plan.
    suggested_pilot : the (K, E) that would be most informative.
    piloted : the smallest and the largest K of the pilots, and the same for E.
    """

    method: Method
    status: Literal["ok", "ill-conditioned", "unidentified"]
    bound: Bound | None = None
    ratio: float = math.nan
    ratio_interval: Interval = (0.0, math.inf)
    intervals: dict[str, Interval] = field(default_factory=dict)
    plausible: tuple[Bound, ...] = ()
    relative_error: float = math.nan
    pairs_used: int
    pairs_rejected: int
    suggested_pilot: tuple[int, int] | None = None
    piloted: Piloted
    message: str

    @property
    def success(self) -> bool:
        """Whether there is a bound to plan with."""
        return self.bound is not None

    @property
    def reach(self) -> tuple[int, int]:
        """The smallest K and the largest E for which the fit is trusted."""
        (fewest, _), (_, most) = self.piloted
        return math.ceil(fewest / TRUSTED_REACH), most * TRUSTED_REACH

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "status", f"{self.status} ({self.method})"
        if self.bound is not None:
            for name, ends in self.intervals.items():
                yield name, expected(getattr(self.bound, name), ends, in_words)
        yield "a0 / b0", expected(self.ratio, self.ratio_interval, in_words)
        yield "message", self.message

    def at_gap(self, target_gap: float) -> Estimate:
        """The same with bounds for another gap."""
        bounds = tuple(bound.at_gap(target_gap) for bound in self.plausible)
        return replace(self, bound=self.bound and self.bound.at_gap(target_gap), plausible=bounds)

    def within_reach(self, constraints: Constraints) -> Constraints:
        """These constraints, with `reach` as the limits of K and E that they leave open.

        >>> pilots = [Pilot(clients_per_round=k, local_steps=e, upper_loss=2, lower_loss=1,
        ...     rounds_to_upper=0, rounds_to_lower=9) for k, e in ((4, 5), (8, 10), (9, 5))]
        >>> reach = estimate_bound(pilots, 9).within_reach(Constraints())
        >>> reach.min_clients_per_round, reach.max_local_steps
        (2, 20)
        """
        low_k, high_e = self.reach
        if constraints.min_clients_per_round is None:
            most = constraints.max_clients_per_round or low_k
            constraints = replace(constraints, min_clients_per_round=min(low_k, most))
        if constraints.max_local_steps is None:
            least = constraints.min_local_steps or 1
            constraints = replace(constraints, max_local_steps=max(high_e, least))
        return constraints


def what_is_known(
    known: Known | Estimate, constraints: Constraints | None
) -> tuple[Known | Bound, tuple[Bound, ...], Constraints]:
    """What to predict with, the bounds to be robust over, and the constraints to plan under.

    An estimate stands for all three: its bound, its plausible bounds, and no (K, E) out of reach.
    """
    constraints = constraints or Constraints()
    if not isinstance(known, Estimate):
        return known, (), constraints
    if known.bound is None:
        raise InputError(f"there is no bound to plan with. {known.message}")
    return known.bound, known.plausible, known.within_reach(constraints)


def estimate_bound(
    pilots: Sequence[Pilot], num_clients: int, *, method: Method = "joint"
) -> Estimate:
    """Estimate a0, b0 and c0 from two or more pilots.

    >>> runs = [(3, 30, 40, 70), (20, 20, 60, 98), (20, 45, 40, 66), (3, 70, 30, 62)]
    >>> pilots = [Pilot(clients_per_round=k, local_steps=e, upper_loss=1.5, lower_loss=1.3,
    ...     rounds_to_upper=a, rounds_to_lower=b) for k, e, a, b in runs]
    >>> estimate = estimate_bound(pilots, num_clients=100)
    >>> estimate.status, round(estimate.ratio)
    ('ok', 2444)
    """
    _check(pilots, num_clients)
    if method == "pairwise":
        return _pairwise_estimate(pilots, num_clients)
    if method == "joint":
        return _joint_estimate(pilots, num_clients)
    raise InputError(f"method must be 'joint' or 'pairwise', but got {method!r}.")


def pair_ratios(pilots: Sequence[Pilot], num_clients: int) -> FloatArray:
    """A0 / B0 from every pair of pilots (Eq. 25); NaN if a pair divides by zero."""
    ratios = []
    for one, other in combinations(pilots, 2):
        y1, y2 = one.iterations, other.iterations
        x1, x2 = _paper_drift(one, num_clients), _paper_drift(other, num_clients)
        ratios.append((y2 * x1 - y1 * x2) / (y1 - y2) if y1 != y2 else math.nan)
    return np.array(ratios)


def estimation_overhead(pilots: Sequence[Pilot], rounds: float, local_steps: int) -> float:
    """The paper's overhead ratio (Eq. 26): pilot iterations over training iterations.

    >>> pilot = Pilot(clients_per_round=2, local_steps=10, upper_loss=1.0, lower_loss=0.5,
    ...     rounds_to_upper=5, rounds_to_lower=20)
    >>> estimation_overhead([pilot, pilot], rounds=100, local_steps=8)
    0.5
    """
    return sum(p.rounds_to_lower * p.local_steps for p in pilots) / (rounds * local_steps)


def _check(pilots: Sequence[Pilot], num_clients: int) -> None:
    problems = []
    if not isinstance(num_clients, Integral) or num_clients < 1:
        problems.append(f"num_clients must be an integer >= 1, but got num_clients={num_clients}.")
    if len(pilots) < 2:
        problems.append(
            f"`number of pilots >= 2` must hold, but got {len(pilots)}. Run another pilot with a "
            "different clients_per_round and local_steps."
        )
    problems += [
        "`clients_per_round <= num_clients` must hold, but pilot "
        f"{position} has clients_per_round={pilot.clients_per_round}, num_clients={num_clients}."
        for position, pilot in enumerate(pilots, start=1)
        if pilot.clients_per_round > num_clients
    ]
    levels = sorted({(pilot.upper_loss, pilot.lower_loss) for pilot in pilots})
    if len(levels) > 1:
        shown = ", ".join(f"{upper} -> {lower}" for upper, lower in levels[:5])
        problems.append(
            "every pilot must descend between the same two losses, or their rounds cannot be "
            f"compared, but got {shown}. Read the rounds off at common losses."
        )
    refuse(problems)


def _paper_drift(pilot: Pilot, num_clients: int) -> float:
    spread = float(sampling_variance(pilot.clients_per_round, num_clients))
    return (1.0 + spread) * pilot.local_steps**2


def _estimate(pilots: Sequence[Pilot], ratios: FloatArray, **found: Any) -> Estimate:
    """An estimate with what it rests on: the pairs, and the range of the pilots."""
    usable = int((ratios >= 0).sum())
    clients = [pilot.clients_per_round for pilot in pilots]
    steps = [pilot.local_steps for pilot in pilots]
    return Estimate(
        pairs_used=usable,
        pairs_rejected=ratios.size - usable,
        piloted=((min(clients), max(clients)), (min(steps), max(steps))),
        **found,
    )


def _unidentified(
    method: Method, pilots: Sequence[Pilot], num_clients: int, ratios: FloatArray, reason: str
) -> Estimate:
    k, e = suggest_pilot(pilots, num_clients)
    return _estimate(
        pilots,
        ratios,
        method=method,
        status="unidentified",
        suggested_pilot=(k, e),
        message=f"{reason} Add a pilot at clients_per_round={k}, local_steps={e}.",
    )


def _pairwise_estimate(pilots: Sequence[Pilot], num_clients: int) -> Estimate:
    ratios = pair_ratios(pilots, num_clients)
    undefined, negative = int(np.isnan(ratios).sum()), int((ratios < 0).sum())
    used = ratios[ratios >= 0]
    counts = (
        f"{used.size} of {counted(ratios.size, 'pair')} of pilots can be used. Divisions by zero: "
        f"{undefined}; negative ratios: {negative}."
    )
    if not used.size:
        return _unidentified("pairwise", pilots, num_clients, ratios, counts)
    ratio, spread = float(used.mean()), (float(used.min()), float(used.max()))
    bounds = tuple(_scaled_to(pilots, num_clients, value) for value in (ratio, *spread))
    return _estimate(
        pilots,
        ratios,
        method="pairwise",
        status="ok" if used.size == ratios.size else "ill-conditioned",
        bound=bounds[0],
        ratio=ratio,
        ratio_interval=spread,
        plausible=bounds,
        message=f"a0/b0 is the mean over pairs of pilots, as in the paper; the interval is their "
        f"range. {counts} The joint method uses every pilot at once and is steadier.",
    )


def _scaled_to(pilots: Sequence[Pilot], num_clients: int, ratio: float) -> Bound:
    """The paper's bound with this ratio, in the pilots' own units."""
    scale = float(np.mean([p.iterations / (ratio + _paper_drift(p, num_clients)) for p in pilots]))
    return Bound(a0=ratio * scale, b0=scale)


def _joint_estimate(pilots: Sequence[Pilot], num_clients: int) -> Estimate:
    fit, ratios = JointFit(pilots, num_clients), pair_ratios(pilots, num_clients)
    if not fit.identified:
        reason = "The pilots all say the same thing twice."
        return _unidentified("joint", pilots, num_clients, ratios, reason)
    a0, b0, c0 = fit.coefficients.tolist()
    intervals, corners = {}, []
    for which, name in enumerate(("a0", "b0", "c0")):
        intervals[name], fits = fit.interval(which)
        corners += fits
    ratio_interval, fits = fit.ratio_interval()
    corners += fits
    concerns = _concerns(fit, pilots, num_clients, b0)
    suggestion, advice = None, ""
    if concerns:
        suggestion = k, e = suggest_pilot(pilots, num_clients)
        advice = f" Add a pilot at clients_per_round={k}, local_steps={e}."
    return _estimate(
        pilots,
        ratios,
        method="joint",
        status="ill-conditioned" if concerns else "ok",
        bound=Bound(a0=a0, b0=b0, c0=c0),
        ratio=a0 / b0 if b0 else math.inf,
        ratio_interval=ratio_interval,
        intervals=intervals,
        plausible=_plausible(fit, corners, intervals["c0"]),
        relative_error=fit.relative_error,
        suggested_pilot=suggestion,
        message=f"One fit of {len(pilots)} pilots, typical error {fit.relative_error:.0%}, "
        f"{CONFIDENCE:.0%} intervals.{' '.join(['', *concerns])}{advice}",
    )


def _concerns(fit: JointFit, pilots: Sequence[Pilot], num_clients: int, b0: float) -> list[str]:
    concerns = []
    if num_clients > 1 and not fit.full_rank:
        same = [
            name
            for name in ("clients_per_round", "local_steps")
            if len({getattr(pilot, name) for pilot in pilots}) == 1
        ]
        reason = f"All pilots have the same {same[0]}" if same else "There are too few pilots"
        concerns.append(
            f"{reason}, so they cannot tell clients_per_round's effect from local_steps': "
            "c0 = b0, as in the paper, is assumed."
        )
    elif num_clients > 1 and (fit.condition > MAX_CONDITION or _moved_together(pilots)):
        concerns.append(
            "The pilots moved clients_per_round and local_steps together, so only the formula "
            "tells their effects apart (c0 is weakly supported)."
        )
    if b0 == 0:
        concerns.append(
            "The pilots show no price of long local runs (b0 = 0), so a0/b0 has no finite value."
        )
    return concerns


def _moved_together(pilots: Sequence[Pilot]) -> bool:
    clients = np.log([p.clients_per_round for p in pilots])
    steps = np.log([p.local_steps for p in pilots])
    if np.ptp(clients) == 0 or np.ptp(steps) == 0:
        return False  # one of them is constant, which the rank shows
    return bool(abs(np.corrcoef(clients, steps)[0, 1]) > MAX_CORRELATION)


def _plausible(
    fit: JointFit, corners: list[FloatArray], c0_interval: Interval
) -> tuple[Bound, ...]:
    """The centre and the ends of every interval; an infinite end of c0 is cut off."""
    centre = fit.coefficients
    if math.isinf(c0_interval[1]):
        typical = max(centre[1], centre[0] / float(fit.design[:, 1].mean()))
        corners = [*corners, np.array([*centre[:2], MAX_SAMPLING_RATIO * typical])]
    # Fits that agree to six digits count as one.
    ends = {_six_digits(fit) for fit in corners if fit[:2].any()} - {_six_digits(centre)}
    fits = [tuple(centre.tolist()), *sorted(ends)]
    return tuple(Bound(a0=a0, b0=b0, c0=c0) for a0, b0, c0 in fits)


def _six_digits(fit: FloatArray) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in fit)
