"""Runs: the contents of a store for the page; read-only, and reread every time."""

import math
from collections.abc import Mapping
from typing import Any

from fedplan.core.records import RunRecord
from fedplan.core.setting import setting_label
from fedplan.errors import InputError
from fedplan.figures.losses import ENERGY, ROUND, TIME, compared_losses
from fedplan.figures.save import page_figure
from fedplan.store import ExperimentEntry, RunEntry, Store, StudyEntry
from fedplan.store.entries import fingerprint_of
from fedplan.words import counted, joules, number, seconds, totals

MOST_CURVES = 24
MOST_RUNS = 500  # listed for one experiment; `fedplan show --runs` has all
_OVER = {"rounds": ROUND, "seconds": TIME, "joules": ENERGY}


def listing(url: str) -> dict[str, Any]:
    """The studies and experiments of a store, newest first."""
    with Store(url, readonly=True) as store:
        studies = [(study, store.steps(study)) for study in store.studies()]
        experiments = store.experiments()
    return {
        "success": True,
        "store": url,
        "studies": [_study(*item) for item in reversed(studies)],
        "experiments": [_experiment(entry) for entry in reversed(experiments)],
    }


def runs_of(url: str, experiment: str) -> dict[str, Any]:
    """The runs of an experiment, those that are going on first."""
    with Store(url, readonly=True) as store:
        entry = _find(store, experiment)
        entries = store.runs(entry.settings)
    entries.sort(key=lambda run: run.created, reverse=True)
    entries.sort(key=lambda run: run.status != "unfinished")
    return {
        "success": True,
        "total": len(entries),
        "runs": [_run(run) for run in entries[:MOST_RUNS]],
    }


