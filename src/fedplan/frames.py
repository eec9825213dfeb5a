"""Data frames: the only module that knows polars and pandas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fedplan.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path


def make_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A data frame of these columns: of polars if installed, else of pandas.

    >>> make_frame({"clients_per_round": [1, 2], "cost": [9.5, None]}).shape
    (2, 2)
    """
    for library in ("polars", "pandas"):
        if find_spec(library) is not None:
            return import_module(library).DataFrame(dict(columns))
    raise MissingExtraError("to_frame()", "frames", package="polars (or pandas)")


def check_parquet() -> None:
    """Refuse to write Parquet without polars."""
    if find_spec("polars") is None:
        raise MissingExtraError("Export to Parquet", "frames", package="polars")


def write_parquet(
    path: Path, kinds: Mapping[str, Any], parts: Iterable[Mapping[str, Sequence[Any]]]
) -> None:
    """Write tables one below the other; a kind is int, float, str, list[int] or list[float]."""
    import polars

    types: dict[Any, Any] = {
        int: polars.Int64,
        float: polars.Float64,
        str: polars.String,
        list[int]: polars.List(polars.Int64),
        list[float]: polars.List(polars.Float64),
    }
    schema: dict[str, Any] = {name: types[kind] for name, kind in kinds.items()}
    frames = [polars.DataFrame(schema=schema)]
    frames += [polars.DataFrame(dict(part), schema=schema) for part in parts]
    polars.concat(frames).write_parquet(path)
