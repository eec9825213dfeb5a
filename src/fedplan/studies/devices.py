"""Devices: what a store knows about the real devices that trained a study."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fedplan.core.fleet import Fleet
from fedplan.core.records import RunRecord
from fedplan.profiling import ObservedCosts, fleet_of, observed_costs
from fedplan.store import Entry, Store, StudyEntry
from fedplan.studies.experiment import Experiment

_CLIENTS = "clients"  # a step of a study


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Devices:
    """The devices of a study, from observations; client k is called `names[k]`."""

    names: tuple[str, ...]
    costs: ObservedCosts

    @property
    def fleet(self) -> Fleet:
        """Their fleet; an unknown device is assumed to be a median one."""
        return fleet_of(self.costs.devices, self.names)


def save_names(store: Store, study: StudyEntry, names: Sequence[str]) -> None:
    """Store the clients' names, in the order of their numbers."""
    store.save_step(study, _CLIENTS, list(names))


def find_names(store: Store, study: StudyEntry) -> tuple[str, ...]:
    """The clients' names, if known."""
    return tuple(store.find_step(study, _CLIENTS) or ())


def with_devices(experiment: Experiment, store: Store) -> Experiment:
    """A live study with its devices as measured in its rounds; unchanged before the first."""
    devices = observed_devices(store, experiment.save(store))
    if devices is None or not devices.costs.devices:
        return experiment
    return replace(experiment, fleet=devices.fleet)


def observed_fleet(runs: Iterable[RunRecord], num_clients: int) -> Fleet | None:
    """The devices of these clients as observed in these runs; None if nothing is known."""
    seen = (one for run in runs for record in run.rounds for one in record.observations)
    costs = observed_costs(seen).devices
    return fleet_of(costs, [str(client) for client in range(num_clients)]) if costs else None


def observed_devices(store: Store, entry: Entry) -> Devices | None:
    """The devices, from all observations of every round.

    None without observations: simulated clients are not observed.
    """
    names = tuple(store.steps(entry).get(_CLIENTS, ()))
    runs = store.find_runs(entry.settings)
    seen = [one for run in runs for record in run.rounds for one in record.observations]
    if not seen:
        return None
    unnamed = range(len(names), 1 + max(one.client for one in seen))
    # A run that went on with another (K, E) holds the rounds before that once more.
    costs = observed_costs(dict.fromkeys(seen))
    return Devices(names=(*names, *(f"client-{number}" for number in unnamed)), costs=costs)
