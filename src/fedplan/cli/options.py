"""Options that commands share."""

from collections.abc import Callable
from typing import Any

import click

from fedplan.cli.progress import show_log
from fedplan.prices_and_limits import LIMITS, PRICES, kebab

Command = Callable[..., Any]


def stack(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in this order."""

    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


class _LawOption(click.Option):
    """An option that takes the name of a law; its help lists all laws."""

    def make_metavar(self, *_: object, **__: object) -> str:
        from fedplan.participation import LAWS

        return f"[{'|'.join(LAWS)}]"


problem_options = stack(
    click.option("--fleet", "fleet_file", metavar="CSV", help="The devices: fleet.csv."),
    click.option("--example", is_flag=True, help="A built-in fleet of 100 devices and its bound."),
    click.option("--ratio", type=float, metavar="RHO", help="a0/b0 of the paper's bound."),
    click.option("--bound", metavar="a0=..,b0=..[,c0=..]", help="The bound, with --target-gap."),
    click.option("--target-gap", type=float, help="How close to the best loss to get."),
    click.option("--pilots", "pilots_file", metavar="CSV", help="Pilot runs: pilots.csv."),
)
law_options = stack(
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
objective_options = stack(
    click.option(
        "--energy-weight", type=float, metavar="G", help="0 = only time (default), 1 = only energy."
    ),
    *(
        click.option(f"--{kebab(name)}", type=float, help=price.text)
        for name, price in PRICES.items()
    ),
)
constraint_options = stack(
    *(
        click.option(f"--{kebab(name)}", type=limit.kind, help=limit.text)
        for name, limit in LIMITS.items()
    )
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
output_options = stack(format_option, plot_option)
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
store_options = stack(store_option, format_option)
