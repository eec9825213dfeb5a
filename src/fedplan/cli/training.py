"""What all training commands share: their request, and the steps to carry it out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fedplan.cli.options import (
    Command,
    download_option,
    output_options,
    quiet_option,
    stack,
    store_option,
    verbose_option,
)
from fedplan.cli.output import check_file, note_kept
from fedplan.cli.progress import byte_bar, notice
from fedplan.errors import Collector, InputError
from fedplan.store import Store

if TYPE_CHECKING:
    from fedplan.studies.experiment import Experiment
    from fedplan.studies.grid import Grid
    from fedplan.studies.study import Study

T = TypeVar("T")
_COMPILING = "Compiling kernels for this machine (once, up to half a minute) ..."


_RUNNER_OPTIONS = (
    click.option(
        "--runner",
        type=click.Choice(["simulator", "flower"]),
        default="simulator",
        show_default=True,
        help="What trains: simulated clients, or the nodes of a Flower federation.",
    ),
    click.option("--federation", metavar="NAME", help="With flower: the connection of `flwr run`."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRequest:
    """The arguments that all training commands share."""

    study: str
    overrides: tuple[str, ...]
    output_format: str
    plot: str | None
    download: bool
    quiet: bool
    store_url: str = ""
    runner: str = "simulator"
    federation: str | None = None

    @property
    def required(self) -> tuple[str, ...]:
        """The keys that a study needs; devices of a federation are measured."""
        return ("target-loss",) if self.runner == "flower" else ("target-loss", "fleet")

    def read(self, read: Callable[..., T], *checks: Callable[[], None], **options: Any) -> T:
        """What `read` makes of the study; all problems, of the checks too, are raised at once."""
        collector = Collector()
        for check in (self._check_runner, *checks, lambda: check_file(self.plot)):
            collector.attempt(check)
        found = collector.attempt(lambda: read(self.study, self.overrides, **options))
        return collector.finished(found)

    def _check_runner(self) -> None:
        """Refuse one option without the other, and Flower where it is not installed."""
        if self.runner != "flower":
            if self.federation is not None:
                raise InputError("--federation goes with --runner flower.")
        elif self.federation is None:
            raise InputError(
                "--runner flower needs --federation NAME: a [superlink.NAME] in Flower's "
                "config.toml."
            )
        else:
            import_module("fedplan.flower")  # says what to install where Flower is missing

    def build(self, study: Study) -> Experiment:
        """The study's experiment, its data fetched first where that was asked for."""
        from fedplan.studies.experiment import build_experiment

        if self.download:
            fetch_data([study], quiet=self.quiet)
        return build_experiment(study, federation=self.federation)

    def open_store(self) -> Store:
        """Open the store, which keeps runs from here on."""
        note_kept(self.store_url)
        return Store(self.store_url)

    def train(
        self,
        experiment: Experiment,
        simulate: Callable[[Experiment, Store], T],
        recall: Callable[[Experiment, Store], T],
        *,
        grid: Grid | None = None,
    ) -> tuple[Experiment, T]:
        """Simulate the experiment, or let the federation run it and recall the result.

        After a federation, the experiment that is returned has the devices as observed.
        """
        if self.federation is None:
            with self.open_store() as store:
                return experiment, simulate(experiment, store)
        from fedplan.flower.launch import launch_study
        from fedplan.studies.devices import with_devices

        def follow(line: str) -> None:
            if not self.quiet:
                click.echo(line, err=True, nl=False)

        note_kept(self.store_url)
        study = experiment.study
        launch_study(study, self.federation, self.store_url, follow=follow, grid=grid)
        with self.open_store() as store:
            trained = with_devices(experiment, store)
            return trained, recall(trained, store)


def study_options(
    *, default: str | None = None, stores: bool = True, runners: bool = False
) -> Callable[[Command], Command]:
    """STUDY, KEY=VALUE and the options of `StudyRequest`, which is the command's first argument.

    default : the study where none is named: KEY=VALUE may come first then.
    runners : whether a federation can be asked to train.
    """

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def command(study: str, overrides: tuple[str, ...], **options: Any) -> Any:
            if default is not None:
                study, overrides = named_study(study, overrides, default)
            own = {name: options.pop(name) for name in StudyRequest.__slots__ if name in options}
            return function(StudyRequest(study=study, overrides=overrides, **own), **options)

        metavar = "STUDY" if default is None else "[STUDY]"
        required: dict[str, Any] = {} if default is None else {"default": default}
        return stack(
            click.argument("study", metavar=metavar, **required),
            click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1),
            *([store_option] if stores else []),
            output_options,
            download_option,
            quiet_option,
            *([verbose_option] if stores else []),
            *(_RUNNER_OPTIONS if runners else []),
        )(command)

    return decorate


def named_study(
    first: str, overrides: tuple[str, ...], default: str = "demo"
) -> tuple[str, tuple[str, ...]]:
    """The study and its overrides: where the first word is an override, it is the default study.

    >>> named_study("rounds=9", ()), named_study("lr=0.1/study.toml", ())
    (('demo', ('rounds=9',)), ('lr=0.1/study.toml', ()))
    """
    if "=" in first and not first.endswith(".toml"):
        return default, (first, *overrides)
    return first, overrides


def fetch_data(studies: Iterable[Study], *, quiet: bool) -> None:
    """Fetch MNIST if a study uses it, with a progress bar."""
    if any(study.task.data == "mnist" for study in studies):
        from fedplan.tasks import fetch_mnist

        with byte_bar("Downloading MNIST", quiet=quiet) as progress:
            fetch_mnist(progress=progress)


def compile_kernels(experiment: Experiment, *, quiet: bool) -> None:
    """Compile what its runs need, and say so if it takes a while.

    Not part of `build`, so that a store that cannot be written is refused first.
    """
    with compiling(quiet=quiet):
        experiment.simulator.warm_up()


def compiling(*, quiet: bool) -> AbstractContextManager[None]:
    """Say that kernels are being compiled, if the block takes a while."""
    return notice(_COMPILING, quiet=quiet)
