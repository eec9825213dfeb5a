"""Options that commands share, and what they amount to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.output import check_plot
from fedplan.cli.progress import show_log
from fedplan.errors import Collector, InputError

if TYPE_CHECKING:
    from fedplan.convergence.bound import Bound
    from fedplan.convergence.estimation import Estimate, Method
    from fedplan.convergence.pilots import Pilot
    from fedplan.convergence.saturation import Saturation
    from fedplan.core.constraints import Constraints
    from fedplan.core.fleet import Fleet
    from fedplan.core.objective import Prices
    from fedplan.core.problem import Problem

Command = Callable[..., Any]

_PRICES = {
    "price_hour": ("per_hour", "Money an hour of training."),
    "price_kwh": ("per_kwh", "Money a kWh the devices use."),
    "price_client_round": ("per_client_round", "Money each time a client takes part."),
    "price_mb": ("per_mb", "Money a megabyte moved (with --mb-per-client-round)."),
    "mb_per_client_round": ("mb_per_client_round", "Megabytes a client moves in a round."),
    "co2_per_kwh": ("co2_g_per_kwh", "Grams of CO2 a kWh; alone: minimise CO2."),
    "price_co2_kg": ("per_kg_co2", "Money a kilogram of CO2 (with --co2-per-kwh)."),
}
_LIMITS = {
    "deadline_s": (
        float,
        "Total seconds allowed to reach the target (with --pilots: their lower loss).",
    ),
    "energy_budget_j": (float, "Total joules allowed, as --deadline-s."),
    "max_rounds": (int, "Rounds allowed to reach the target."),
    "min_clients_per_round": (int, "Smallest K, or smallest group."),
    "max_clients_per_round": (int, "Largest K, or largest group."),
    "min_local_steps": (int, "Smallest E."),
    "max_local_steps": (int, "Largest E."),
}


def _stack(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


class _LawOption(click.Option):
    """An option that takes the name of a law, and whose help has those that there are."""

    def make_metavar(self, *_: object, **__: object) -> str:
        from fedplan.participation import LAWS

        return f"[{'|'.join(LAWS)}]"


problem_options = _stack(
    click.option("--fleet", "fleet_file", metavar="CSV", help="The devices: fleet.csv."),
    click.option("--example", is_flag=True, help="A built-in fleet of 100 devices and its bound."),
    click.option("--ratio", type=float, metavar="RHO", help="a0/b0 of the paper's bound."),
    click.option("--bound", metavar="a0=..,b0=..[,c0=..]", help="The bound, with --target-gap."),
    click.option("--target-gap", type=float, help="How close to the best loss to get."),
    click.option("--pilots", "pilots_file", metavar="CSV", help="Pilot runs: pilots.csv."),
)
law_options = _stack(
    click.option(
        "--participation",
        cls=_LawOption,
        help="Who trains when. Default: turns without a bound, uniform with one.",
    ),
    click.option(
        "--saturation",
        type=(float, float),
        metavar="LOW HIGH",
        help="Without a bound: the local steps at which half of what steps can save is saved lie "
        "in this range. Default: 8 256.",
    ),
    click.option(
        "--rounds",
        "full_rounds",
        type=float,
        help="Without a bound: rounds that all clients would need. Default: 100.",
    ),
)
objective_options = _stack(
    click.option(
        "--energy-weight", type=float, metavar="G", help="0 = only time (default), 1 = only energy."
    ),
    *(click.option(_flag(name), type=float, help=text) for name, (_, text) in _PRICES.items()),
)
constraint_options = _stack(
    *(click.option(_flag(name), type=kind, help=text) for name, (kind, text) in _LIMITS.items())
)
format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="What to print.",
)
plot_option = click.option("--plot", metavar="FILE", help="Also draw it: .png, .svg or .html.")
output_options = _stack(format_option, plot_option)
download_option = click.option(
    "--download", is_flag=True, help="Fetch MNIST (12 MB) first, if it is not there."
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress, no notices.")
verbose_option = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=show_log,
    help="Say which runs are found in the store, trained and stored.",
)
store_option = click.option(
    "--store",
    "store_url",
    metavar="URL",
    envvar="FEDPLAN_STORE",
    default="sqlite:///fedplan.db",
    show_default=True,
    show_envvar=True,
    help="Where runs and studies are kept.",
)
store_options = _stack(store_option, format_option)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the options describe, read and checked."""

    problem: Problem
    knowledge: Bound | Estimate | Saturation
    participation: str
    pilots: tuple[Pilot, ...]  # those that the knowledge comes from, where it does
    target_gap: float
    relative_to: str | None  # what "rounds" are relative to, where they are not absolute
    prices: Prices | None

    @property
    def of_what(self) -> str:
        """What is added to the name of a total that is not the one to a target."""
        if self.relative_to is None:
            return ""
        return " (pilots' descent)" if self.pilots else " (relative)"


