"""The rows of a pilots.csv: what is wrong with each, and with all of them together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from fedplan.convergence.pilots import Pilot
from fedplan.csvfile import MOST_PROBLEMS, Cells, comma_remedy, number
from fedplan.errors import InputError, InputProblem

_WHOLE = ("clients_per_round", "local_steps", "seed")
_LOSSES = ("upper_loss", "lower_loss")
PILOT_COLUMNS = (*_WHOLE[:2], *_LOSSES, "rounds_to_upper", "rounds_to_lower")
_MOST = 5  # lines, or pairs of losses, named in one message


class PilotRows:
    """Gathers the rows of a file block by block.

    pilots : those that are right by themselves.
    """

    def __init__(self) -> None:
        self.pilots: list[Pilot] = []
        self._rows: list[tuple[int, dict[str, Any]]] = []  # wrong ones too, with their lines
        self._num_problems = 0

    def add(self, cells: Cells, at: list[int]) -> tuple[int, list[InputProblem]]:
        """Take the rows of a block: how many, and what is wrong with each by itself."""
        problems: list[InputProblem] = []
        for line, row in zip(at, zip(*cells.values(), strict=True), strict=True):
            named = dict(zip(cells, row, strict=True))
            values = {name: _value(name, cell) for name, cell in named.items()}
            self._rows.append((line, values))
            try:
                self.pilots.append(Pilot(**values))
            except InputError as error:
                for problem in error.problems:
                    message = problem.message + comma_remedy(named[problem.column or ""])
                    problems.append(replace(problem, line=line, message=message))
            if len(problems) >= MOST_PROBLEMS:
                break
        self._num_problems += len(problems)
        return len(at), problems

    def problems(self, num_clients: int | None) -> Iterator[InputProblem]:
        """What only the whole file shows, as far as it was read."""
        if self._num_problems >= MOST_PROBLEMS:
            return
        yield from self._repeated()
        yield from self._different_losses()
        if num_clients is None:
            return
        for line, values in self._rows:
            clients = values["clients_per_round"]
            if isinstance(clients, int) and clients > num_clients:
                message = (
                    "`clients_per_round <= num_clients` must hold, but got "
                    f"clients_per_round={clients:,}, num_clients={num_clients:,}. The pilots must "
                    "be of the fleet that is planned for."
                )
                yield InputProblem(line=line, column="clients_per_round", message=message)
        if len(self._rows) == 1:
            message = (
                "`number of pilots >= 2` must hold, but got 1. Run another pilot with a different "
                "clients_per_round and local_steps."
            )
            yield InputProblem(message=message)

    def _repeated(self) -> Iterator[InputProblem]:
        first: dict[tuple[Any, ...], int] = {}
        for line, values in self._rows:
            if (before := first.setdefault(tuple(values.values()), line)) != line:
                message = (
                    f"repeats line {before}, and a run that stands twice counts twice. Remove "
                    "it; runs that came out equal are told apart by their seed."
                )
                yield InputProblem(line=line, message=message)

    def _different_losses(self) -> Iterator[InputProblem]:
        lines: dict[tuple[float, float], list[int]] = {}
        for line, values in self._rows:
            upper, lower = (values[name] for name in _LOSSES)
            if isinstance(upper, float) and isinstance(lower, float) and lower < upper:
                lines.setdefault((upper, lower), []).append(line)
        if len(lines) > 1:
            found = (f"{u:g} -> {v:g} ({_shown(at)})" for (u, v), at in [*lines.items()][:_MOST])
            message = (
                "every pilot must descend between the same two losses, or their rounds cannot be "
                f"compared, but got {', '.join(found)}. Read the rounds off at common losses."
            )
            yield InputProblem(message=message)


def _shown(lines: Iterable[int]) -> str:
    first = list(lines)
    more = ", ..." if len(first) > _MOST else ""
    word = "line" if len(first) == 1 else "lines"
    return f"{word} {', '.join(map(str, first[:_MOST]))}{more}"


def _value(name: str, cell: str) -> Any:
    value = number(cell)
    if not math.isfinite(value):  # Pilot refuses the cell as it stands, and so names it
        return None if name == "seed" and not cell else cell
    if name in _WHOLE and value.is_integer():
        return int(cell) if cell.isdigit() else int(value)  # a long seed keeps all its digits
    return value
