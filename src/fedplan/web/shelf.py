"""The shelf: what the explorer was started with, and what was uploaded since."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from fedplan.csvfile import Upload
from fedplan.errors import InputError, InputProblem
from fedplan.participation.rankings import Cache, with_cache
from fedplan.tables import read_fleet, read_pilots
from fedplan.web.question import Convergence, Devices

MOST_ROWS = 200_000  # of a fleet that a page brings: planned for in two or three seconds
_MOST_FLEETS = 16
_MOST_ENTRIES = 300_000  # of all fleets kept, except the one in use
_RANKINGS = 64  # remembered per fleet: the E of the figures, and those a search looks at
_MOST_BYTES = 1 << 28  # of one fleet's rankings
_BYTES_PER_ENTRY = 24  # of one ranking, and of what else is kept beside it
_MOST_FILES, _MOST_PILOTS = 64, 10_000
_QUICK = 5_000  # entries of a fleet that is planned for in some hundredths of a second

T = TypeVar("T")


def cache(most: int, most_size: int, size: Callable[[T], int]) -> Cache[T]:
    """A cache of so many values of this size together; one alone may be larger."""
    return Cache(most_size, lambda value: min(max(size(value), most_size // most), most_size))


class Shelf:
    """What a page begins with, and what pages have uploaded or drawn; in memory, within bounds.

    store : where runs are kept.
    devices, convergence : those of the built-in example where none are given.
    """

    def __init__(
        self, store: str, devices: Devices | None = None, convergence: Convergence | None = None
    ) -> None:
        self.store = store
        self.devices = _with_cache(devices or Devices.of_example())
        self.convergence = convergence or Convergence.of_example()
        self._devices: Cache[Devices] = cache(
            _MOST_FLEETS, _MOST_ENTRIES, lambda devices: devices.fleet.count.size
        )
        self._pilots: Cache[Convergence] = cache(
            _MOST_FILES, _MOST_PILOTS, lambda known: known.num_pilots
        )

    def add_fleet(self, upload: Upload) -> tuple[str, Devices]:
        """Read an uploaded fleet.csv, and say under which id it is kept."""
        fleet, id_ = read_fleet(upload), _id_of(upload)
        if (entries := fleet.count.size) > MOST_ROWS:
            message = (
                f"must have at most {MOST_ROWS:,} rows on the page, but has {entries:,}. Give "
                "devices that are alike one row with their count, or start fedplan serve --fleet."
            )
            raise InputError(InputProblem(source=upload.name, message=message))
        devices = Devices.of_file(upload.name, fleet)
        return id_, self._devices.keep(id_, _with_cache(devices))

    def add_pilots(self, upload: Upload) -> tuple[str, Convergence]:
        """Read an uploaded pilots.csv, and say under which id it is kept."""
        id_, pilots = _id_of(upload), tuple(read_pilots(upload))
        return id_, self._pilots.keep(id_, Convergence.of_pilots(upload.name, pilots))

    def find_fleet(self, id_: str) -> Devices:
        """The devices begun with, or uploaded ones."""
        found = self.devices if id_ == "given" else self._devices.find(id_)
        return _still_here(found, "this fleet is")

    def find_pilots(self, id_: str) -> Convergence:
        """What was known at the beginning, or uploaded pilots."""
        found = self.convergence if id_ == "given" else self._pilots.find(id_)
        return _still_here(found, "these pilots are")

    def drawn(self, key: object, draw: Callable[[], Devices]) -> Devices:
        """A drawn fleet; drawn again only where it was forgotten."""
        return self._devices.find(key) or self._devices.keep(key, _with_cache(draw()))

    def is_large(self, state: Mapping[str, Any]) -> bool:
        """Whether planning for this state's fleet takes long; for a wrong state, anything."""
        which = state.get("fleet")
        if which == "drawn":
            size = state.get("num_clients", 0)
            return not isinstance(size, int | float) or size > _QUICK
        known = self._devices.find(which) if isinstance(which, str) else None
        return (known or self.devices).fleet.count.size > _QUICK


def _still_here(found: T | None, what: str) -> T:
    if found is None:
        raise InputError(f"{what} not here any more. Upload the file again.")
    return found


def _with_cache(devices: Devices) -> Devices:
    entries = devices.fleet.count.size
    size = min(_RANKINGS * _BYTES_PER_ENTRY * max(entries, 10_000), _MOST_BYTES)
    return replace(devices, fleet=with_cache(devices.fleet, size))


def _id_of(upload: Upload) -> str:
    return hashlib.sha256(upload.name.encode() + b"\0" + upload.content).hexdigest()[:24]