_KNOWN = ("ratio", "bound", "pilots_file")  # each tells how many rounds a (K, E) needs


def is_nothing_given(options: dict[str, Any]) -> bool:
    """Whether no option of `problem_options` was used."""
    names = ("fleet_file", *_KNOWN, "target_gap")
    return not options["example"] and all(options[name] is None for name in names)


def read_request(options: dict[str, Any], plot: str | None) -> Request:
    """Read files, bound, weights and limits; every problem of all of them is raised together.

    A command with `law_options` needs no bound.
    """
    from fedplan.core.constraints import Constraints
    from fedplan.core.objective import Objective, Prices
    from fedplan.core.problem import Problem
    from fedplan.planning.making import law_problems
    from fedplan.planning.uniform_plan import method_problems

    collector = Collector()
    collector.attempt(lambda: check_plot(plot))
    fleet = _read_fleet(options, collector)
    constraints = collector.attempt(
        lambda: Constraints(**{n: options[n] for n in _LIMITS if options.get(n) is not None})
    )
    if fleet is not None and constraints is not None:
        collector.attempt(lambda: constraints.clients_range(len(fleet)))
    weight = options.get("energy_weight")
    given = {_PRICES[name][0]: options[name] for name in _PRICES if options.get(name) is not None}
    if weight is not None:
        collector.attempt(lambda: Objective.weighted(weight))
        if given:
            collector.add("give --energy-weight or prices, not both.")
    prices = collector.attempt(lambda: Prices(**given)) if given else None
    pilots = _read_pilots(options, fleet, collector)
    has_bound = options["example"] or any(options[name] is not None for name in _KNOWN)
    gap, relative_to = 1.0, None
    knowledge: Bound | Estimate | Saturation | None
    if "participation" in options and not has_bound:
        knowledge = _read_saturation(options, collector)
    else:
        knowledge, gap, relative_to = _read_bound(options, fleet, pilots, collector)
        for name in ("saturation", "full_rounds"):
            if options.get(name) is not None:
                flag = "--rounds" if name == "full_rounds" else "--saturation"
                collector.add(f"{flag} is for plans without a bound. Leave one of them out.")
    law = options.get("participation") or ("uniform" if has_bound else "turns")
    for problem in law_problems(law, options.get("method"), has_bound=has_bound):
        collector.add(problem)
    if constraints is not None and "method" in options and law == "uniform" and has_bound:
        for problem in method_problems(
            options["method"],
            constraints,
            robust_possible=options["pilots_file"] is not None,
            regret_quantile=options["regret_quantile"],
        ):
            collector.add(problem)
    if knowledge is not None and constraints is not None:
        _check_steps(knowledge, constraints, collector)
    collector.finish()
    if fleet is None or knowledge is None or constraints is None:
        raise AssertionError("a missing part is always a noted problem")
    objective = prices.objective() if prices else Objective.weighted(weight or 0.0)
    return Request(
        problem=Problem(fleet=fleet, objective=objective, limits=constraints),
        knowledge=knowledge,
        participation=law,
        pilots=tuple(pilots or ()),
        target_gap=gap,
        relative_to=relative_to,
        prices=prices,
    )


