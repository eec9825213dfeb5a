"""`fedplan profile --fleet-from`: the devices of a live study, by the rounds they took part in."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.output import check_file, console, print_json
from fedplan.cli.stored import find_stored, open_stored
from fedplan.cli.text import small
from fedplan.errors import InputError

if TYPE_CHECKING:
    from fedplan.profiling import Measured
    from fedplan.store import Store
    from fedplan.studies.devices import Devices

_PARTS = {"step_time_s": "s", "comm_time_s": "s", "step_energy_j": "J", "comm_energy_j": "J"}
_MOST_SHOWN = 10  # observations that were not believed


def show_fleet(url: str, study: str | None, output: str | None, output_format: str) -> None:
    """Print what the devices cost, and write their fleet.csv; of the latest study without one."""
    from fedplan.tables import write_fleet

    check_file(output, (".csv",))
    with open_stored(url) as store:
        name, devices = _find(store, url, study)
    fleet = devices.fleet
    if output is not None:
        write_fleet(output, fleet)
    if output_format == "json":
        print_json(_as_json(name, url, devices, output))
    else:
        _print_table(name, devices)
        if output is not None:
            click.echo(f"Written: {output} ({len(fleet):,} devices)", err=True)


def _find(store: Store, url: str, study: str | None) -> tuple[str, Devices]:
    from fedplan.studies.devices import observed_devices

    if study is not None:
        entry = find_stored(store, study, url)
        if (devices := observed_devices(store, entry)) is None:
            raise InputError(
                f"{study} has no observations of real devices in {url}: it was simulated, or has "
                "not begun. `fedplan list` shows what there is."
            )
        return study, devices
    for latest in reversed(store.studies()):
        if (devices := observed_devices(store, latest)) is not None:
            return latest.name, devices
    raise InputError(
        f"no study in {url} was trained on real devices. Run one on a Flower federation first."
    )


def _as_json(study: str, url: str, devices: Devices, output: str | None) -> dict[str, Any]:
    known = devices.costs.devices
    return {
        "success": True,
        "study": study,
        "store": url,
        "devices": [
            {
                "device": devices.names[client],
                "client": client,
                "num_observations": costs.num_observations,
                **{part: _interval(getattr(costs, part)) for part in _PARTS},
            }
            for client, costs in known.items()
        ],
        "unknown": [name for client, name in enumerate(devices.names) if client not in known],
        "rejected": list(devices.costs.rejected),
        "output": output,
    }


def _interval(part: Measured | None) -> dict[str, float] | None:
    return None if part is None else asdict(part)


def _print_table(study: str, devices: Devices) -> None:
    from rich.markup import escape
    from rich.table import Table

    out = console()
    out.print(f"study {study}; each value with its 90% interval\n", markup=False)
    table = Table(box=None)
    table.add_column("device")
    titles = ("rounds", "local step", "round besides", "energy of a step", "of a round besides")
    for title in titles:
        table.add_column(title, justify="right")
    known = devices.costs.devices
    for client, name in enumerate(devices.names):
        if (costs := known.get(client)) is None:
            table.add_row(escape(name), "0", "as the median device", "", "", "")
            continue
        parts = (_shown(getattr(costs, part), unit) for part, unit in _PARTS.items())
        table.add_row(escape(name), f"{costs.num_observations:,}", *parts)
    out.print(table)
    rejected = devices.costs.rejected
    if rejected:
        out.print(f"\nNot believed, {len(rejected):,}:")
        for line in rejected[:_MOST_SHOWN]:
            out.print(f"  {line}", markup=False)
        if len(rejected) > _MOST_SHOWN:
            out.print(
                f"  ... and {len(rejected) - _MOST_SHOWN:,} more: --format json has them all."
            )


def _shown(part: Measured | None, unit: str) -> str:
    if part is None:
        return "unknown"
    return f"{small(part.value, unit)} ({small(part.low, unit)} to {small(part.high, unit)})"
