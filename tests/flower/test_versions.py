"""Which versions of Flower fedplan is for: those on which these tests were run, and no other."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

TRIED = ("1.40", "1.41", "1.42")


def test_the_installed_flower_is_one_that_was_tried():
    installed = version("flwr")
    assert installed.rpartition(".")[0] in TRIED, (
        f"flwr {installed} was not tried. Run tests/flower, tests/contracts and the examples on "
        "it, mend what fails, and add it to TRIED and to the range in pyproject.toml."
    )


def test_the_package_asks_for_what_was_tried():
    content = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(content)["project"]["optional-dependencies"]
    major, minor = TRIED[-1].split(".")
    assert f"flwr>={TRIED[0]},<{major}.{int(minor) + 1}" in extras["flower"]
