"""What every command that trains does first: read the study, fetch and build, compile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from fedplan.cli.progress import byte_bar, notice
from fedplan.errors import Collector

if TYPE_CHECKING:
    from fedplan.studies.building import Experiment
    from fedplan.studies.config import Study

T = TypeVar("T")
_COMPILING = "Compiling kernels for this machine (once, about {} s) ..."
_COMPILE_TIMES_S = {"logistic": 10, "lenet5": 20}


def named_study(first: str, overrides: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The study and its overrides: where the first word is an override, the study is the demo.

    >>> named_study("rounds=9", ()), named_study("lr=0.1/study.toml", ())
    (('demo', ('rounds=9',)), ('lr=0.1/study.toml', ()))
    """
    if "=" in first and not first.endswith(".toml"):
        return "demo", (first, *overrides)
    return first, overrides


def read_checked(read: Callable[[], T], *checks: Callable[[], None]) -> T:
    """What `read` gives, if all checks pass too; every problem is said at once."""
    collector = Collector()
    for check in checks:
        collector.attempt(check)
    found = collector.attempt(read)
    collector.finish()
    if found is None:
        raise AssertionError("what cannot be read is a noted problem")
    return found


def build(
    study: Study, *, download: bool, quiet: bool, federation: str | None = None
) -> Experiment:
    """The study's experiment, its data fetched first where that was asked for."""
    from fedplan.studies.building import build_experiment

    if download:
        fetch_data([study], quiet=quiet)
    return build_experiment(study, federation=federation)


def fetch_data(studies: Iterable[Study], *, quiet: bool) -> None:
    """Fetch MNIST where a study learns it, with a bar."""
    if any(study.task.data == "mnist" for study in studies):
        from fedplan.tasks import fetch_mnist

        with byte_bar("Downloading MNIST", quiet=quiet) as progress:
            fetch_mnist(progress=progress)


def compile_kernels(experiment: Experiment, *, quiet: bool) -> None:
    """Compile what its runs need, and say so where it takes a while.

    Not part of `build`: a store that cannot be written is better refused before.
    """
    with compiling(experiment.study, quiet=quiet):
        experiment.simulator.warm_up()


def compiling(study: Study, *, quiet: bool) -> AbstractContextManager[None]:
    """Say that kernels are being compiled, if the block takes a while."""
    return notice(_COMPILING.format(_COMPILE_TIMES_S[study.task.model]), quiet=quiet)
