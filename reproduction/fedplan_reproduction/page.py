"""The page of a reproduction: the paper versus ours, in plain words."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from fedplan.studies import Cell, make_cells
from fedplan_reproduction.grid import AS_IT_IS, TIME, TrainedGrid
from fedplan_reproduction.published import FIGURES
from fedplan_reproduction.reproduce import Reproduction
from fedplan_reproduction.weights import FEDPLAN, PAPER, Priced


def page_text(made: Reproduction, *, command: str, pictures: Sequence[str]) -> str:
    """Summary, Table I, the figures, the theory."""
    prepared = made.prepared
    seeds = len(prepared.seeds)
    parts = [
        f"# Setup {prepared.setup.removeprefix('setup')}, measured",
        f"`{command}`",
        f"Seeds: {seeds} (the paper: 50). Took {made.took_s:,.0f} s, not counting runs that the "
        "store already had.",
        *(f"**{line}**" for line in cautions(made)),
        "## What reproduces, and what does not",
        "\n".join(f"- {line}" for line in summary(made)),
    ]
    if made.table1:
        parts += ["## Table I: rounds to two losses", _table(*rounds_of(made))]
    if made.grid is not None:
        parts += _rest(made, pictures)
    return "\n\n".join(parts) + "\n"


def _rest(made: Reproduction, pictures: Sequence[str]) -> list[str]:
    """What the grid has shown."""
    return [
        f"## Curves, times and plans (Figure {FIGURES[made.prepared.setup].number} of the paper)",
        *_figures(made, pictures),
        *_overheads(made),
        "## The theory, on what was measured",
        "The theorems are about a bound and the mean device. Here each is checked on the mean cost "
        "of real training, where a round takes as long as its slowest device. "
        + _noise(made)
        + " A setting that does not arrive with every seed in the rounds allowed counts as "
        "infinitely dear.",
        _table(
            ("", "statement", "", "numbers"),
            ((one.source, one.statement, f"**{one.verdict}**", one.numbers) for one in made.checks),
        ),
    ]


def summary(made: Reproduction) -> list[str]:
    """One line a result."""
    lines = [_table1_summary(made)] if made.table1 else []
    if made.grid is not None:
        lines += [*_time_summary(made, made.grid), *_weight_summary(made.priced)]
    for verdict in ("holds", "does not hold", "cannot tell", "not tested"):
        names = [one.source for one in made.checks if one.verdict == verdict]
        if names:
            lines.append(f"{verdict.capitalize()} on the grid: {', '.join(names)}.")
    return lines


def best_time(grid: TrainedGrid) -> Cell | None:
    """The quickest (K, E); None where none arrives with all seeds."""
    best = make_cells(grid.summaries[AS_IT_IS], TIME)[0]
    return best if math.isfinite(best.cost) else None


def cautions(made: Reproduction) -> list[str]:
    """What makes this something else than the paper's experiment."""
    prepared = made.prepared
    found = []
    if prepared.quick:
        changes = ["few seeds, a coarse grid", *(f"`{text}`" for text in prepared.design.overrides)]
        found.append(f"A quick look: {', '.join(changes)}.")
    if prepared.overrides:
        words = ", ".join(f"`{text}`" for text in prepared.overrides)
        found.append(f"With changes: {words}.")
    return found


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _table1_summary(made: Reproduction) -> str:
    judged = [row.is_close for row in made.table1 if row.is_close is not None]
    if not judged:
        return "Table I: no pair that the paper has."
    close = sum(judged)
    verdict = "reproduces" if close == len(judged) else "does not reproduce in number"
    if 0 < close < len(judged):
        verdict = "reproduces in part"
    never = sum(row.lower.never for row in made.table1)
    more = f"; {never} runs never arrived at the lower loss" if never else ""
    return (
        f"Table I {verdict}: {close} of {len(judged)} pairs within 10% or 3 rounds of both "
        f"published numbers{more}."
    )


def _time_summary(made: Reproduction, grid: TrainedGrid) -> list[str]:
    best, figure = best_time(grid), FIGURES[made.prepared.setup]
    target = made.prepared.target_loss
    if best is None:
        return [f"No setting of the grid reaches the loss {target:g} with every seed."]
    line = (
        f"Quickest to the loss {target:g}: K={best.clients_per_round}, E={best.local_steps}, "
        f"{best.cost:,.1f} s"
    )
    if figure.best_time_s is not None and target == figure.target_loss:
        off = best.cost / figure.best_time_s - 1.0
        line += (
            f"; the paper's search found {figure.best_time_s:g} s ({off:+.0%}), and its plan took "
            f"{figure.time_s:g} s"
        )
    lines = [line + "."]
    accuracies = [
        run.test_accuracy
        for run in grid.runs
        if run.status == "target" and run.test_accuracy is not None
    ]
    if accuracies:
        words = f"Test accuracy at the target: {statistics.fmean(accuracies):.1%}"
        if figure.test_accuracy is not None and target == figure.target_loss:
            words += f"; the paper has {figure.test_accuracy:.1%}"
        lines.append(words + ".")
    return lines


