"""`fedplan list` and `fedplan show`: what a store contains."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import product
from typing import Any

import click
from rich.markup import escape

from fedplan.cli.output import Facts, print_result
from fedplan.cli.stored import one_stored, open_stored, reads_store
from fedplan.core.setting import setting_label
from fedplan.store import Entry, ExperimentEntry, RunEntry, Store, StudyEntry, describe
from fedplan.words import Table, counted, flat, in_words, local_time, short, span, table_of, totals

_OPEN = ("-", "Infinity")  # values of a key that is not set, and of a limit that is none
_UNIFORM = "uniform"  # the law of runs that name none
# Law, K (0 if it has none), E, seed, and the course that steered the run (or "").
Key = tuple[str, int, int, int, str]


@click.command("list")
@reads_store
def list_(store_url: str, output_format: str) -> None:
    """List what is stored: studies, experiments, and how many runs of each.

    Runs belong to an experiment: what is learnt and how, whatever K, E, the seed and the
    devices. Studies of the same experiment share its runs, and each counts those it has used.
    Studies with the same name are distinguished by their id, and by their differences.

    \b
    Examples:
      fedplan list
      fedplan list --store sqlite:////data/fedplan.db --format json
    """
    with open_stored(store_url) as store:
        experiments, entries = store.experiments(), store.studies()
        studies = [
            {
                "name": study.name,
                "fingerprint": study.fingerprint,
                "experiment": study.experiment.fingerprint,
                "differs": differs,
                "steps": list(store.steps(study)),
                "num_runs": len(_runs_of(store, study, experiments)),
                "created": study.created,
            }
            for study, differs in zip(entries, _differences(entries), strict=True)
        ]
    document = {
        "success": True,
        "store": store_url,
        "studies": studies,
        "experiments": [asdict(one) for one in experiments],
    }
    print_result(output_format, document, _listed(document))


def _differences(studies: list[StudyEntry]) -> Iterator[dict[str, str]]:
    """For each study, its values of the keys in which it differs from others of its name."""
    said = {study.fingerprint: dict(flat(study.configuration)) for study in studies}
    for study in studies:
        others = [said[one.fingerprint] for one in studies if one.name == study.name]
        yield {
            key.rpartition(".")[2]: value
            for key, value in said[study.fingerprint].items()
            if value not in _OPEN and any(other.get(key) != value for other in others)
        }


def _listed(document: dict[str, Any]) -> Iterator[Table | str]:
    if not document["experiments"]:
        yield f"Nothing is stored in {document['store']} yet."
        return
    if document["studies"]:
        columns = {
            "study": "name",
            "id": "fingerprint",
            "experiment": "experiment",
            "differs by": "differs",
            "decided": "steps",
            "runs": "num_runs",
            "made": "created",
        }
        yield table_of(document["studies"], columns, whole=("id", "experiment", "made"))
    columns = {
        "experiment": "fingerprint",
        "runs": "num_runs",
        "made": "created",
        "settings": "settings",
    }
    yield table_of(document["experiments"], columns, whole=("experiment", "runs", "made"))


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--runs", "with_runs", is_flag=True, help="Also list its runs.")
@reads_store
def show(name: str, with_runs: bool, store_url: str, output_format: str) -> None:
    """Show a study or an experiment: its settings, its decisions, its runs.

    NAME is a study's name (the newest of several), or the beginning of an id that `fedplan list`
    shows.

    \b
    Examples:
      fedplan show demo
      fedplan show 3f2a --runs
      fedplan show demo --runs --format json
    """
    with one_stored(store_url, name) as (store, entry):
        known = describe(store, entry)
        runs = _runs_of(store, entry, store.experiments())
    listed = [{**run.to_dict(), "made_for": role or None} for run, role in runs]
    shown = listed if with_runs else None
    document = {"success": True, **known, "num_runs": len(runs), "runs": shown}
    print_result(output_format, document, _shown(entry, document))


def _shown(entry: Entry, document: dict[str, Any]) -> Iterator[Facts | Table]:
    facts = [("experiment", f"[bold]{short(entry.fingerprint)}[/]")]
    made, num_runs = local_time(entry.created), document["num_runs"]
    if "name" in document:
        facts = [
            ("study", f"[bold]{escape(document['name'])}[/] ({short(entry.fingerprint)})"),
            ("experiment", short(document["experiment"]["fingerprint"])),
        ]
        made += ", with " + ", ".join(f"{name} {one}" for name, one in document["versions"].items())
    others = f" (its experiment has {entry.num_runs:,})" if entry.num_runs > num_runs else ""
    yield Facts([*facts, ("made", made), ("runs", f"{num_runs:,}{others}")])
    for title, lines in {
        "configuration": flat(document.get("configuration", {})),
        "settings": flat(document.get("settings", {})),
        "decided": decided(document.get("steps", {})),
    }.items():
        if rows := [(escape(key), escape(value)) for key, value in lines]:
            yield Facts(rows, title=title)
    if document["runs"]:
        yield _runs(document["runs"])


def _runs(runs: list[dict[str, Any]]) -> Table:
    optional = {"groups": "groups", "time": "time_s", "energy": "energy_j"}
    return table_of(
        runs,
        {
            "K": "clients_per_round",
            "E": "local_steps",
            "seed": "seed",
            "rounds": "num_rounds",
            "final loss": "final_loss",
            **{name: key for name, key in optional.items() if any(run[key] for run in runs)},
            "participation": "participation",
            "course": "course",
            "made for": lambda run: run["made_for"] or "-",
            "ended by": _ended_by,
        },
    )


def _ended_by(run: dict[str, Any]) -> str:
    """Why a run ended; a pilot's target is a loss of its own, above that of the study."""
    is_own = (run["made_for"], run["status"]) == ("pilot", "target")
    return "its own loss" if is_own else str(run["status"])


