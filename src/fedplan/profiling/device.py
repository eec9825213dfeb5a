"""A device's row in a fleet.csv."""

from __future__ import annotations

import os
from pathlib import Path

from fedplan.atomic import check_target
from fedplan.core.fleet import QUANTITIES, Fleet
from fedplan.errors import InputError, InputProblem
from fedplan.tables import read_fleet, write_fleet


def read_row(path: str | os.PathLike[str], device: str) -> tuple[Fleet | None, int | None]:
    """The fleet in a file and the device's row in it, each None where there is none.

    Refuses a file that is no fleet or cannot be written, and a name that more than one row has.
    """
    check_target(path, (".csv",))
    if device != device.strip() or not device.isprintable() or not device:
        raise InputError(
            f"--device must be one line of text without spaces around it, but got {device!r}."
        )
    if not Path(path).exists():
        return None, None
    fleet = read_fleet(path)
    rows = [row for row, name in enumerate(fleet.device or ()) if name == device]
    if len(rows) > 1:
        message = (
            f"device {device} stands in {len(rows)} rows, so none can be replaced. Leave one, or "
            "give another --device."
        )
        raise InputError(InputProblem(source=Path(path).name, message=message))
    return fleet, rows[0] if rows else None


def write_row(path: str | os.PathLike[str], device: str, quantities: dict[str, float]) -> bool:
    """Add the device's row to the file, or put it in place of the one it has: True then.

    A row that is replaced keeps its count.
    """
    fleet, row = read_row(path, device)
    if fleet is None:
        write_fleet(path, Fleet(**quantities, device=[device]))
        return False
    columns = {name: getattr(fleet, name).tolist() for name in (*QUANTITIES, "count")}
    names = list(fleet.device or [""] * fleet.count.size)
    if row is None:
        names.append(device)
        for name, values in columns.items():
            values.append(1 if name == "count" else quantities[name])
    else:
        for name in QUANTITIES:
            columns[name][row] = quantities[name]
    write_fleet(path, Fleet(**columns, device=names))
    return row is not None
