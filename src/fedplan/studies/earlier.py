"""Earlier runs: what stored runs of the same task say about local steps.

A study decides once what it begins with, and the store keeps that, so that the study ends the same
whatever is stored meanwhile.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fedplan.convergence.histories import History, learn_saturation
from fedplan.convergence.saturation import RANGE, Saturation, usual_rate
from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import RunRecord
from fedplan.course.online import known_before
from fedplan.participation import LAWS, Chosen
from fedplan.store import RunEntry, Store, StudyEntry
from fedplan.studies.experiment import Experiment

STEP = "earlier"
_MOST = 32  # runs that are read: more of them take longer, and say little more
_FEWEST_ROUNDS = 3  # a run of fewer tells nothing
_NO_PART = ("evaluate_every", "evaluate_subset", "dropout")  # in what is learnt, and how
_SOURCE = "earlier runs of this task"


def known_of_study(
    experiment: Experiment, question: str, store: Store, entry: StudyEntry | None
) -> dict[str, Any]:
    """What the online course of a study is told in advance; empty if nothing is known.

    question : identity of the course that is told nothing.
    entry : the study if it is to be begun, to keep what is learnt now; None if it is recalled.
    """
    planning = experiment.study.planning
    if planning.saturation is not None:
        return {"known": Saturation.within(*planning.saturation)}
    if planning.earlier_runs == "ignore":
        return {}
    begins = entry is not None
    entry = entry or _find_entry(experiment, store)
    kept = None if entry is None else store.find_step(entry, STEP)
    if kept is None:
        kept = _begun(experiment, question, store)
    if kept is None and begins:
        kept = _learn(experiment, store)
    if begins and entry is not None:
        kept = store.keep_step(entry, STEP, kept)
    ends = kept and kept["saturation"]
    return {"known": Saturation.within(*ends), "source": _SOURCE} if ends else {}


def _find_entry(experiment: Experiment, store: Store) -> StudyEntry | None:
    study = experiment.study
    wanted = (study.name, study.configuration(), experiment.settings)
    return next(
        (
            one
            for one in store.studies()
            if (one.name, one.configuration, one.experiment.settings) == wanted
        ),
        None,
    )


def _begun(experiment: Experiment, question: str, store: Store) -> dict[str, Any] | None:
    """What the stored runs of this study began with: all its seeds begin alike."""
    seeds = experiment.study.training.every_seed
    there = [
        run
        for _, run in _runs_of_task(experiment, store)
        if run.seed in seeds and "/".join(run.identity.split("/")[:2]) == question
    ]
    if not there:
        return None
    known = known_before(min(there, key=lambda run: run.seed).identity)
    return {"runs": None, "saturation": known and known.interval}


def _learn(experiment: Experiment, store: Store) -> dict[str, Any]:
    """The saturation shown by the stored runs of this task.

    None if there are none, or if they say little: the range that they leave, from one end to the
    other, must be half of the usual one.
    """
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, Mapping[str, Any], RunEntry]] = []
    for settings, run in _runs_of_task(experiment, store):
        if run.num_rounds >= _FEWEST_ROUNDS:
            ranked.append((seen[run.stored_setting], len(ranked), settings, run))
            seen[run.stored_setting] += 1
    # Every setting once before any a second time.
    chosen = sorted(ranked, key=lambda one: one[:2])[:_MOST]
    found = (store.find_run(settings, run, run.seed) for _, _, settings, run in chosen)
    clients, rate = experiment.num_clients, experiment.rate
    histories = [history_of(run, clients, rate) for run in found if run is not None]
    if not histories:
        return {"runs": 0, "saturation": None}
    low, high = learn_saturation(histories, clients).interval
    narrower = high / low < RANGE[1] / RANGE[0] / 2
    ends = [float(f"{end:.3g}") for end in (low, high)] if narrower else None
    return {"runs": len(histories), "saturation": ends}


def _runs_of_task(
    experiment: Experiment, store: Store
) -> Iterator[tuple[Mapping[str, Any], RunEntry]]:
    """Every run of the same data, model and rates, with the settings that it is stored under."""
    wanted = _task_of(experiment.settings)
    for other in store.experiments():
        if _task_of(other.settings) == wanted:
            for run in store.runs(other.settings):
                if run.law in (*LAWS, Chosen.law):  # other programs may have laws of their own
                    yield other.settings, run


def _task_of(settings: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    training = settings.get("training")
    kept = training if isinstance(training, Mapping) else {}
    return settings.get("task"), {key: kept[key] for key in kept if key not in _NO_PART}


def history_of(run: RunRecord, num_clients: int, rate: LearningRate) -> History:
    """A run as a history; where clients come round in turn, all of them count in every round."""
    usual = usual_rate(rate)
    rounds = [(one, one.setting) for one in run.rounds if one.round and one.setting is not None]
    counted = [
        num_clients if setting.participation.averaged > 1 else max(len(one.cohort), 1)
        for one, setting in rounds
    ]
    # The first decision is what was known before, and a measured saturation is of its own rate.
    measured = [
        one.saturation * rate.at(max(one.round - 2, 0)) / usual
        for one in run.decisions
        if one.round > 1 and one.saturation and math.isfinite(one.saturation)
    ]
    return History(
        rounds=np.array([one.round for one, _ in rounds], dtype=np.float64),
        clients=np.array(counted, dtype=np.float64),
        local_steps=np.array([setting.local_steps for _, setting in rounds], dtype=np.float64),
        losses=np.array([math.nan if one.loss is None else one.loss for one, _ in rounds]),
        rates=np.array([max(rate.at(one.round - 1) / usual, 1e-12) for one, _ in rounds]),
        measured=tuple(one for one in measured if one > 0),
    )
