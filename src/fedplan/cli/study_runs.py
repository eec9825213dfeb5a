"""Which runs of an experiment a study has made use of, and what for.

Runs belong to an experiment, which studies share; a study's own follow from what it says and what
it has decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedplan.store import ExperimentEntry, RunEntry, Store, StudyEntry

_UNIFORM = "uniform"  # the law of runs that say nothing of theirs
# Law, K (0 where it has none), E and the seed; and the course that steered it, if one did.
Key = tuple[str, int, int, int, str]


def runs_of_study(
    store: Store, study: StudyEntry, experiments: Iterable[ExperimentEntry]
) -> list[tuple[RunEntry, str]]:
    """The study's runs, each with what it was made for: "pilot", "training" or "sweep".

    All runs of its experiment, for "", where nothing tells its own: it had no study file.
    """
    runs = [
        run
        for experiment in experiments
        if study.has_runs_of(experiment)
        for run in store.runs(experiment.settings)
    ]
    if not _has_file(study):
        return [(run, "") for run in runs]
    roles = _roles(study, store.steps(study))
    # Where a run's end belongs to the experiment, a pilot that went on is there twice.
    longest = {
        (run.stored_setting, run.seed): run for run in sorted(runs, key=lambda run: run.num_rounds)
    }
    own = [run for run in longest.values() if _key(run) in roles]
    return [(run, roles[_key(run)]) for run in sorted(own, key=_place)]


def runs_of_experiment(
    store: Store, experiment: ExperimentEntry, studies: Iterable[StudyEntry]
) -> list[tuple[RunEntry, str]]:
    """All its runs, each with what the first of its studies that has it made it for."""
    roles: dict[Key, str] = {}
    for study in studies:
        if _has_file(study) and study.has_runs_of(experiment):
            roles = _roles(study, store.steps(study)) | roles
    return [(run, roles.get(_key(run), "")) for run in store.runs(experiment.settings)]


def _has_file(study: StudyEntry) -> bool:
    """Whether it was begun from a study file, and so has the tables and steps of one."""
    return {"task", "training"} <= study.configuration.keys()


def _roles(study: StudyEntry, steps: Mapping[str, Any]) -> dict[Key, str]:
    training = study.configuration["training"]
    first = training["first-seed"]
    seeds = range(first, first + training["seeds"])
    law, local_steps = training.get("participation") or _UNIFORM, training["local-steps"]
    clients = [0] if law == "turns" else training["clients-per-round"]
    roles: dict[Key, str] = {}
    if isinstance(clients, list) and isinstance(local_steps, list):
        roles |= dict.fromkeys(product([law], clients, local_steps, seeds, [""]), "sweep")
    if plan := steps.get("plan"):
        planned = plan.get("participation", _UNIFORM), plan["clients_per_round"] or 0
        course = plan.get("course", "fixed")
        steered = "" if course in ("fixed", "paper") else course
        roles |= {(*planned, plan["local_steps"], seed, steered): "training" for seed in seeds}
    for one in steps.get("pilots", ()):
        roles[_UNIFORM, one["clients_per_round"], one["local_steps"], one["seed"], ""] = "pilot"
    return roles


def _key(run: RunEntry) -> Key:
    course = run.identity.partition("/")[0]
    return run.law, run.clients_per_round or 0, run.local_steps, run.seed, course


def _place(run: RunEntry) -> tuple[int, int, int, int]:
    """Where a run stands in a list: by K, groups, E and seed."""
    return run.clients_per_round or 0, run.groups or 0, run.local_steps, run.seed
