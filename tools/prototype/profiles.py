"""Profiles: what each device of a prototype may use of the processor and of the network."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedplan.errors import InputError, InputProblem

LINK = "superlink"  # how the one process is called that is no device
MAX_DEVICES = 200  # of one bridge, whose addresses end in 2 to 201
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device: a share of a core, and megabits a second each way; None is without a limit."""

    name: str
    cpu: float | None = None
    up_mbit: float | None = None
    down_mbit: float | None = None
    delay_ms: float = 0.0  # of every packet, each way


# In the order of the boards, not at their speeds: six devices must fit on two cores, and with much
# less than a fifth of a core a client process of Flower has not ended when the next one starts.
_PI_MIX = {
    "pi3": {"cpu": 0.2, "up_mbit": 10.0, "down_mbit": 20.0},
    "pi4": {"cpu": 0.28, "up_mbit": 25.0, "down_mbit": 50.0},
    "pi5": {"cpu": 0.4, "up_mbit": 50.0, "down_mbit": 100.0},
}
_EVEN = {"device": {"cpu": 0.2, "up_mbit": 25.0, "down_mbit": 50.0}}
PROFILES: Mapping[str, Mapping[str, Mapping[str, float]]] = {"pi-mix": _PI_MIX, "even": _EVEN}

_LIMITS = {  # key: lowest and highest value that the kernel can be asked for
    "cpu": (0.01, 1024.0),
    "up_mbit": (0.01, 100_000.0),
    "down_mbit": (0.01, 100_000.0),
    "delay_ms": (0.0, 60_000.0),
}


def read_profile(profile: str, num_devices: int | None = None) -> tuple[Device, ...]:
    """The devices of a built-in profile, whose kinds take turns, or of a TOML file, as they stand.

    >>> [device.name for device in read_profile("pi-mix", 4)]
    ['pi3-1', 'pi4-1', 'pi5-1', 'pi3-2']
    >>> read_profile("even", 0)
    Traceback (most recent call last):
    fedplan.errors.InputError: `1 <= devices <= 200` must hold, but got 0. Give --devices a ...
    """
    if num_devices is not None and not 1 <= num_devices <= MAX_DEVICES:
        raise InputError(
            f"`1 <= devices <= {MAX_DEVICES}` must hold, but got {num_devices}. "
            "Give --devices a number in that range."
        )
    if profile in PROFILES:
        return _take_turns(PROFILES[profile], 6 if num_devices is None else num_devices)
    devices = _read_file(profile)
    if num_devices not in (None, len(devices)):
        raise InputError(
            InputProblem(
                source=profile,
                message=f"names {len(devices)} devices, but --devices asks for {num_devices}. "
                "Leave --devices out.",
            )
        )
    return devices


def _take_turns(kinds: Mapping[str, Mapping[str, float]], num_devices: int) -> tuple[Device, ...]:
    names = list(kinds)
    return tuple(
        Device(name=f"{kind}-{place // len(names) + 1}", **kinds[kind])
        for place in range(num_devices)
        for kind in [names[place % len(names)]]
    )


def _read_file(path: str) -> tuple[Device, ...]:
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        message = f"there is no such file or profile. Built in: {', '.join(PROFILES)}."
        raise InputError(InputProblem(source=path, message=message)) from None
    except (OSError, ValueError) as error:  # unreadable, not UTF-8, not TOML
        raise InputError(InputProblem(source=path, message=f"cannot be read ({error}).")) from error
    tables = content.get("device")
    problems = [f"has the key {key}, which is unknown." for key in content if key != "device"]
    if not (isinstance(tables, list) and tables and all(isinstance(one, dict) for one in tables)):
        problems.append("must have a [[device]] table for every device.")
        tables = []
    elif len(tables) > MAX_DEVICES:
        problems.append(f"has {len(tables)} devices, more than {MAX_DEVICES}.")
    for place, table in enumerate(tables, start=1):
        problems += [f"device {place}: {problem}" for problem in _faults(table)]
    problems += _twice([table.get("name") for table in tables])
    if problems:
        raise InputError([InputProblem(source=path, message=problem) for problem in problems])
    return tuple(
        Device(**{key.replace("-", "_"): value for key, value in table.items()}) for table in tables
    )


def is_name(name: str) -> bool:
    """Whether a device or a prototype can be called so: it becomes part of names in the kernel.

    >>> is_name("pi-4"), is_name("../pi"), is_name("-pi")
    (True, False, False)
    """
    return _NAME.fullmatch(name) is not None


def _faults(table: dict[str, Any]) -> list[str]:
    limits = {key.replace("_", "-"): limit for key, limit in _LIMITS.items()}
    name = table.get("name")
    faults = [
        f"the key {key} is unknown. Known: name, {', '.join(limits)}."
        for key in table
        if key != "name" and key not in limits
    ]
    if not isinstance(name, str) or not is_name(name) or name == LINK:
        faults.append(
            "name must be lower-case letters, digits and hyphens, at most 31, no hyphen first and "
            f"not {LINK}, but got {name!r}."
        )
    for key, (lowest, highest) in limits.items():
        value = table.get(key, lowest)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or not lowest <= value <= highest:
            faults.append(f"`{lowest:g} <= {key} <= {highest:g}` must hold, but got {value!r}.")
    return faults


def _twice(names: Sequence[object]) -> list[str]:
    seen: list[object] = []
    faults = []
    for name in names:
        if name is not None and name in seen:
            faults.append(f"has two devices named {name!r}; names must differ.")
        seen.append(name)
    return faults