def curves(url: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The losses of the runs asked for, against rounds, seconds or joules."""
    experiment, wanted = asked.get("experiment"), asked.get("runs")
    if not isinstance(experiment, str) or not isinstance(wanted, list):
        raise InputError("curves need an experiment, a text, and runs, a list of [K, E, seed].")
    if len(wanted) > MOST_CURVES:
        raise InputError(f"at most {MOST_CURVES} runs can be compared, but got {len(wanted)}.")
    against = asked.get("against", "rounds")
    if against not in _OVER:
        raise InputError(f"against must be one of {', '.join(_OVER)}, but got {against!r}.")
    keys = [_key(item) for item in wanted]
    with Store(url, readonly=True) as store:
        entry = _find(store, experiment)
        listed = {tuple(_key_of(run)): run for run in store.runs(entry.settings)}
        found = [
            store.find_run(entry.settings, run, run.seed)
            for key in keys
            if (run := listed.get(key)) is not None
        ]
        studies = [
            (study, store.steps(study))
            for study in store.studies()
            if (study.fingerprint, study.experiment.fingerprint) == (asked.get("study"), experiment)
        ]
    there = {f"{run_name(run)}, seed {run.seed}": run for run in found if run is not None}
    told = _forecast(next(iter(there.values())), against) if there else None
    figure = compared_losses(
        there,
        _OVER[against],
        target_loss=_target(*studies[0]) if studies else None,
        predicted=told["interval"] if told else None,
    )
    return {
        "success": True,
        "figure": page_figure(figure),
        "going": [
            f"So far {who}: {counted(run.num_rounds, 'round')}, {totals(run.time_s, run.energy_j)}."
            for who, run in there.items()
            if run.status == "unfinished"
        ],
        "forecast": told,
    }


def _key(item: Any) -> tuple[int | str, ...]:
    parts = item if isinstance(item, list) else []
    kinds = [type(part) for part in parts]  # not isinstance: bool is an int
    if kinds in ([int, int, int], [int, int, int, str]):
        return tuple(parts)
    raise InputError(
        "a run must be [clients per round, local steps, seed], whole numbers; of a participation "
        "other than uniform, with the id of its setting."
    )


def _key_of(run: RunEntry | RunRecord) -> list[int | str]:
    """What the page calls a run: K or the number of groups, E and seed tell uniform ones apart."""
    setting = run.setting
    who = setting.clients_per_round or setting.groups or 0
    key: list[int | str] = [who, setting.local_steps, run.seed]
    if setting.participation.law != "uniform" or run.identity:
        key.append(fingerprint_of({**setting.to_dict(), "course": run.identity})[:12])
    return key


def _find(store: Store, fingerprint: str) -> ExperimentEntry:
    for entry in store.experiments():
        if entry.fingerprint == fingerprint:
            return entry
    raise InputError("this experiment is not in the store any more. Load the page again.")


def _target(study: StudyEntry, steps: Mapping[str, Any]) -> float | None:
    """The target loss of a study file, or what an app has asked for."""
    asked = steps.get("asked", {}).get("stop", {}).get("target_loss")
    return study.configuration.get("training", {}).get("target-loss") or asked or None


def _forecast(run: RunRecord, against: str) -> dict[str, Any] | None:
    """Between which rounds a run was first expected to arrive; None if its course did not say.

    Seconds and joules are in proportion to those of its rounds so far.
    """
    told = [
        one
        for one in run.decisions
        if one.expected_rounds and one.interval and math.isfinite(one.interval[1])
    ]
    if not told or not run.num_rounds:
        return None
    first, interval = told[0], told[0].interval or ()
    taken = {"rounds": run.num_rounds, "seconds": run.time_s, "joules": run.energy_j}
    return {
        "interval": [end * taken[against] / run.num_rounds for end in interval],
        "words": f"{run_name(run)}: by round {first.round:,}, "
        f"{number(first.expected_rounds or 0.0)} rounds were expected "
        f"({' to '.join(map(number, interval))}).",
    }


def run_name(run: RunEntry | RunRecord) -> str:
    """The course of a run and what it began with, or the setting that it kept to."""
    course = run.identity.partition("/")[0]
    return f"{course}, from {run.setting.label}" if course else run.setting.label


def _study(study: StudyEntry, steps: Mapping[str, Any]) -> dict[str, Any]:
    plan = steps.get("plan") or {}
    return {
        "name": study.name,
        "id": study.fingerprint,
        "experiment": study.experiment.fingerprint,
        "created": study.created,
        "num_runs": study.num_runs,
        "target_loss": _target(study, steps),
        "decided": list(steps),
        "plan": {
            **{key: plan.get(key) for key in ("clients_per_round", "local_steps", "why")},
            "course": plan.get("course"),
            "label": _planned(plan),
        }
        if plan
        else None,
    }


def _planned(plan: Mapping[str, Any]) -> str:
    """The planned setting, as its runs are called."""
    if plan["local_steps"] is None:
        return "none"
    groups = plan.get("groups", ())  # what each costs, or of a live training how many
    groups = groups if isinstance(groups, int) else len(groups)
    law = plan.get("participation", "uniform")
    label = setting_label(law, plan["clients_per_round"], groups, plan["local_steps"])
    course = plan.get("course") or "fixed"
    return label if course in ("fixed", "paper") else f"{course}, from {label}"


def _experiment(entry: ExperimentEntry) -> dict[str, Any]:
    task = entry.settings.get("task", {})
    words = " ".join(str(task[key]) for key in ("data", "model") if key in task)
    return {
        "id": entry.fingerprint,
        "name": words or entry.fingerprint[:12],
        "created": entry.created,
        "num_runs": entry.num_runs,
    }


def _run(run: RunEntry) -> dict[str, Any]:
    return {
        "key": _key_of(run),
        "name": run_name(run),
        "status": run.status,
        "rounds": run.num_rounds,
        "loss": "-" if run.final_loss is None else f"{run.final_loss:.4g}",
        "time": seconds(run.time_s),
        "energy": joules(run.energy_j),
        "created": run.created,
    }