def _weight_summary(priced: Sequence[Priced]) -> list[str]:
    lines = []
    for method, name in ((FEDPLAN, "fedplan's trainings"), (PAPER, "the paper's plans")):
        own = [one for one in priced if one.method == method]
        errors = [one.relative_cost - 1.0 for one in own if math.isfinite(one.relative_cost)]
        if not own:
            continue
        line = f"Over {len(own)} energy weights {name} " if len(own) > 1 else f"{name} "
        line = line[0].upper() + line[1:]
        if len(own) == len(errors) == 1:
            line += f"cost {_apart(errors[0])} than the best of the grid"
        elif errors:
            line += (
                f"cost {_apart(statistics.fmean(errors))} than the best of the grid on average, "
                f"and {_apart(max(errors))} at worst"
            )
        else:
            line += "never reach the target with every seed"
        if 0 < len(errors) < len(own):
            line += f"; {len(own) - len(errors)} never reach the target with every seed"
        says = "; the paper says 4.85% and 10.23%." if len(own) > 1 and method == PAPER else "."
        lines.append(line + says)
    return lines


def _apart(error: float) -> str:
    return f"{abs(error):.1%} {'more' if error > 0 else 'less'}"


def rounds_of(made: Reproduction) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Table I, heading and rows."""
    upper, lower = made.table1[0].upper.loss, made.table1[0].lower.loss
    margin = "within 10% or 3 rounds"
    head = ("K, E", f"paper: {upper:g}", "ours", f"paper: {lower:g}", "ours", margin)
    rows: list[tuple[str, ...]] = [
        (
            f"{row.clients_per_round}, {row.local_steps}",
            _cell(row.upper.published),
            str(row.upper),
            _cell(row.lower.published),
            str(row.lower),
            {True: "yes", False: "no", None: "-"}[row.is_close],
        )
        for row in made.table1
    ]
    return head, rows


def _figures(made: Reproduction, pictures: Sequence[str]) -> list[str]:
    parts = [
        "The loss is that of the training samples (those that were evaluated). The paper does not "
        "print which K and E its figures show, so these were chosen around its plans. A setting "
        "has no cost if some seed never arrives. `--redraw` draws the figure again from the "
        "tables.",
        *(f"![{picture.removesuffix('.png')}]({picture})" for picture in pictures),
    ]
    if made.priced:
        parts += [
            "What training costs at each energy weight: fedplan's with every round counted, the "
            "paper's plan without its pilots. "
            + _how_priced(made)
            + " fedplan lets groups take turns, which no setting of the grid does.",
            _table(
                (
                    "energy weight",
                    "method",
                    "K, E",
                    f"cost ({TIME.unit})",
                    "cost / best",
                    "seconds",
                    "joules",
                ),
                ((*_priced_cells(one),) for one in made.priced),
            ),
        ]
    return parts


def _overheads(made: Reproduction) -> list[str]:
    if not made.overheads:
        return []
    first = made.overheads[0]
    return [
        "## Overhead of the pilots (Equation 26)",
        f"Iterations of Table I's pilots ({first.pilot_iterations:,.0f}) over those of the "
        "training by the plan that the paper's method makes of them. What was measured is the left "
        "side of the equation; its right side is by the bound, with A0 and B0 from the same pilots "
        f"and F* = {first.best_loss:.3g}, the lowest loss of this model on all samples.",
        _table(
            ("energy weight", "K*, E*", "rounds", "measured", "by the bound"),
            (
                (
                    f"{one.energy_weight:g}",
                    f"{one.clients_per_round}, {one.local_steps}",
                    one.rounds,
                    one.measured,
                    one.predicted,
                )
                for one in made.overheads
            ),
        ),
    ]


def _how_priced(made: Reproduction) -> str:
    ratio = made.prepared.design.published_ratio
    words = "" if ratio is None else f"That plan follows from the published A0/B0, {ratio:,.0f}. "
    if len(made.prepared.seeds) == 1:
        return words + "The best of the grid is chosen and priced on the same seed."
    return words + (
        "The best of the grid is chosen on half of the seeds, and all three are priced on the "
        "other half."
    )


def _noise(made: Reproduction) -> str:
    if len(made.prepared.seeds) == 1:
        return "With one seed there is no standard error, so that every difference counts."
    return "Differences within two standard errors count as none."


def _priced_cells(one: Priced) -> tuple[object, ...]:
    setting = "turns" if one.method == FEDPLAN else "-"
    if one.local_steps is not None:
        setting = f"{one.clients_per_round}, {one.local_steps}"
    numbers = (one.cost, one.relative_cost, one.time_s, one.energy_j)
    shown = ("never" if math.isinf(x) else None if math.isnan(x) else x for x in numbers)
    return f"{one.energy_weight:g}", one.method, setting, *shown
