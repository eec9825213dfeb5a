"""`fedplan run`: start training, learn from the rounds, arrive, and show the whole bill."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from fedplan.cli.live import check_runner, needed_keys, on_federation, runner_options
from fedplan.cli.options import (
    download_option,
    plot_option,
    quiet_option,
    store_options,
    verbose_option,
)
from fedplan.cli.outcome import outcome_json, print_outcome
from fedplan.cli.output import (
    check_file,
    check_plot,
    note_kept,
    print_json,
    save_plot,
    say_not_drawn,
)
from fedplan.cli.preparing import build, compile_kernels, named_study, read_checked
from fedplan.cli.progress import step_bar

if TYPE_CHECKING:
    from fedplan.studies.building import Experiment
    from fedplan.studies.outcome import Outcome

_REPORTS = (".md", ".html")
_EXIT_CODES = {"reached": 0, "infeasible": 3}


@click.command()
@click.argument("study", metavar="[STUDY]", default="demo")
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
@runner_options
@store_options
@plot_option
@click.option("--report", metavar="FILE", help="Also write it all down: .md or .html.")
@download_option
@quiet_option
@verbose_option
def run(
    study: str,
    overrides: tuple[str, ...],
    runner: str,
    federation: str | None,
    store_url: str,
    output_format: str,
    plot: str | None,
    report: str | None,
    download: bool,
    quiet: bool,
) -> None:
    """Train a study to its target at the lowest cost, learning from every round.

    Training starts at once: groups of devices of like speed take turns, and the rounds themselves
    show how many local steps pay. Every round is on the bill, and everything is kept in the store:
    the same command after an interruption goes on where it was.

    course=fixed keeps to one setting of the participation given; course=paper runs the paper's
    pilots and trains with its Algorithm 2. Their rounds are on the bill too.

    STUDY is a study file (TOML) or one that is built in: demo, setup1, setup2, setup3. KEY=VALUE
    takes the place of what it says.

    With --runner flower the same study is run on a live federation of Flower's, client k on the
    node with partition-id k. Seconds are real ones then, its devices are profiled first, and it
    keeps to one setting: course=fixed with uniform sampling, or course=paper.

    \b
    Examples:
      fedplan run
      fedplan run setup3 energy-weight=0.5 --plot setup3.png --report setup3.md
      fedplan run setup3 participation=turns
      fedplan run setup1 course=paper
      fedplan run study.toml deadline-s=3600 --format json
      fedplan run study.toml --runner flower --federation lab

    Exit codes: 0 the target was reached, 1 it was not, 2 wrong input, 3 no feasible plan.
    """
    from fedplan.store import Store
    from fedplan.studies import read_study
    from fedplan.studies.courses import choose_course

    study, overrides = named_study(study, overrides)
    read = read_checked(
        lambda: read_study(study, overrides, required=needed_keys(runner)),
        lambda: check_runner(runner, federation),
        lambda: check_plot(plot),
        lambda: check_file(report, _REPORTS),
    )

    choose_course(read, live=federation is not None)

    from fedplan.studies.workflow import recall_study, run_study

    experiment = build(read, download=download, quiet=quiet, federation=federation)
    note_kept(store_url)
    if federation is not None:
        experiment, outcome = on_federation(
            experiment, federation, store_url, recall_study, quiet=quiet
        )
    else:
        with Store(store_url) as store:
            compile_kernels(experiment, quiet=quiet)
            with step_bar(quiet=quiet) as progress:
                outcome = run_study(experiment, store, report=progress)
    if plot is not None and can_draw(outcome):
        draw_outcome(experiment, outcome, plot)
    elif plot is not None:
        say_not_drawn(plot, "there is no loss to draw")
    if report is not None:
        _write_report(experiment, outcome, report, store_url, picture=plot)
        context = click.get_current_context()
        context.call_on_close(lambda: click.echo(f"Written: {report}", err=True))
    if output_format == "json":
        print_json({**outcome_json(experiment, outcome), "report": report})
    else:
        print_outcome(experiment, outcome)
    if code := _EXIT_CODES.get(outcome.status, 1):
        raise click.exceptions.Exit(code)


def _write_report(
    experiment: Experiment, outcome: Outcome, path: str, store_url: str, *, picture: str | None
) -> None:
    """Markdown or a page, by the file's ending."""
    if path.lower().endswith(".html"):
        from fedplan.store import Store
        from fedplan.studies.recalling import stored_facts
        from fedplan.web.report import write_report

        with Store(store_url) as store:
            facts = stored_facts(store, experiment.save(store))
        write_report(replace(facts, experiment=experiment, outcome=outcome), path)
        return
    from fedplan.atomic import draft_of
    from fedplan.studies.report import report_text

    with draft_of(path) as draft:
        draft.write_text(report_text(experiment, outcome, picture=picture), encoding="utf-8")


def can_draw(outcome: Outcome) -> bool:
    """Whether there is anything to draw of a study."""
    from fedplan.studies.picture import has_losses

    return has_losses(outcome)


def draw_outcome(experiment: Experiment, outcome: Outcome, path: str) -> None:
    """Draw what a study has come to, as far as it got."""
    from fedplan.studies.picture import outcome_figure

    save_plot(outcome_figure(experiment, outcome), path)
