"""Basis: what the explorer was started with, and the fleets and pilots it was given since."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Lock
from typing import Any, Generic, TypeVar

from fedplan.convergence.bound import Bound
from fedplan.convergence.pilots import DESCENT, Pilot
from fedplan.convergence.saturation import RANGE, ROUNDS, Saturation
from fedplan.core.fleet import Fleet
from fedplan.csvfile import Upload
from fedplan.errors import InputError
from fedplan.participation.rankings import remembering
from fedplan.planning.example import EXAMPLE_BOUND, example_fleet
from fedplan.tables import read_fleet, read_pilots

_MOST_FLEETS = 16
_MOST_ENTRIES = 300_000  # of all fleets kept, but for the one in use
_RANKINGS = 64  # remembered a fleet: the E of the figures, and those a search looks at
_MOST_BYTES = 1 << 28  # of one fleet's rankings
_BYTES_AN_ENTRY = 24  # of one ranking, and of what else is kept beside it
_MOST_PILOTS = 64
_QUICK = 5_000  # entries of a fleet that is planned for in some hundredths of a second

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """A fleet, with the words that make it again: on the command line, and in Python.

    number : tells it from every other, also in another process.
    """

    name: str
    fleet: Fleet
    flags: tuple[str, ...]
    python: str
    summary: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    number: int = field(default_factory=count().__next__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """What is known of convergence: a bound for a target gap, or the pilots it is fitted to.

    saturation : what is assumed where nothing is known.
    relative_to : what rounds are relative to, where they are not absolute.
    is_own : whether somebody at a page has moved it.
    """

    name: str
    bound: Bound | None = None
    pilots: tuple[Pilot, ...] = ()
    saturation: Saturation | None = None
    target_gap: float = 1.0
    relative_to: str | None = None
    is_own: bool = False
    flags: tuple[str, ...]
    python: str

    @property
    def is_measured(self) -> bool:
        """Whether there is a bound or pilots."""
        return self.saturation is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a page begins with; `store` is where runs are kept."""

    devices: Devices
    convergence: Convergence
    store: str


def example_basis(store: str) -> Basis:
    """The built-in fleet of 100 devices and its bound."""
    return Basis(
        devices=Devices(
            name="the built-in example",
            fleet=example_fleet(),
            flags=("--example",),
            python="example_fleet()",
        ),
        convergence=Convergence(
            name="the built-in example",
            bound=EXAMPLE_BOUND,
            relative_to="b0 = 1 and a target gap of 1",
            flags=(),
            python=repr(EXAMPLE_BOUND),
        ),
        store=store,
    )


class Recent(Generic[T]):
    """Values by name, the least recently used forgotten first; for any threads."""

    def __init__(self, most: int, weight: Callable[[T], int], most_weight: float) -> None:
        self._most, self._weight, self._most_weight = most, weight, most_weight
        self._values: OrderedDict[object, T] = OrderedDict()
        self._lock = Lock()

    def find(self, name: object) -> T | None:
        """What is kept under a name."""
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
            return self._values.get(name)

    def keep(self, name: object, value: T) -> T:
        """Keep a value, and hand it on."""
        with self._lock:
            self._values[name] = value
            self._values.move_to_end(name)
            while len(self._values) > 1 and (
                len(self._values) > self._most
                or sum(map(self._weight, self._values.values())) > self._most_weight
            ):
                self._values.popitem(last=False)
            return value


def recent_devices() -> Recent[Devices]:
    """Devices by name, within bounds."""
    return Recent(_MOST_FLEETS, lambda devices: devices.fleet.count.size, _MOST_ENTRIES)


class Shelf:
    """What pages have uploaded or drawn, in memory alone and within bounds."""

    def __init__(self, basis: Basis) -> None:
        self.basis = replace(basis, devices=_with_memory(basis.devices))
        self._devices = recent_devices()
        self._pilots: Recent[Convergence] = Recent(
            _MOST_PILOTS, lambda known: len(known.pilots), 10_000
        )

    def add_fleet(self, upload: Upload) -> tuple[str, Devices]:
        """Read an uploaded fleet.csv, and say under which id it is kept."""
        fleet = read_fleet(upload)
        devices = Devices(
            name=upload.name,
            fleet=fleet,
            flags=("--fleet", upload.name),
            python=f"read_fleet({upload.name!r})",
        )
        id_ = _id_of(upload)
        return id_, self._devices.keep(id_, _with_memory(devices))

    def add_pilots(self, upload: Upload) -> tuple[str, Convergence]:
        """Read an uploaded pilots.csv, and say under which id it is kept."""
        id_ = _id_of(upload)
        return id_, self._pilots.keep(id_, piloted(upload.name, tuple(read_pilots(upload))))

    def find_fleet(self, id_: str) -> Devices:
        """An uploaded fleet."""
        if (found := self._devices.find(id_)) is None:
            raise InputError("this fleet is not here any more. Upload the file again.")
        return found

    def find_pilots(self, id_: str) -> Convergence:
        """Uploaded pilots."""
        if (found := self._pilots.find(id_)) is None:
            raise InputError("these pilots are not here any more. Upload the file again.")
        return found

    def is_large(self, state: Mapping[str, Any]) -> bool:
        """Whether planning for this state's fleet takes long; of a wrong state, no matter what."""
        which = state.get("fleet")
        if which == "drawn":
            size = state.get("num_clients", 0)
            return not isinstance(size, int | float) or size > _QUICK
        known = self._devices.find(which) if isinstance(which, str) else None
        return (known or self.basis.devices).fleet.count.size > _QUICK

    def drawn(self, key: object, draw: Callable[[], Devices]) -> Devices:
        """A drawn fleet; drawn again only where it was forgotten."""
        return self._devices.find(key) or self._devices.keep(key, _with_memory(draw()))


def piloted(name: str, pilots: tuple[Pilot, ...]) -> Convergence:
    """What is known from the pilots of a file of this name."""
    return Convergence(
        name=name,
        pilots=pilots,
        relative_to=DESCENT,
        flags=("--pilots", name),
        python=f"read_pilots({name!r})",
    )


def unmeasured(
    low: float = RANGE[0], high: float = RANGE[1], rounds: float = 2 * ROUNDS
) -> Convergence:
    """Nothing is known but a range of the saturation, and about how many rounds all clients need.

    >>> unmeasured(10.0, 1000.0).saturation.saturation
    100.0
    """
    # With as many steps as the saturation has, all clients need twice the fewest rounds.
    known = Saturation.within(low, high, rounds=rounds / 2)
    return Convergence(
        name="nothing measured",
        saturation=known,
        flags=("--saturation", repr(low), repr(high), "--rounds", repr(rounds)),
        python=f"Saturation.within({low!r}, {high!r}, rounds={known.rounds!r})",
    )


def _with_memory(devices: Devices) -> Devices:
    entries = devices.fleet.count.size
    size = min(_RANKINGS * _BYTES_AN_ENTRY * max(entries, 10_000), _MOST_BYTES)
    # The summary sorts the whole fleet, which would be felt at every move of a slider.
    return replace(devices, fleet=remembering(devices.fleet, size), summary=devices.fleet.summary())


def _id_of(upload: Upload) -> str:
    return hashlib.sha256(upload.name.encode() + b"\0" + upload.content).hexdigest()[:24]
