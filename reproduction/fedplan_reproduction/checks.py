"""Checks: what the paper's theorems say of K and E, held against costs that were measured.

The theorems are about a bound and the mean device; the costs are those of real training with the
slowest of every cohort. A difference within two standard errors is taken for none, and a setting
that does not arrive with every seed, in the rounds allowed, is infinitely dear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from fedplan import Objective
from fedplan.studies import Cell, RunSummary, make_cells
from fedplan_reproduction.grid import AS_IT_IS, ENERGY, TIME, TrainedGrid

_ERRORS = 2.0  # standard errors of a difference that count as noise
_FEW, _NEAR = 0.15, 0.1  # the least share of the clients that is looked at; more time than with all
WEIGHTS = tuple(tenth / 10 for tenth in range(11))

Verdict = Literal["holds", "does not hold", "cannot tell", "not tested"]
Axis = Callable[[Cell], int]
_UNITS = {"time": "s", "energy": "J"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One statement of the paper, whether it holds on the grid, and the numbers."""

    source: str
    statement: str
    verdict: Verdict
    numbers: str


def check_theory(grid: TrainedGrid, num_clients: int) -> list[Check]:
    """Every statement about costs; one that the grid says nothing of is not tested.

    A statement about all clients needs K = N in the grid, one about a single client K = 1, and one
    about energy devices whose joules are known.
    """
    runs = grid.summaries[AS_IT_IS]
    time, energy = make_cells(runs, TIME), make_cells(runs, ENERGY)
    tried = {clients_of(cell) for cell in time}
    everyone = [] if num_clients in tried else [f"K={num_clients} was not trained"]
    alone = [] if 1 in tried else ["K=1 was not trained"]
    joules = [] if any(run.energy_j > 0 for run in runs) else ["the devices' energy is not known"]
    checks = [
        (_falls_then_rises("Corollary 1", "time", time), []),
        (_steps_rise("Corollary 2", "time", grid, TIME), []),
        (_with_clients("Theorem 2", "time", time, rising=False), everyone),
        (_few_are_enough(time), everyone),
        (_falls_then_rises("Corollary 3", "energy", energy), joules),
        (_steps_rise("Corollary 4", "energy", grid, ENERGY), joules),
        (_with_clients("Theorem 3", "energy", energy, rising=True), joules + alone),
        (_clients_and_weight(runs), joules + alone + everyone),
    ]
    return [
        replace(check, verdict="not tested", numbers="; ".join(missing)) if missing else check
        for check, missing in checks
    ]


def clients_of(cell: Cell) -> int:
    """K."""
    return cell.setting[0]


def steps_of(cell: Cell) -> int:
    """E."""
    return cell.local_steps


def _falls_then_rises(source: str, what: str, cells: Sequence[Cell]) -> Check:
    found: list[str] = []
    verdicts: list[bool | None] = []
    for clients, line in _lines(cells, clients_of, steps_of):
        best = min(line, key=lambda cell: cell.cost)
        if not math.isfinite(best.cost):
            found.append(f"K={clients}: never arrives")
            continue
        place = line.index(best)
        bent = _breaks(line[: place + 1], rising=False) + _breaks(line[place:], rising=True)
        inside = 0 < place < len(line) - 1
        # Beyond the end of the grid it may yet rise.
        verdicts.append(False if bent else True if inside else None)
        words = f"K={clients}: lowest at E={best.local_steps}"
        words += "" if inside else ", an end of the grid"
        found.append(words + "".join(f", but {_step(*pair, _UNITS[what])}" for pair in bent))
    return Check(
        source=source,
        statement=f"For any K, {what} first falls and then rises with E.",
        verdict=_verdict(verdicts),
        numbers="; ".join(found),
    )


def _steps_rise(source: str, what: str, grid: TrainedGrid, objective: Objective) -> Check:
    best: dict[int, list[int | None]] = {}
    for runs in grid.summaries.values():
        for clients, line in _lines(make_cells(runs, objective), clients_of, steps_of):
            cell = min(line, key=lambda one: one.cost)
            best.setdefault(clients, []).append(
                cell.local_steps if math.isfinite(cell.cost) else None
            )
    verdicts: list[bool | None] = []
    for steps in best.values():
        known = [one for one in steps if one is not None]
        rising = all(a <= b for a, b in pairwise(known))
        # An E that stays shows only that the grid is coarse.
        verdicts.append(None if len(set(known)) < 2 else rising)
    factors = ", ".join(f"{factor:g}" for factor in grid.summaries)
    return Check(
        source=source,
        statement=f"For any K, the E of least {what} rises as communication costs more.",
        verdict=_verdict(verdicts),
        numbers=f"communication times {factors}: "
        + "; ".join(
            f"K={k}: E={', '.join(map(str, steps))}" if any(steps) else f"K={k}: never arrives"
            for k, steps in best.items()
        ),
    )


