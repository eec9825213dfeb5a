"""`fedplan profile --fleet-from`: the devices of a live study, from its rounds."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fedplan.cli.output import check_file, print_result, say_at_the_end
from fedplan.cli.stored import find_stored, open_stored
from fedplan.errors import InputError
from fedplan.profiling import Measured
from fedplan.store import Store
from fedplan.studies.devices import Devices, observed_devices
from fedplan.tables import write_fleet
from fedplan.words import Table, small

_PARTS = {"step_time_s": "s", "comm_time_s": "s", "step_energy_j": "J", "comm_energy_j": "J"}
_MOST_SHOWN = 10  # rejected observations


def show_fleet(url: str, study: str | None, output: str | None, output_format: str) -> None:
    """Print what the devices of a study (by default the latest) cost, and write their fleet.csv."""
    check_file(output, (".csv",))
    with open_stored(url) as store:
        name, devices = _find(store, url, study)
    if output is not None:
        write_fleet(output, devices.fleet)
        if output_format == "table":
            say_at_the_end(f"Written: {output} ({len(devices.fleet):,} devices)")
    document = {"success": True, "study": name, "store": url, **_as_json(devices), "output": output}
    print_result(output_format, document, _blocks(name, devices))


def _find(store: Store, url: str, study: str | None) -> tuple[str, Devices]:
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


def _as_json(devices: Devices) -> dict[str, Any]:
    known = devices.costs.devices
    return {
        "devices": [
            {
                "device": devices.names[client],
                "client": client,
                "num_observations": costs.num_observations,
                **{part: (cost := getattr(costs, part)) and asdict(cost) for part in _PARTS},
            }
            for client, costs in known.items()
        ],
        "unknown": [name for client, name in enumerate(devices.names) if client not in known],
        "rejected": list(devices.costs.rejected),
    }


def _blocks(study: str, devices: Devices) -> Iterator[Table | str]:
    yield f"study {study}; each value with its 90% interval"
    titles = ("rounds", "local step", "round besides", "energy of a step", "of a round besides")
    yield Table(("device", *titles), list(_rows(devices)), left=("device",))
    if rejected := devices.costs.rejected:
        shown, more = rejected[:_MOST_SHOWN], len(rejected) - _MOST_SHOWN
        rest = [f"... and {more:,} more: --format json has them all."] if more > 0 else []
        yield "\n  ".join([f"Not believed, {len(rejected):,}:", *shown, *rest])


def _rows(devices: Devices) -> Iterator[tuple[str, ...]]:
    for client, name in enumerate(devices.names):
        if (costs := devices.costs.devices.get(client)) is None:
            yield name, "0", "as the median device"
        else:
            parts = (_shown(getattr(costs, part), unit) for part, unit in _PARTS.items())
            yield name, f"{costs.num_observations:,}", *parts


def _shown(part: Measured | None, unit: str) -> str:
    if part is None:
        return "unknown"
    return f"{small(part.value, unit)} ({small(part.low, unit)} to {small(part.high, unit)})"
