"""`fedplan run`: start training, learn from the rounds, arrive, and show the whole bill."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from fedplan.cli.outcome import outcome_json, print_outcome
from fedplan.cli.output import check_file, draw, print_json, say_at_the_end
from fedplan.cli.progress import step_bar
from fedplan.cli.training import (
    Asked,
    asks,
    check_runner,
    compile_kernels,
    needed_keys,
    on_federation,
    runner_options,
)

if TYPE_CHECKING:
    from fedplan.figures import Figure
    from fedplan.studies.experiment import Experiment
    from fedplan.studies.outcome import Outcome

_REPORTS = (".md", ".html")
_EXIT_CODES = {"reached": 0, "infeasible": 3}


@click.command()
@asks(default="demo")
@runner_options
@click.option("--report", metavar="FILE", help="Also write it all down: .md or .html.")
def run(asked: Asked, runner: str, federation: str | None, report: str | None) -> None:
    """Train a study to its target at the lowest cost, learning from every round.

    Training starts at once: groups of devices of like speed take turns, and the rounds themselves
    show how many local steps pay. Every round is on the bill, and everything is kept in the store:
    the same command after an interruption goes on where it was.

    course=fixed keeps to one setting of the participation given; course=paper runs the paper's
    pilots and trains with its Algorithm 2. Their rounds are on the bill too.

    STUDY is a study file (TOML) or one that is built in: demo, setup1, setup2, setup3. KEY=VALUE
    takes the place of what it says.

    With --runner flower the same study is run on a live federation of Flower's, client k on the
    node with partition-id k. Seconds are real ones then, and what the devices cost is measured as
    they train.

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
    from fedplan.studies.courses import choose_course
    from fedplan.studies.study_file import read_study

    study = asked.read(
        lambda: read_study(asked.study, asked.overrides, required=needed_keys(runner)),
        lambda: check_runner(runner, federation),
        lambda: check_file(report, _REPORTS),
    )
    choose_course(study, live=federation is not None)

    from fedplan.studies.workflow import recall_study, run_study

    experiment = asked.build(study, federation=federation)
    if federation is not None:
        experiment, outcome = on_federation(asked, experiment, federation, recall_study)
    else:
        with asked.open_store() as store:
            compile_kernels(experiment, quiet=asked.quiet)
            with step_bar(quiet=asked.quiet) as progress:
                outcome = run_study(experiment, store, report=progress)
    draw(asked.plot, lambda: _figure(experiment, outcome), otherwise="there is no loss to draw")
    if report is not None:
        _write_report(experiment, outcome, report, asked)
        say_at_the_end(f"Written: {report}")
    if asked.output_format == "json":
        print_json({**outcome_json(experiment, outcome), "report": report})
    else:
        print_outcome(experiment, outcome)
    if code := _EXIT_CODES.get(outcome.status, 1):
        raise click.exceptions.Exit(code)


def _figure(experiment: Experiment, outcome: Outcome) -> Figure | None:
    from fedplan.studies.figures import has_losses, outcome_figure

    return outcome_figure(experiment, outcome) if has_losses(outcome) else None


def _write_report(experiment: Experiment, outcome: Outcome, path: str, asked: Asked) -> None:
    """Markdown or a page, by the file's ending."""
    if path.lower().endswith(".html"):
        from fedplan.store import Store
        from fedplan.studies.stored import stored_facts
        from fedplan.web.report import write_report

        with Store(asked.store_url) as store:
            facts = stored_facts(store, experiment.save(store))
        write_report(replace(facts, experiment=experiment, outcome=outcome), path)
        return
    from fedplan.atomic import draft_of
    from fedplan.studies.markdown import report_text

    with draft_of(path) as draft:
        draft.write_text(report_text(experiment, outcome, picture=asked.plot), encoding="utf-8")
