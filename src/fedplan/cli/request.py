"""What options describe: devices, what is known of convergence, prices and limits, checked.

Commands import it when they are run: it brings the planner with it, which `--help` does without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedplan.cli.output import check_file
from fedplan.convergence.bound import Bound, target_gap_problems
from fedplan.convergence.pilots import Pilot
from fedplan.convergence.saturation import RANGE, ROUNDS
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective, Prices
from fedplan.core.problem import Problem
from fedplan.errors import Collector, InputError, amount_problems
from fedplan.planning.example import example_fleet
from fedplan.planning.planner import law_problems, method_problems
from fedplan.planning.steps import steps_range
from fedplan.prices_and_limits import LIMITS, PRICES
from fedplan.tables import read_fleet, read_pilots
from fedplan.web.question import RELATIVE, Convergence, Knowledge

_KNOWN = ("ratio", "bound", "pilots_file")  # each tells how many rounds a (K, E) needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the options describe, read and checked; rounds are predicted from `knowledge`."""

    problem: Problem
    convergence: Convergence
    knowledge: Knowledge
    participation: str
    prices: Prices | None

    @property
    def of_what(self) -> str:
        """What is added to the name of a total that is not the one to a target."""
        if self.convergence.relative_to is None:
            return ""
        return " (pilots' descent)" if self.convergence.num_pilots else " (relative)"


def is_nothing_given(options: dict[str, Any]) -> bool:
    """Whether no option of `problem_options` was used."""
    names = ("fleet_file", *_KNOWN, "target_gap")
    return not options["example"] and all(options[name] is None for name in names)


def read_request(options: dict[str, Any], plot: str | None) -> Request:
    """Read files, bound, weights and limits; every problem of all of them is raised together.

    A command with `law_options` needs no bound.
    """
    reader = _Reader(options)
    reader.attempt(lambda: check_file(plot))
    return reader.finished(reader.read())


class _Reader(Collector):
    """Reads the parts of a request one after the other, and notes what is wrong with each."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self._options = options
        self._has_bound = options["example"] or any(options[name] is not None for name in _KNOWN)

    def read(self) -> Request | None:
        """The whole request; None where a part is missing."""
        options = self._options
        fleet = self._fleet()
        limits = self._limits(fleet)
        weight = options.get("energy_weight") or 0.0
        weighted = self.attempt(lambda: Objective.weighted(weight))
        prices = self._prices()
        convergence = self._convergence(self._pilots(fleet))
        knowledge = None
        if convergence is not None and (fleet is not None or not convergence.num_pilots):
            size, method = 1 if fleet is None else len(fleet), options.get("method")
            knowledge = self.attempt(lambda: convergence.fitted(size, method))
        law = options.get("participation") or ("uniform" if self._has_bound else "turns")
        self._check_together(law, knowledge, limits)
        if not (fleet and convergence and knowledge and limits and weighted):
            return None
        objective = prices.objective() if prices else weighted
        return Request(
            problem=Problem(fleet=fleet, objective=objective, limits=limits),
            convergence=convergence,
            knowledge=knowledge,
            participation=law,
            prices=prices,
        )

    def _fleet(self) -> Fleet | None:
        path, example = self._options["fleet_file"], self._options["example"]
        if path is None and not example:
            self.add("--fleet is missing. Give a fleet.csv, or try --example.")
            return None
        if path is not None and example:
            self.add("give --fleet or --example, not both: the example's bound is its own.")
        return self.attempt(lambda: read_fleet(path)) if path is not None else example_fleet()

    def _limits(self, fleet: Fleet | None) -> Constraints | None:
        given = {name: value for name in LIMITS if (value := self._options.get(name)) is not None}
        limits = self.attempt(lambda: Constraints(**given))
        if fleet is not None and limits is not None:
            self.attempt(lambda: limits.clients_range(len(fleet)))
        return limits

    def _prices(self) -> Prices | None:
        options = self._options
        given = {
            price.field: options[name]
            for name, price in PRICES.items()
            if options.get(name) is not None
        }
        if given and options["energy_weight"] is not None:
            self.add("give --energy-weight or prices, not both.")
        return self.attempt(lambda: Prices(**given)) if given else None

    def _pilots(self, fleet: Fleet | None) -> list[Pilot] | None:
        path, num_clients = self._options["pilots_file"], None if fleet is None else len(fleet)
        if path is None:
            return None
        return self.attempt(lambda: read_pilots(path, num_clients=num_clients))

    def _convergence(self, pilots: list[Pilot] | None) -> Convergence | None:
        """What is known of convergence; None where what is said of it is wrong."""
        options = self._options
        if "participation" in options and not self._has_bound:
            return self._unmeasured()
        given = [name for name in _KNOWN if options[name] is not None]
        if len(given) > 1 or not (given or options["example"]):
            self.add("give exactly one of --ratio, --bound and --pilots (or try --example).")
            return None
        gap, ratio, text = options["target_gap"], options["ratio"], options["bound"]
        if gap is not None and text is None:
            self.add("--target-gap goes with --bound: the others are in relative units.")
        for problem in target_gap_problems(gap) if gap is not None else []:
            self.add(problem)
        if options["pilots_file"] is not None:
            name = options["pilots_file"]
            return None if pilots is None else Convergence.of_pilots(name, tuple(pilots))
        if not given:
            return Convergence.of_example()
        relative_to: str | None = RELATIVE
        if text is not None:
            relative_to = None if gap else "a target gap of 1"
        bound = self.attempt(lambda: parse_bound(text) if text else Bound.from_ratio(ratio))
        if bound is None:
            return None
        name, gap = "the command line's", 1.0 if gap is None else gap
        return Convergence(name=name, known=bound, target_gap=gap, relative_to=relative_to)

    def _unmeasured(self) -> Convergence | None:
        if self._options["target_gap"] is not None:
            self.add("--target-gap goes with --bound: without a bound there is no gap.")
        rounds = self._options["full_rounds"]
        for problem in amount_problems(rounds=rounds) if rounds is not None else []:
            self.add(problem)
            rounds = None
        low, high = self._options["saturation"] or RANGE
        return self.attempt(lambda: Convergence.unmeasured(low, high, rounds or 2 * ROUNDS))

    def _check_together(
        self, law: str, knowledge: Knowledge | None, limits: Constraints | None
    ) -> None:
        """Note what does not go with what."""
        options, has_bound = self._options, self._has_bound
        for name, flag in (("saturation", "--saturation"), ("full_rounds", "--rounds")):
            if has_bound and options.get(name) is not None:
                self.add(f"{flag} is for plans without a bound. Leave one of them out.")
        problems = law_problems(law, options.get("method"), has_bound=has_bound)
        if limits is not None and "method" in options and law == "uniform" and has_bound:
            problems += method_problems(
                options["method"],
                limits,
                robust_possible=options["pilots_file"] is not None,
                regret_quantile=options["regret_quantile"],
            )
        for problem in problems:
            self.add(problem)
        if isinstance(knowledge, Bound) and limits is not None:
            self.attempt(lambda: steps_range(limits, knowledge))


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
        if name not in ("a0", "b0", "c0") or text.replace(" ", "").count(f"{name}=") > 1:
            raise InputError(
                f"--bound must look like a0=3750,b0=1,c0=26 (c0 optional), but got {text!r}."
            )
    if not {"a0", "b0"} <= values.keys():
        raise InputError(f"--bound needs both a0 and b0, but got {text!r}.")
    return Bound(a0=values["a0"], b0=values["b0"], c0=values.get("c0"))