def _read_saturation(options: dict[str, Any], collector: Collector) -> Saturation | None:
    from fedplan.convergence.saturation import RANGE, ROUNDS, Saturation

    if options["target_gap"] is not None:
        collector.add("--target-gap goes with --bound: without a bound there is no gap.")
    rounds = options["full_rounds"]
    if rounds is not None and not 0 < rounds < float("inf"):
        collector.add(f"`rounds > 0 and finite` must hold, but got rounds={rounds}.")
        rounds = None
    low, high = options["saturation"] or RANGE
    # With as many steps as the saturation has, all clients need twice the fewest rounds.
    fewest = ROUNDS if rounds is None else rounds / 2
    return collector.attempt(lambda: Saturation.within(low, high, rounds=fewest))


def _read_fleet(options: dict[str, Any], collector: Collector) -> Fleet | None:
    from fedplan.planning.example import example_fleet
    from fedplan.tables import read_fleet

    path = options["fleet_file"]
    if path is not None and options["example"]:
        collector.add("give --fleet or --example, not both: the example's bound is its own.")
    if path is not None:
        return collector.attempt(lambda: read_fleet(path))
    if options["example"]:
        return example_fleet()
    collector.add("--fleet is missing. Give a fleet.csv, or try --example.")
    return None


def _read_pilots(
    options: dict[str, Any], fleet: Fleet | None, collector: Collector
) -> list[Pilot] | None:
    from fedplan.tables import read_pilots

    path, num_clients = options["pilots_file"], None if fleet is None else len(fleet)
    if path is None:
        return None
    return collector.attempt(lambda: read_pilots(path, num_clients=num_clients))


def _read_bound(
    options: dict[str, Any],
    fleet: Fleet | None,
    pilots: list[Pilot] | None,
    collector: Collector,
) -> tuple[Bound | Estimate | None, float, str | None]:
    from fedplan.convergence.bound import Bound, target_gap_problems
    from fedplan.convergence.estimation import estimate_bound
    from fedplan.convergence.pilots import DESCENT
    from fedplan.planning.example import EXAMPLE_BOUND

    given = [name for name in ("ratio", "bound", "pilots_file") if options[name] is not None]
    if len(given) > 1 or not (given or options["example"]):
        collector.add("give exactly one of --ratio, --bound and --pilots (or try --example).")
        return None, 1.0, None
    gap = options["target_gap"]
    if gap is not None and options["bound"] is None:
        collector.add("--target-gap goes with --bound: the others are in relative units.")
    for problem in target_gap_problems(gap) if gap is not None else []:
        collector.add(problem)
    if options["ratio"] is not None:
        bound = collector.attempt(lambda: Bound.from_ratio(options["ratio"]))
        return bound, 1.0, "b0 = 1 and a target gap of 1"
    if options["bound"] is not None:
        parsed = collector.attempt(lambda: parse_bound(options["bound"]))
        return parsed, 1.0 if gap is None else gap, None if gap else "a target gap of 1"
    if options["pilots_file"] is None:
        return EXAMPLE_BOUND, 1.0, "b0 = 1 and a target gap of 1"
    if pilots is None or fleet is None:
        return None, 1.0, None
    # The paper's method is the whole of Algorithm 2, its averaging over pairs included.
    how: Method = "pairwise" if options.get("method") == "paper" else "joint"
    estimate = collector.attempt(lambda: estimate_bound(pilots, len(fleet), method=how))
    if estimate is not None and not estimate.success:
        collector.add(f"there is no bound to plan with. {estimate.message}")
    return estimate, 1.0, DESCENT


def _check_steps(
    knowledge: Bound | Estimate | Saturation, constraints: Constraints, collector: Collector
) -> None:
    from fedplan.convergence.bound import Bound
    from fedplan.planning.steps import steps_range

    if isinstance(knowledge, Bound):
        collector.attempt(lambda: steps_range(constraints, knowledge))


def parse_bound(text: str) -> Bound:
    """A bound written a0=..,b0=..[,c0=..].

    >>> parse_bound("a0=3750, b0=1, c0=26")
    Bound(a0=3750.0, b0=1.0, c0=26.0)
    """
    from fedplan.convergence.bound import Bound

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
