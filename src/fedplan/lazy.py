"""Public names imported on first use, so that importing their package is cheap."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    homes : the modules below it, each with its public names, separated by spaces.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    names = sorted(home_of)

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: names, names
