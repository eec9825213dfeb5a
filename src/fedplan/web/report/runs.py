"""The sections of anything else a store has: runs, what was decided, and the devices seen."""

from __future__ import annotations

from fedplan.core.fleet import QUANTITIES
from fedplan.errors import InputError
from fedplan.figures import alone, convergence_data
from fedplan.markup import Markup, join, tag
from fedplan.store import RunEntry
from fedplan.studies.stored import Recalled
from fedplan.web.report.parts import (
    Section,
    amount,
    facts,
    figure,
    joules,
    run_table,
    seconds,
    section,
    wide_table,
)

_MOST_RUNS = 200  # of the table


def runs_sections(found: Recalled) -> tuple[str, str, list[Section]]:
    """Status, message and sections; what was asked is not known, so that runs speak for it."""
    message = f"{len(found.runs):,} run{'' if len(found.runs) == 1 else 's'} in the store."
    pairs = [("What there is", message)]
    last = _last_run(found)
    status = "stored"
    if last is not None:
        status = {"target": "reached", "diverged": "diverged"}.get(last.status, last.status)
        message = _training(last)
        pairs.append(("Training", message))
        used = (f"from round {start:,}: K={k:,}, E={e:,}" for start, k, e in _plans(found))
        pairs.append(("Settings used", "; ".join(used)))
    if found.reason:
        pairs.append(("No more is said because", found.reason))
    sections = [section("Summary", facts(pairs))]
    if found.runs:
        sections.append(section("Runs", _figure(found), _table(found)))
    if found.devices is not None:
        sections.append(section("Devices", _devices(found)))
    return status, message, sections


def _last_run(found: Recalled) -> RunEntry | None:
    """The training run of an app that plans by itself; None where there is no such thing."""
    plans = _plans(found)
    if not plans:
        return None
    _, clients, steps = plans[-1]
    # Pilots have other seeds, and larger ones.
    runs = [r for r in found.runs if (r.clients_per_round, r.local_steps) == (clients, steps)]
    return min(runs, key=lambda run: run.seed, default=None)


def _training(run: RunEntry) -> str:
    ends = {"target": "reached its target", "unfinished": "has not ended"}
    end = ends.get(run.status, f"was ended by: {run.status}")
    energy = f", {joules(run.energy_j)}" if run.energy_j else ""
    loss = "" if run.final_loss is None else f", at a loss of {run.final_loss:.4g}"
    return (
        f"Training with {run.setting.label} {end} after {run.num_rounds:,} rounds, "
        f"{seconds(run.time_s)}{energy}{loss}."
    )


def _plans(found: Recalled) -> list[list[int]]:
    """The round that each setting was used from, and its K and E."""
    plans = found.steps.get("plans")
    if not isinstance(plans, list):
        return []
    return [
        plan
        for plan in plans
        if isinstance(plan, list) and len(plan) == 3 and all(isinstance(n, int) for n in plan)
    ]


def _figure(found: Recalled) -> Markup:
    if not found.records:
        return Markup("")
    try:
        data = convergence_data(found.records, title="")
    except InputError:  # no run has a loss, or all have diverged
        return Markup("")
    words = "Mean over the seeds of each K and E, with one standard deviation."
    # One figure for each panel: side by side they would not fit a phone.
    return join(
        figure(
            alone(panel),
            f"{panel.y.label} against {panel.x.label}".capitalize(),
            words,
        )
        for panel in data.panels
    )


def _table(found: Recalled) -> Markup:
    parts = [run_table("Runs, by K, E and seed", found.runs[:_MOST_RUNS])]
    if (more := len(found.runs) - _MOST_RUNS) > 0:
        parts.append(tag("p", f"{more:,} more runs are in the store: `fedplan export` writes all."))
    return join(parts)


def _devices(found: Recalled) -> Markup:
    if found.devices is None:
        raise AssertionError("devices were observed")
    fleet = found.devices.fleet
    names = fleet.device or ()
    rows = [
        (name, *(amount(float(getattr(fleet, quantity)[place])) for quantity in QUANTITIES))
        for place, name in enumerate(names[:_MOST_RUNS])
    ]
    head = ("device", "s a step", "s an exchange", "J a step", "J an exchange")
    return wide_table("Devices, by all that was observed of them", head, rows)
