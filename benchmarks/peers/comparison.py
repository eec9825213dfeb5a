"""What the engines' reports amount to: speeds, ratios, shares of the peak, agreement."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

US = "fedplan"
MODES = {"training": "training only", "evaluation": "with evaluation"}
TOLERANCE = 0.05  # how far an engine's loss may be from fedplan's, as a share of it
LEARNT = 0.2  # share of the first loss that must be gone by then: else agreement says nothing

Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Median and range over the repeats."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        return cls(median=statistics.median(values), low=min(values), high=max(values))


def speed(reports: Sequence[Report], mode: str) -> Spread:
    """Local steps a second of one engine."""
    return Spread.of([report["modes"][mode]["steps_per_s"] for report in reports])


def ratio(ours: Sequence[Report], theirs: Sequence[Report], mode: str) -> Spread:
    """How many times faster we are, repeat by repeat: what ran side by side is compared."""
    pairs = zip(ours, theirs, strict=False)  # an engine that failed later has fewer reports
    return Spread.of(
        [a["modes"][mode]["steps_per_s"] / b["modes"][mode]["steps_per_s"] for a, b in pairs]
    )


def peak_share(
    steps_per_s: float, mode: str, *, step_flop: float, loss_flop: float, steps_per_round: int,
    peak: float,
) -> float:  # fmt: skip
    """Share of the machine's peak: arithmetic a second that the algorithm needs, over the peak.

    step_flop, loss_flop : operations of one local step, and of the loss over all samples, which
        every round of `steps_per_round` steps adds in the mode with evaluation.
    """
    work = step_flop + (loss_flop / steps_per_round if mode == "evaluation" else 0.0)
    return steps_per_s * work / peak


def disagreements(reports: Mapping[str, Report], rounds: int) -> list[str]:
    """What speaks against all engines having trained the same thing; empty where nothing does.

    The loss after `rounds` rounds, averaged over the seeds an engine ran, is held against fedplan's
    over the same seeds.
    """
    if US not in reports:
        return [f"{US} did not run: there is nothing to compare the losses with."]
    problems = []
    for engine, report in reports.items():
        seeds = report["losses"]
        loss = _mean_loss(report, seeds, rounds)
        reference = _mean_loss(reports[US], seeds, rounds)
        first = statistics.fmean(reports[US]["first_losses"][seed] for seed in seeds)
        if not loss <= (1 - LEARNT) * first:
            problems.append(
                f"{engine}: after {rounds} rounds the loss must be at least {LEARNT:.0%} below the "
                f"first, {first:.4f}, but is {loss:.4f}."
            )
        if not abs(loss - reference) <= TOLERANCE * reference:
            problems.append(
                f"{engine}: after {rounds} rounds the loss must be within {TOLERANCE:.0%} of "
                f"{US}'s, {reference:.4f}, but is {loss:.4f}."
            )
    return problems


def _mean_loss(report: Report, seeds: Sequence[str], rounds: int) -> float:
    curves = [report["losses"].get(seed, ()) for seed in seeds]
    if not curves or any(len(curve) < rounds for curve in curves):
        return math.nan
    return statistics.fmean(curve[rounds - 1] for curve in curves)


def table(reports: Mapping[str, Sequence[Report]]) -> list[str]:
    """The lines of one workload's table, engines in the order given."""
    lines = [
        f"  {'':<12} {MODES['training']:^48}  {MODES['evaluation']:^48}",
        f"  {'engine':<12}" + f" {'steps/s':>10} {'(range)':>20} {US + ' is':>16}  " * 2,
    ]
    for engine, own in reports.items():
        cells = []
        for mode in MODES:
            steps = speed(own, mode)
            times = ""
            if engine != US and reports.get(US):
                times = f"{_digits(ratio(reports[US], own, mode).median)} x"
            span = f"({_digits(steps.low)} - {_digits(steps.high)})"
            cells.append(f" {_digits(steps.median):>10} {span:>20} {times:>16}  ")
        lines.append(f"  {engine:<12}" + "".join(cells))
    return [line.rstrip() for line in lines]


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
