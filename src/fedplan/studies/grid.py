"""Grid: the K, or groups, and E that a sweep tries, as requested or by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedplan.core.fleet import Fleet
from fedplan.errors import Collector, InputProblem
from fedplan.participation import Turns
from fedplan.studies.study import Study
from fedplan.studies.study_file import read_study

LISTS = ("clients-per-round", "groups", "local-steps")
_MOST_GROUPS = 64  # of the default
_DEFAULT_POINTS = 6
_LEAST_BALANCE = 4.0  # below it the default's smallest E would be less than one step


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The values of K, or of the number of groups that take turns, and of E, each rising."""

    local_steps: tuple[int, ...]
    clients_per_round: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.who) * len(self.local_steps)

    @property
    def who(self) -> tuple[int, ...]:
        """The values of K, or of the number of groups."""
        return self.clients_per_round or self.groups

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every (K, E), most local steps first, so that the longest runs do not come last."""
        return [(k, e) for e in reversed(self.local_steps) for k in self.who]

    @property
    def keys(self) -> dict[str, tuple[int, ...]]:
        """The grid as a study is stored with it: lists instead of one setting; see `of_keys`."""
        return {"groups" if self.groups else LISTS[0]: self.who, "local-steps": self.local_steps}

    @classmethod
    def of_keys(cls, training: Mapping[str, Any]) -> Grid | None:
        """The grid of a stored study; None if it was not swept.

        >>> grid = Grid(local_steps=(5, 10), groups=(2, 4))
        >>> Grid.of_keys(grid.keys) == grid, Grid.of_keys({"local-steps": 5})
        (True, None)
        """
        lists = {
            key.replace("-", "_"): tuple(training[key])
            for key in LISTS
            if isinstance(training.get(key), list | tuple)
        }
        return cls(**lists) if len(lists) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptStudy:
    """A study with a command's grid: the values to try of each key."""

    study: Study
    lists: dict[str, tuple[int, ...]]

    def grid(self, fleet: Fleet) -> Grid:
        """The grid, with defaults for what was not given."""
        default = default_grid(fleet)
        clients, groups, steps = map(self.lists.get, LISTS)
        steps = steps or default.local_steps
        if self.study.training.participation == Turns.law:
            most = float(min(len(fleet), _MOST_GROUPS))
            return Grid(groups=groups or _geometric(1.0, most), local_steps=steps)
        return Grid(clients_per_round=clients or default.clients_per_round, local_steps=steps)


def read_sweep(
    name: str, overrides: Iterable[str] = (), *, required: Sequence[str] = ("target-loss", "fleet")
) -> SweptStudy:
    """Read a study to sweep; clients-per-round, groups and local-steps may be lists: `1,2,5`.

    InputError carries every problem: of the lists, of the study, and missing requirements.

    >>> swept = read_sweep("demo", ["clients-per-round=5,1", "seeds=2"])
    >>> swept.lists, swept.study.training.seeds
    ({'clients-per-round': (1, 5)}, 2)
    """
    collector = Collector()
    lists: dict[str, tuple[int, ...]] = {}
    others = []
    for text in overrides:
        key, equals, value = (part.strip() for part in text.partition("="))
        key = key.removeprefix("training.")
        if key in LISTS and equals:
            lists[key] = _whole_numbers(key, value, collector)
        else:
            others.append(text)
    # The study is checked with the largest value of each list.
    largest = [f"{key}={max(values)}" for key, values in lists.items() if values]
    study = collector.attempt(lambda: read_study(name, [*others, *largest], required=required))
    return SweptStudy(study=collector.finished(study), lists=lists)


def _whole_numbers(key: str, text: str, collector: Collector) -> tuple[int, ...]:
    found = set()
    for word in text.split(","):
        try:
            number = int(word)
        except ValueError:
            number = 0
        if number >= 1:
            found.add(number)
        else:
            message = (
                f"{key} must be whole numbers from 1 on with commas between them, such as 1,2,5, "
                f"but got {word.strip()!r} in {key}={text}."
            )
            collector.add(InputProblem(source="command line", message=message))
    return tuple(sorted(found))


def default_grid(fleet: Fleet) -> Grid:
    """About 6 x 6, both geometric: K from 1 to N, E around t_m / t_p.

    There computing takes as long as communicating; E goes from a quarter of it to eight times it.

    >>> grid = default_grid(Fleet(step_time_s=0.1, comm_time_s=2.0, count=20))
    >>> grid.clients_per_round, grid.local_steps
    ((1, 2, 3, 6, 11, 20), (5, 10, 20, 40, 80, 160))
    """
    balance = max(fleet.mean("comm_time_s") / fleet.mean("step_time_s"), _LEAST_BALANCE)
    return Grid(
        clients_per_round=_geometric(1.0, float(len(fleet))),
        local_steps=_geometric(balance / 4, balance * 8),
    )


def _geometric(low: float, high: float) -> tuple[int, ...]:
    values = np.geomspace(low, high, _DEFAULT_POINTS).round().astype(np.int64)
    return tuple(sorted(set(values.tolist())))
