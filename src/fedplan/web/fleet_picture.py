"""The fleet's picture: how long a round takes each device, by group where groups take turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.plan import GroupCost
from fedplan.figures.for_screen import axis_layout
from fedplan.figures.units import fit_axis, quantity, time_unit
from fedplan.participation.slowest import log_choose_ratio
from fedplan.web.pictures import round_number, rounded

_BINS, _SLOWEST = 36, 6
_WIDE = 20.0  # a fleet whose times differ more than this is shown on a logarithmic axis


def fleet_picture(
    fleet: Fleet,
    local_steps: int,
    waits: tuple[str, float] | None,
    *,
    groups: Sequence[GroupCost] = (),
    sampled: int | None = None,
) -> dict[str, Any]:
    """How long a round takes each device at this E.

    waits : what a round takes, with its name.
    groups : those that take turns: contiguous in time, the fastest first.
    sampled : clients of a round that are drawn with equal chances, for who the slowest are.
    """
    times = fleet.round_times_s(local_steps)
    low, high = float(times.min()), float(times.max())
    unit = time_unit(float(np.median(times)))
    wide = high > _WIDE * low
    if low == high:
        edges = np.array([0.9 * low, 1.1 * high])
    else:
        edges = np.geomspace(low, high, _BINS + 1) if wide else np.linspace(low, high, _BINS + 1)
        edges[0], edges[-1] = low, high
    axis = fit_axis("a device's seconds in a round", unit, [*edges[[0, -1]]], log=wide)
    lines = [("mean device", float(np.average(times, weights=fleet.count)))]
    if waits is not None:
        lines.append(waits)
    place, base, counts, group = _bars(fleet, times, edges, [one.clients for one in groups])
    return {
        "left": rounded(edges[place] / unit.size),
        "right": rounded(edges[place + 1] / unit.size),
        "base": base.tolist(),
        "counts": counts.tolist(),
        "group": group.tolist() if groups else None,
        "lines": [
            {"at": round_number(value / unit.size), "name": f"{name}: {quantity(value, unit)}"}
            for name, value in lines
        ],
        "xaxis": axis_layout(axis) | {"title": {"text": f"a device's round ({unit.name})"}},
        "slowest": [] if sampled is None else _slowest(fleet, times, sampled),
        "num_clients": len(fleet),
        "local_steps": local_steps,
    }


def _bars(
    fleet: Fleet, times: FloatArray, edges: FloatArray, sizes: Sequence[int]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Bin, height of its foot, devices and group of every bar; group -1 has no data, or no name.

    Devices in a row by time are cut at the edges of bins and at the ends of groups.
    """
    trains = fleet.samples > 0 if sizes else np.zeros(times.size, dtype=bool)
    grouped, idle = (
        np.histogram(times, bins=edges, weights=fleet.count * chosen)[0].astype(np.int64)
        for chosen in (trains, ~trains)
    )
    bins, ends = np.cumsum([0, *grouped]), np.cumsum([0, *sizes])
    cuts = np.union1d(bins, ends)
    starts = cuts[:-1]
    place = np.searchsorted(bins, starts, "right") - 1
    base = starts - bins[place]
    group = np.searchsorted(ends, starts, "right") - 1
    rest = np.flatnonzero(idle)
    return (
        np.concatenate([place, rest]),
        np.concatenate([base, grouped[rest]]),
        np.concatenate([np.diff(cuts), idle[rest]]),
        np.concatenate([group, np.full(rest.size, -1)]),
    )


def _slowest(fleet: Fleet, times: FloatArray, k: int) -> list[dict[str, Any]]:
    """The slowest entries: how often each is the one that a round waits for."""
    some = np.argpartition(times, max(times.size - _SLOWEST, 0))[-_SLOWEST:]
    order = some[np.argsort(times[some])[::-1]]
    slower = np.concatenate([[0.0], np.cumsum(fleet.count[order])])
    # The chance that a sample has none of the slowest devices, the more of them the smaller.
    n, chosen = np.full(slower.shape, float(len(fleet))), np.full(slower.shape, float(k))
    shares = -np.diff(np.exp(log_choose_ratio(n, slower, chosen)))
    names = fleet.device or ("",) * times.size
    return [
        {
            "name": names[entry] or f"row {entry + 1:,}",
            "count": int(fleet.count[entry]),
            "time": quantity(float(times[entry]), time_unit(float(times[entry]))),
            "share": f"{share:.1%}",
        }
        for entry, share in zip(order.tolist(), shares.tolist(), strict=True)
    ]
