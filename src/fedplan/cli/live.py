"""What trains: the simulator, or the nodes of a Flower federation."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fedplan.errors import InputError

if TYPE_CHECKING:
    from fedplan.store import Store
    from fedplan.studies.building import Experiment
    from fedplan.studies.grid import SweptStudy

T = TypeVar("T")
_OPTIONS = (
    click.option(
        "--runner",
        type=click.Choice(["simulator", "flower"]),
        default="simulator",
        show_default=True,
        help="What trains: simulated clients, or the nodes of a Flower federation.",
    ),
    click.option("--federation", metavar="NAME", help="With flower: the connection of `flwr run`."),
)


def runner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--runner` and `--federation`, checked by `check_runner`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def needed_keys(runner: str) -> tuple[str, ...]:
    """What a study must say; real devices are profiled."""
    return ("target-loss",) if runner == "flower" else ("target-loss", "fleet")


def check_runner(runner: str, federation: str | None) -> None:
    """Refuse one option without the other, and Flower where it is not installed."""
    if runner != "flower":
        if federation is not None:
            raise InputError("--federation goes with --runner flower.")
        return
    if federation is None:
        raise InputError(
            "--runner flower needs --federation NAME: a [superlink.NAME] in Flower's config.toml."
        )
    import_module("fedplan.flower")  # says what to install where Flower is missing


def on_federation(
    experiment: Experiment,
    federation: str,
    store_url: str,
    recall: Callable[[Experiment, Store], T],
    *,
    quiet: bool,
    swept: SweptStudy | None = None,
) -> tuple[Experiment, T]:
    """Have the federation run or sweep a study, and recall from the store what came of that.

    The experiment has the devices then that were profiled.
    """
    from fedplan.flower.launch import launch_study
    from fedplan.store import Store
    from fedplan.studies.devices import with_devices

    def follow(line: str) -> None:
        if not quiet:
            click.echo(line, err=True, nl=False)

    launch_study(experiment.study, federation, store_url, follow=follow, swept=swept)
    with Store(store_url) as store:
        profiled = with_devices(experiment, store)
        return profiled, recall(profiled, store)