def decided(steps: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every step as lines of (name, what was decided); only the first line has the name.

    >>> list(decided({"training": {"reached": 2, "of": 5}, "mine": {"a": [1, 2]}, "none": None}))
    [('training', '2 of 5 runs reached the target'), ('mine', 'a [1, 2]'), ('none', '-')]
    """
    for name, value in steps.items():
        try:
            lines = list(_words(name, value))
        except (AttributeError, KeyError, TypeError, ValueError):
            lines = []  # a step of another program, with a name that fedplan uses
        if not lines and isinstance(value, Mapping) and value:
            lines = [f"{key} {line}" for key, line in flat(value)]
        for place, line in enumerate(lines or [line for _, line in flat({name: value})]):
            yield ("" if place else name), line


def _words(name: str, step: Any) -> Iterator[str]:
    """A step of fedplan's own in words; nothing for any other."""
    if name == "pilots":
        for run in step:
            end = f"{run['rounds']:,} rounds, loss {in_words(run['final_loss'], 'final_loss')}"
            paid = totals(run["time_s"], run["energy_j"])
            yield f"{_setting(run)}, seed {run['seed']}: {end}, {paid}"
    elif name == "plan":
        course = step.get("course", "fixed")
        yield _setting(step) if course == "fixed" else f"{course}: begins with {_setting(step)}"
        if why := step.get("why"):
            yield why
    elif name == "earlier" and (ends := step["saturation"]) is None:
        yield "nothing was known of local steps"
    elif name == "earlier":
        ends = span(ends, in_words)
        yield f"local steps saturate at {ends}, by earlier runs of the same task"
    elif name == "asked":
        stop, unit = step["stop"], step["objective"]["unit"]
        yield f"loss {stop['target_loss']:g} within {stop['max_rounds']:,} rounds, for least {unit}"
        yield from (f"{limit}: {value:g}" for limit, value in step["limits"].items())
    elif name == "training":
        yield f"{step['reached']:,} of {counted(step['of'], 'run')} reached the target"
        if step.get("status", "target") != "target":
            yield f"ended by {step['status']}. {step['why']}".rstrip()
    elif name.startswith("start-"):
        known = "nothing was known" if step["known"] is None else "something was known"
        yield f"{step['clients']:,} clients, of whose devices {known}"
    elif name == "sweep" and (best := step["best"]) is None:
        yield "no setting reached the target with every seed"
    elif name == "sweep":
        cost, rounds = in_words(best["cost"]), counted(best["rounds"], "round")
        paid = totals(best["time_s"], best["energy_j"])
        yield f"{_setting(best)} cost least: {cost}, in {rounds}, {paid}"
    elif name == "clients":
        yield ", ".join(step)


def _setting(values: Mapping[str, Any]) -> str:
    groups = values.get("groups")  # a list of groups, or their number
    number = len(groups) if isinstance(groups, list) else groups
    law, clients = values.get("participation", "uniform"), values["clients_per_round"]
    return setting_label(law, clients, number, values["local_steps"])


def _runs_of(
    store: Store, entry: Entry, experiments: Iterable[ExperimentEntry]
) -> list[tuple[RunEntry, str]]:
    """Runs, each with what it was made for: "pilot", "training", "sweep", or "" if unknown.

    Of an experiment, or of a study without a study file, these are all runs.
    """
    studies = [entry] if isinstance(entry, StudyEntry) else store.studies()
    if isinstance(entry, ExperimentEntry):
        studies = [study for study in studies if study.has_runs_of(entry)]
    with_file = [one for one in studies if {"task", "training"} <= one.configuration.keys()]
    roles: dict[Key, str] = {}
    for study in with_file:
        roles = _roles(study, store.steps(study)) | roles
    runs = [
        run for one in experiments if entry.has_runs_of(one) for run in store.runs(one.settings)
    ]
    if isinstance(entry, StudyEntry) and with_file:
        # A pilot that was continued is stored twice if the end of a run is a setting.
        rising = sorted(runs, key=lambda run: run.num_rounds)
        longest = {(run.stored_setting, run.seed): run for run in rising}
        runs = [run for run in longest.values() if _key(run) in roles]
        runs.sort(key=lambda run: (run.clients_per_round or 0, run.groups or 0, *_key(run)[2:4]))
    return [(run, roles.get(_key(run), "")) for run in runs]


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
