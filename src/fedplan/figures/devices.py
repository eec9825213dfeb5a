"""Devices by round time, coloured by group if groups take turns."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.plan import GroupCost
from fedplan.figures.axes import bar_axis, fit_axis
from fedplan.figures.spec import Boxes, Panel, rule
from fedplan.figures.style import PALE, VERMILLION, group_colours
from fedplan.words import number, quantity, time_unit

_BINS = 36
_WIDE = 20.0  # a fleet whose times differ more than this is shown on a logarithmic axis


def devices_panel(
    fleet: Fleet,
    local_steps: int,
    waits: tuple[str, float] | None = None,
    groups: Sequence[GroupCost] = (),
) -> Panel:
    """How long a round takes each device at this E.

    waits : what a round takes, with its name.
    groups : those that take turns: contiguous in time, the fastest first.
    """
    times = fleet.round_times_s(local_steps)
    low, high = float(times.min()), float(times.max())
    unit, is_wide = time_unit(float(np.median(times))), high > _WIDE * low
    if low == high:
        edges = np.array([0.9 * low, 1.1 * high])
    else:
        edges = (np.geomspace if is_wide else np.linspace)(low, high, _BINS + 1)
        edges[0], edges[-1] = low, high
    place, base, counts, group = _bars(fleet, times, edges, [one.clients for one in groups])
    left, right = edges[place], edges[place + 1]
    colours = [*group_colours(len(groups)), PALE]  # group -1 has the last
    ends = zip(*(edge / unit.size for edge in (left, right)), strict=True)
    hovers = tuple(
        f"{number(start)} to {number(end)} {unit.name}\n{count:,} devices{_group(rank, groups)}"
        for (start, end), count, rank in zip(ends, counts.tolist(), group.tolist(), strict=True)
    )
    bars = Boxes(
        left=left,
        right=right,
        bottom=base.astype(float),
        top=(base + counts).astype(float),
        colours=tuple(colours[rank] for rank in group.tolist()),
        hover=hovers,
    )
    y = bar_axis("devices", 1.05 * float((base + counts).max()), counts=True)
    mean = float(np.average(times, weights=fleet.count))
    lines = [rule(mean, y, f"mean device: {quantity(mean, unit)}", "dash")]
    if waits is not None:
        name, seconds = waits
        line = rule(seconds, y, f"{name}: {quantity(seconds, unit)}", "solid")
        lines.append(replace(line, colour=VERMILLION))
    return Panel(
        name="devices",
        x=fit_axis("a device's round", unit, [*edges[[0, -1]]], log=is_wide),
        y=y,
        parts=(bars, *(replace(line, layer=1) for line in lines)),
    )


def _group(rank: int, groups: Sequence[GroupCost]) -> str:
    if not groups:
        return ""
    return "\nwithout data" if rank < 0 else f"\ngroup {rank + 1}"


def _bars(
    fleet: Fleet, times: FloatArray, edges: FloatArray, sizes: Sequence[int]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Bin, base, devices and group of every bar; group -1 is for devices without data or groups.

    Devices in order of time are cut at the edges of bins and at the ends of groups.
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
