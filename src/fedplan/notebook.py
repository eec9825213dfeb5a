"""Display in notebooks: results as small tables, and as data frames.

The HTML has no colours of its own, so that it reads on any theme, and every text is escaped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from fedplan.frames import make_frame
from fedplan.markup import join, table, tag
from fedplan.words import in_words

Row = TypeVar("Row")
_MOST_ROWS = 20  # of a table; a frame has them all
_STYLE = (
    "border-collapse: separate; border-spacing: 0.8em 0.15em; color: inherit; text-align: left; "
    "font-variant-numeric: tabular-nums;"
)


class Shown:
    """A result shown as a few facts, in a line or a table; subclasses choose them."""

    __slots__ = ()

    def _facts(self) -> Iterable[tuple[str, str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        short = (fact for fact in self._facts() if fact[1] and fact[0] not in ("why", "message"))
        return f"<{type(self).__name__}: {', '.join(map(' '.join, short))}>"

    def _repr_html_(self) -> str:
        return table_html(type(self).__name__, ("", ""), list(self._facts()))


class Rows(list[Row]):
    """A list of dataclasses of one type that is also a table.

    >>> from fedplan import Bound, Fleet, compute_frontier
    >>> fleet = Fleet(step_time_s=[0.1, 0.11, 0.12], comm_time_s=1.0, comm_energy_j=[2.0, 3.0, 1.0])
    >>> points = compute_frontier(fleet, Bound(a0=100.0, b0=1.0, c0=9.0))
    >>> points, points.to_frame()["local_steps"].to_list()
    (<5 rows of FrontierPoint>, [6, 7, 8, 9, 10])
    """

    __slots__ = ("kind",)

    def __init__(self, rows: Iterable[Row], kind: type[Row]) -> None:
        super().__init__(rows)
        self.kind = kind

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self.kind))  # type: ignore[arg-type]

    def to_frame(self) -> Any:
        """A data frame with one row per item: of polars if installed, else of pandas."""
        return make_frame({name: [getattr(row, name) for row in self] for name in self._columns})

    def __repr__(self) -> str:
        return f"<{len(self):,} row{'' if len(self) == 1 else 's'} of {self.kind.__name__}>"

    def _repr_html_(self) -> str:
        rows = [[in_words(getattr(row, name)) for name in self._columns] for row in self]
        return table_html(f"{self.kind.__name__}, {len(self):,}", self._columns, rows)


def table_html(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A small table, of the first rows if there are many.

    >>> table_html("Bound", ("", ""), [("a0", "<1>")]).count("&lt;1&gt;")
    1
    """
    shown = table(caption, head, rows[:_MOST_ROWS], style=_STYLE)
    if len(rows) <= _MOST_ROWS:
        return shown
    return join([shown, tag("p", f"... and {len(rows) - _MOST_ROWS:,} more")])
