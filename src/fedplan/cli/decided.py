"""What a study has decided, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fedplan.cli import text
from fedplan.cli.stored import flat


def decided(steps: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every step as lines: its name at the first, and what was decided.

    >>> list(decided({"training": {"reached": 2, "of": 5}, "mine": {"a": [1, 2]}, "none": None}))
    [('training', '2 of 5 runs reached the target'), ('mine', 'a [1, 2]'), ('none', '-')]
    """
    for name, value in steps.items():
        for place, line in enumerate(_lines(name, value)):
            yield ("" if place else name), line


def _lines(name: str, value: Any) -> list[str]:
    if name in _WORDS:
        try:
            return list(_WORDS[name](value))
        except (AttributeError, KeyError, TypeError, ValueError):
            pass  # of somebody's own making, with a name that fedplan uses too
    if isinstance(value, Mapping) and value:
        return [f"{key} {text}" for key, text in flat(value)]
    return [text for _, text in flat({name: value})]


def _pilots(runs: list[dict[str, Any]]) -> Iterator[str]:
    for run in runs:
        loss = run["final_loss"]
        yield (
            f"{_setting(run)}, seed {run['seed']}: {run['rounds']:,} rounds, loss "
            f"{'-' if loss is None else format(loss, '.4g')}, {text.seconds(run['time_s'])}, "
            f"{text.joules(run['energy_j'])}"
        )


def _plan(plan: dict[str, Any]) -> Iterator[str]:
    course = plan.get("course", "fixed")
    yield _setting(plan) if course == "fixed" else f"{course}: begins with {_setting(plan)}"
    if why := plan.get("why"):
        yield why


def _training(training: dict[str, Any]) -> Iterator[str]:
    yield f"{training['reached']:,} of {training['of']:,} runs reached the target"


def _sweep(sweep: dict[str, Any]) -> Iterator[str]:
    if (best := sweep["best"]) is None:
        yield "no setting reached the target with every seed"
        return
    cost, rounds = text.amount(best["cost"]), text.amount(best["rounds"])
    totals = f"{text.seconds(best['time_s'])}, {text.joules(best['energy_j'])}"
    yield f"{_setting(best)} cost least: {cost}, in {rounds} rounds, {totals}"


def _profile(profile: dict[str, Any]) -> Iterator[str]:
    clients, seen = profile["clients"], profile["observations"]
    yield f"{len(clients):,} devices, by {len(seen):,} observations"


def _clients(names: list[str]) -> Iterator[str]:
    yield ", ".join(names)


def _plans(plans: list[list[int]]) -> Iterator[str]:
    for begun, clients, steps in plans:
        yield f"after round {begun:,}: {clients:,} clients, {steps:,} steps"


def _setting(values: Mapping[str, Any]) -> str:
    law, clients = values.get("participation", "uniform"), values["clients_per_round"]
    if clients is None:
        groups = values["groups"]  # each one's costs, or only how many
        who = f"{groups if isinstance(groups, int) else len(groups):,} groups"
    else:
        who = f"{clients:,} clients" if law == "uniform" else f"{clients:,} clients ({law})"
    return f"{who}, {values['local_steps']:,} steps"


_WORDS: dict[str, Callable[[Any], Iterator[str]]] = {
    "pilots": _pilots,
    "plan": _plan,
    "training": _training,
    "sweep": _sweep,
    "profile": _profile,
    "clients": _clients,
    "plans": _plans,
}
