"""From options to a question: devices, convergence, prices and limits."""

from collections import defaultdict
from functools import partial
from typing import Any

from fedplan.cli.output import check_file
from fedplan.convergence.bound import Bound, target_gap_problems
from fedplan.convergence.saturation import RANGE, ROUNDS
from fedplan.core.objective import Objective
from fedplan.errors import Collector, InputError, amount_problems
from fedplan.planning.planner import law_problems
from fedplan.prices_and_limits import PRICES
from fedplan.tables import read_fleet, read_pilots
from fedplan.web.question import (
    COEFFICIENTS,
    RELATIVE,
    Convergence,
    Devices,
    Question,
    make_question,
)

_KNOWN = ("ratio", "bound", "pilots_file")  # each says how many rounds a (K, E) needs


def is_nothing_given(options: dict[str, Any]) -> bool:
    """Whether no option of `problem_options` was used."""
    names = ("fleet_file", *_KNOWN, "target_gap")
    return not options["example"] and all(options[name] is None for name in names)


def read_question(options: dict[str, Any], plot: str | None = None) -> Question:
    """Read files, bound, weights and limits; every problem of all of them is raised together.

    options : those of `cli.options`; what a command does not ask for may be left out.
    """
    options = defaultdict(lambda: None, options)
    collector = Collector()
    collector.attempt(lambda: check_file(plot))
    has_bound = options["example"] or any(options[name] is not None for name in _KNOWN)
    devices = _devices(options, collector)
    find = _convergence if has_bound else _unmeasured
    known = find(options, collector, devices)
    for name, flag in (("saturation", "--saturation"), ("full_rounds", "--rounds")):
        if has_bound and options[name] is not None:
            collector.add(f"{flag} is for plans without a bound. Leave one of them out.")
    law = options["participation"] or ("uniform" if has_bound else "turns")
    collector.add(*law_problems(law, options["method"], has_bound=has_bound))
    priced = any(options[name] is not None for name in PRICES)
    if priced and options["energy_weight"] is not None:
        collector.add("give --energy-weight or prices, not both.")
        collector.attempt(lambda: Objective.weighted(options["energy_weight"]))
    values = {**options, "objective": "prices" if priced else "weight"}
    return make_question(values, collector, devices, known)


def _devices(options: dict[str, Any], collector: Collector) -> Devices | None:
    path, example = options["fleet_file"], options["example"]
    if path is None and not example:
        collector.add("--fleet is missing. Give a fleet.csv, or try --example.")
        return None
    if path is None:
        return Devices.of_example()
    if example:
        collector.add("give --fleet or --example, not both: the example's bound is its own.")
    return collector.attempt(lambda: Devices.of_file(path, read_fleet(path)))


def _convergence(
    options: dict[str, Any], collector: Collector, devices: Devices | None
) -> Convergence | None:
    """What is known of convergence; None if the options are wrong."""
    path, size = options["pilots_file"], None if devices is None else len(devices.fleet)
    pilots = None
    if path is not None:
        pilots = collector.attempt(partial(read_pilots, path, num_clients=size))
    given = [name for name in _KNOWN if options[name] is not None]
    if len(given) > 1:
        collector.add("give exactly one of --ratio, --bound and --pilots (or try --example).")
        return None
    gap, ratio, text = options["target_gap"], options["ratio"], options["bound"]
    if gap is not None and text is None:
        collector.add("--target-gap goes with --bound: the others are in relative units.")
    collector.add(*(target_gap_problems(gap) if gap is not None else ()))
    if path is not None:
        return None if pilots is None else Convergence.of_pilots(path, tuple(pilots))
    if not given:
        return Convergence.of_example()
    relative_to: str | None = RELATIVE
    if text is not None:
        relative_to = None if gap else "a target gap of 1"
    bound = collector.attempt(lambda: parse_bound(text) if text else Bound.from_ratio(ratio))
    if bound is None:
        return None
    name, gap = "the command line's", 1.0 if gap is None else gap
    return Convergence(name=name, known=bound, target_gap=gap, relative_to=relative_to)


def _unmeasured(options: dict[str, Any], collector: Collector, _: object) -> Convergence | None:
    if options["target_gap"] is not None:
        collector.add("--target-gap goes with --bound: without a bound there is no gap.")
    rounds = options["full_rounds"]
    for problem in amount_problems(rounds=rounds) if rounds is not None else []:
        collector.add(problem)
        rounds = None
    low, high = options["saturation"] or RANGE
    return collector.attempt(lambda: Convergence.unmeasured(low, high, rounds or 2 * ROUNDS))


def parse_bound(text: str) -> Bound:
    """A bound written a0=..,b0=..[,c0=..].

    >>> parse_bound("a0=3750, b0=1, c0=26")
    Bound(a0=3750.0, b0=1.0, c0=26.0)
    """
    values: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        try:
            values[name] = float(number)
        except ValueError:
            name = ""
        if name not in COEFFICIENTS or text.replace(" ", "").count(f"{name}=") > 1:
            raise InputError(
                f"--bound must look like a0=3750,b0=1,c0=26 (c0 optional), but got {text!r}."
            )
    if not {"a0", "b0"} <= values.keys():
        raise InputError(f"--bound needs both a0 and b0, but got {text!r}.")
    return Bound(a0=values["a0"], b0=values["b0"], c0=values.get("c0"))