def _with_clients(source: str, what: str, cells: Sequence[Cell], *, rising: bool) -> Check:
    found: list[str] = []
    verdicts: list[bool | None] = []
    for steps, line in _lines(cells, steps_of, clients_of):
        best = min(line, key=lambda cell: cell.cost)
        if not math.isfinite(best.cost):
            found.append(f"E={steps}: never arrives")
            continue
        verdicts.append(not _breaks(line, rising=rising))
        lost = [str(clients_of(cell)) for cell in line if math.isinf(cell.cost)]
        words = f"E={steps}: lowest at K={best.clients_per_round}"
        found.append(words + (f" (K={', '.join(lost)}: never arrives)" if lost else ""))
    way = "rises" if rising else "falls"
    overall = min(cells, key=lambda cell: cell.cost)
    return Check(
        source=source,
        statement=f"For any E, {what} {way} with K, so that the best K is "
        + ("1." if rising else "N."),
        verdict=_verdict(verdicts),
        numbers="; ".join(found) + f"; of all: {_at(overall, _UNITS[what])}",
    )


def _few_are_enough(cells: Sequence[Cell]) -> Check:
    lines = dict(_lines(cells, clients_of, steps_of))
    most = max(lines)
    least = {clients: min(cell.cost for cell in line) for clients, line in lines.items()}
    ratios = {
        clients: cost / least[most]
        for clients, cost in least.items()
        if _FEW * most <= clients < most and math.isfinite(least[most])
    }
    return Check(
        source="Remark on Theorem 2",
        statement=f"Far fewer clients take little more time (here: some K below {most} takes at "
        f"most {_NEAR:.0%} more, each K with its best E).",
        verdict=_verdict([min(ratios.values()) <= 1 + _NEAR if ratios else None]),
        numbers="; ".join(f"K={k}: {ratio:.2f} times" for k, ratio in ratios.items()),
    )


def _clients_and_weight(runs: Sequence[RunSummary]) -> Check:
    best = [make_cells(runs, Objective.weighted(weight))[0] for weight in WEIGHTS]
    falling = all(
        clients_of(b) <= clients_of(a) and b.local_steps <= a.local_steps for a, b in pairwise(best)
    )
    fewer = clients_of(best[-1]) < clients_of(best[0])
    known = math.isfinite(best[0].cost) and math.isfinite(best[-1].cost)
    shown = "; ".join(
        f"weight {weight:g}: {_at(cell)}"
        for position, (weight, cell) in enumerate(zip(WEIGHTS, best, strict=True))
        if position in (0, len(best) - 1) or cell.setting != best[position - 1].setting
    )
    return Check(
        source="Theorem 4",
        statement="The best K and E both fall as the energy weight rises.",
        verdict=_verdict([falling and fewer if known else None]),
        numbers=f"cost in {TIME.unit}: {shown}",
    )


def _lines(cells: Iterable[Cell], fixed: Axis, varied: Axis) -> list[tuple[int, list[Cell]]]:
    """The cells of each row or column of the grid, in order."""
    groups: dict[int, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(fixed(cell), []).append(cell)
    return [(at, sorted(group, key=varied)) for at, group in sorted(groups.items())]


def _breaks(line: Sequence[Cell], *, rising: bool) -> list[tuple[Cell, Cell]]:
    """Neighbours that go the other way by more than noise."""
    found = []
    for a, b in pairwise(line):
        low, high = (a, b) if rising else (b, a)
        noise = _ERRORS * math.hypot(
            *(0 if math.isnan(c.cost_error) else c.cost_error for c in (a, b))
        )
        # Two that never arrive go no way at all.
        if low.cost != high.cost and low.cost - high.cost > noise:
            found.append((a, b))
    return found


def _verdict(verdicts: Sequence[bool | None]) -> Verdict:
    """Of all rows or columns: one that breaks it is enough, one that shows it is needed."""
    if False in verdicts:
        return "does not hold"
    return "holds" if True in verdicts else "cannot tell"


def _step(a: Cell, b: Cell, unit: str) -> str:
    return f"{_at(a, unit)} and {_at(b, unit)}"


def _at(cell: Cell, unit: str = "") -> str:
    cost = "never arrives" if math.isinf(cell.cost) else f"{cell.cost:.4g} {unit}".rstrip()
    return f"K={cell.clients_per_round}, E={cell.local_steps} ({cost})"
