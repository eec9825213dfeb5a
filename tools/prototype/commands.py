"""The commands of `python tools/prototype`: up, status, down, certs."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

import federation
from federation import Member
from fedplan.errors import InputError
from output import console, print_json
from profiles import Device, is_name, read_profile
from state import State

PROGRAM = "python tools/prototype"
name_option = click.option(
    "--name", default="prototype", show_default=True, help="Of the prototype, for `flwr run`, too."
)
folder_option = click.option(
    "--folder", metavar="DIR", help="Where its files are; without it, a folder of its name here."
)
devices_option = click.option(
    "--devices",
    "num_devices",
    type=int,
    metavar="N",
    help="How many; without it 6, or as many as the profile's file has.",
)
profile_option = click.option(
    "--profile",
    default="pi-mix",
    show_default=True,
    metavar="PROFILE",
    help="pi-mix, even, or a .toml file of one's own.",
)
format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="What to print.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def prototype() -> None:
    """Start a Flower federation of unequal devices on this machine, and remove it again.

    Each device has a network namespace with its own bandwidth and a share of the processor. That
    needs Linux, root and iproute2; --plain does without, and without limits.

    \b
    Examples:
      python tools/prototype up --devices 6 --profile pi-mix
      python tools/prototype up --plain --devices 3
      python tools/prototype status
      python tools/prototype down
    """


@prototype.command()
@devices_option
@profile_option
@click.option("--plain", is_flag=True, help="Ordinary processes on 127.0.0.1: no limits, no TLS.")
@name_option
@folder_option
@format_option
def up(
    num_devices: int | None,
    profile: str,
    plain: bool,
    name: str,
    folder: str | None,
    output_format: str,
) -> None:
    """Start a SuperLink and a SuperNode for every device, and wait until all are connected.

    It prints the lines with which to run an app or a study on them. Without --plain,
    traffic is encrypted and SuperNodes prove who they are; keys and certificates are made where
    there are none.

    \b
    Examples:
      python tools/prototype up --devices 6 --profile pi-mix
      python tools/prototype up --profile devices.toml --name lab
      python tools/prototype up --plain --devices 3
    """
    place = _folder(name, folder)
    devices = read_profile(profile, num_devices)
    if not plain:
        _caution(devices)
    state = federation.up(
        place, name, devices, plain=plain, progress=lambda text: click.echo(text, err=True)
    )
    commands = federation.next_commands(place, state)
    if output_format == "json":
        print_json({"success": True, **_as_json(place, state), "next": commands})
        return
    click.echo(f"{len(devices)} devices are connected to {state.address}. Run an app on them:")
    click.echo(f"  {commands['app']}")
    click.echo("Or a study:")
    click.echo(f"  {commands['study']}")
    click.echo("Remove them:")
    click.echo(f"  {federation.down_command(place)}")


@prototype.command()
@name_option
@folder_option
@format_option
def status(name: str, folder: str | None, output_format: str) -> None:
    """Show the devices: limits, processes, and whether they are alive.

    \b
    Examples:
      python tools/prototype status
      python tools/prototype status --name lab --format json
    """
    place = _folder(name, folder)
    found = federation.status(place)
    if found is None:
        if output_format == "json":
            print_json({"success": True, "folder": str(place), "up": False})
        else:
            click.echo(f"There is no prototype in {place}.")
        return
    state, members = found
    if output_format == "json":
        parts = [
            {"name": one.name, "pid": one.pid, "alive": one.pid is not None, "pids": one.pids}
            for one in members
        ]
        commands = federation.next_commands(place, state)
        described = {"up": True, **_as_json(place, state), "processes": parts, "next": commands}
        print_json({"success": True, **described})
        return
    _print_members(state, members)


@prototype.command()
@name_option
@folder_option
@format_option
def down(name: str, folder: str | None, output_format: str) -> None:
    """Remove a prototype: processes, namespaces, quotas. Keys, certificates and logs stay.

    It works whatever has become of the prototype, also after a crash of `up`, and more than once.

    \b
    Examples:
      python tools/prototype down
      python tools/prototype down --name lab
    """
    place = _folder(name, folder)
    removed = federation.down(place)
    if output_format == "json":
        counts = None if removed is None else asdict(removed)
        print_json({"success": True, "folder": str(place), "removed": counts})
    elif removed is None:
        click.echo(f"There is no prototype in {place}: nothing to remove.")
    else:
        click.echo(
            f"Removed: {removed.processes} processes, {removed.namespaces} namespaces, "
            f"{removed.cgroups} cgroups."
        )


@prototype.command()
@devices_option
@profile_option
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="HOST",
    help="Another address of the SuperLink, an IP or a name; may be repeated.",
)
@name_option
@folder_option
@format_option
def certs(
    num_devices: int | None,
    profile: str,
    addresses: tuple[str, ...],
    name: str,
    folder: str | None,
    output_format: str,
) -> None:
    """Make a CA, the SuperLink's certificate, and a key for every SuperNode.

    What is there already is kept, so that new devices get keys and others keep theirs. `up` uses
    these files, and makes them by itself.

    \b
    Examples:
      python tools/prototype certs
      python tools/prototype certs --folder lab --devices 20 --profile even --address link.lan
    """
    from certs import Certificates

    files = Certificates(_folder(name, folder) / "certs")
    names = [device.name for device in read_profile(profile, num_devices)]
    made = files.make(names, addresses)
    if output_format == "json":
        print_json({"success": True, "folder": str(files.folder), "made": list(map(str, made))})
    else:
        click.echo(f"Made {len(made)} files in {files.folder}" if made else "All was there.")


def _folder(name: str, folder: str | None) -> Path:
    if not is_name(name):
        raise InputError(
            f"--name must be lower-case letters, digits and hyphens, but got {name!r}."
        )
    return Path(folder if folder is not None else name)


def _caution(devices: tuple[Device, ...]) -> None:
    cores = os.cpu_count() or 1
    asked = sum(device.cpu or 1.0 for device in devices)
    if asked > cores - 0.5:  # the SuperLink runs, too
        click.echo(
            f"Note: the devices may use {asked:.3g} cores together and there are {cores}. When all "
            "are busy, they are slower than their profile says.",
            err=True,
        )


def _as_json(place: Path, state: State) -> dict[str, Any]:
    return {
        "name": state.name,
        "folder": str(place),
        "plain": state.plain,
        "address": state.address,
        "devices": [asdict(device) for device in state.devices],
    }


def _print_members(state: State, members: list[Member]) -> None:
    from rich.table import Table

    table = Table("name", "alive", box=None)
    for title in ("pid", "processes", "cpu", "up Mbit/s", "down Mbit/s", "delay ms"):
        table.add_column(title, justify="right")
    for one in members:
        device = None if state.plain else one.device
        limits = (
            [_limit(device.cpu), _limit(device.up_mbit), _limit(device.down_mbit)]
            if device
            else ["-"] * 3
        )
        table.add_row(
            one.name,
            "no" if one.pid is None else "yes",
            "-" if one.pid is None else str(one.pid),
            str(len(one.pids)),
            *limits,
            f"{device.delay_ms:g}" if device else "-",
        )
    console().print(table)


def _limit(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
