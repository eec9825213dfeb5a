"""All commands by name; `fedplan.cli.main` runs them."""

from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points

import click

from fedplan import __version__
from fedplan.errors import FedplanError

_GROUP = "fedplan.commands"
# fedplan's own, with the first sentence of their help: each is imported when it is asked for.
_OWN = {
    "compare": "Train a study with several courses, and compare their full bills.",
    "estimate": "Fit a0, b0 and c0 to pilot runs, with intervals.",
    "export": "Write the runs of a study or an experiment into a file, round by round.",
    "frontier": "List every setting that nothing beats on both time and energy.",
    "learn": "Learn from runs of one task, made with any framework, how many local steps pay off.",
    "list": "List what is stored: studies, experiments, and how many runs of each.",
    "plan": "Find who should train when, and the local steps, that cost least.",
    "plot": "Draw a stored study or sweep, as far as it got, without training anything.",
    "profile": "Measure this device: seconds and joules of a local step and of a model exchange.",
    "report": "Write a report on a study: one HTML file that works offline and on paper.",
    "run": "Train a study to its target at the lowest cost, learning from every round.",
    "serve": "Explore plans in a browser: what prices, limits and devices do to K, E, time and "
    "energy.",
    "show": "Show a study or an experiment: its settings, its decisions, its runs.",
    "simulate": "Simulate FedAvg, once for each seed.",
    "sweep": "Train every clients-per-round x local-steps of a grid, and compare what the target "
    "costs.",
}
_HOMES = {
    "list": "show:list_",
    "plot": "stored:plot",
    "export": "stored:export",
    "report": "stored:report",
}
_REPRODUCE = (
    "fedplan reproduce is part of fedplan's repository, not of this installation. In a checkout: "
    "pip install ./reproduction, or make run, which installs it too."
)


class Commands(click.Group):
    """fedplan's own commands, and those that other packages have in `fedplan.commands`.

    Its own are imported when they are run; until then they are only a name and a help text.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name."""
        return sorted({*super().list_commands(ctx), *entry_points(group=_GROUP).names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, imported when it is asked for."""
        if super().get_command(ctx, cmd_name) is not None:
            home = _HOMES.get(cmd_name, f"{cmd_name}:{cmd_name}")
            found = [EntryPoint(cmd_name, f"fedplan.cli.{home}", _GROUP)]
        else:
            found = [*entry_points(group=_GROUP, name=cmd_name)]
        if found:
            try:
                command: click.Command = found[0].load()
            except Exception as error:  # of another package, which may raise anything
                words = f"cannot be loaded ({error}). Upgrade or remove its package."
                raise FedplanError(f"{found[0].value} {words}") from error
            return command
        if cmd_name == "reproduce":
            raise click.UsageError(_REPRODUCE)
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands as click does."""
        shown: list[click.Command] = []
        for name in self.list_commands(ctx):
            with suppress(FedplanError):
                command = self.commands.get(name) or self.get_command(ctx, name)
                shown += [command] if command else []
        click.Group(commands=shown).format_commands(ctx, formatter)


@click.group(
    cls=Commands,
    commands=[click.Command(name, help=text) for name, text in _OWN.items()],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="fedplan")
def cli() -> None:
    """Decide who trains when, and for how many local steps, at the lowest cost.

    \b
    Start here:
      fedplan run                                 train a small study to its target, and its bill
      fedplan plan --example                      a plan for a built-in fleet
      fedplan serve                               the same on a page with sliders
      fedplan profile                             seconds and joules of this device
      fedplan plan --fleet fleet.csv --pilots pilots.csv --energy-weight 0.3
      fedplan estimate --pilots pilots.csv --num-clients 100
      fedplan learn runs.csv                      how many local steps pay, from runs you have
      fedplan frontier --fleet fleet.csv --ratio 3750 --plot frontier.png
      fedplan simulate demo --plot demo.png       train a small study, in seconds
      fedplan sweep demo                          every K x E of a grid, and what each costs
      fedplan compare demo                        courses of fedplan and of others, on one bill
      fedplan list                                what has been stored
      fedplan report demo -o report.html          a study as a page to share

    Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed,
    2 wrong input, 3 no feasible plan, 130 interrupted.
    """
