"""`fedplan run`: start training, learn from the rounds, reach the target, show the bill."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import click

from fedplan.cli.output import (
    Facts,
    check_file,
    draw,
    picked,
    print_result,
    say_at_the_end,
    study_in_words,
    who_trains,
)
from fedplan.cli.progress import step_bar
from fedplan.cli.training import StudyRequest, compile_kernels, study_options
from fedplan.core.records import RunRecord
from fedplan.errors import EXIT_INFEASIBLE
from fedplan.store import Store
from fedplan.studies.accounts import bill_table, decision_table
from fedplan.studies.cells import RunSummary
from fedplan.studies.courses import choose_course
from fedplan.studies.experiment import Experiment
from fedplan.studies.figures import has_losses, outcome_figure
from fedplan.studies.outcome import Outcome, decisions_of, runs_within
from fedplan.studies.stored import stored_facts
from fedplan.studies.study_file import read_study
from fedplan.studies.workflow import plan_step, recall_study, run_study
from fedplan.web.report import write_report
from fedplan.words import Table

_MOST_DECISIONS = 12  # rows of the table; of more, the first and the last are shown
_REPORTS = (".md", ".html")
_CHOSEN = ("clients-per-round", "local-steps")  # by every course; only simulate uses a study's


@click.command()
@study_options(default="demo", runners=True)
@click.option("--report", metavar="FILE", help="Also write a report: .md or .html.")
def run(request: StudyRequest, report: str | None) -> None:
    """Train a study to its target at the lowest cost, learning from every round.

    Training starts at once: groups of devices of similar speed take turns, and the rounds
    themselves show how many local steps pay off. Every round is on the bill, and everything is
    stored: after an interruption the same command resumes where it stopped.

    course=fixed keeps to one setting of the given participation; course=paper runs the paper's
    pilots, which are on the bill too, and trains with its Algorithm 2.

    STUDY is a study file (TOML) or a built-in study: demo, setup1, setup2, setup3. KEY=VALUE
    overrides it.

    With --runner flower the same study runs on a live Flower federation, client k on the node with
    partition-id k. Seconds are then real, and the devices' costs are measured as they train.

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
    study = request.read(
        read_study, lambda: check_file(report, _REPORTS), required=request.required
    )
    choose_course(study, live=request.federation is not None)
    _note_unused(request)

    def simulate(experiment: Experiment, store: Store) -> Outcome:
        compile_kernels(experiment, quiet=request.quiet)
        with step_bar(quiet=request.quiet) as progress:
            return run_study(experiment, store, report=progress)

    experiment, outcome = request.train(request.build(study), simulate, recall_study)
    draw(
        request.plot,
        lambda: outcome_figure(experiment, outcome),
        when=has_losses(outcome),
        otherwise="there is no loss to draw",
    )
    if report is not None:
        with Store(request.store_url) as store:
            facts = stored_facts(store, experiment.save(store))
        found = replace(facts, experiment=experiment, outcome=outcome)
        write_report(found, report, picture=request.plot)
        say_at_the_end(f"Written: {report}")
    document = {**_as_json(experiment, outcome), "report": report}
    code = EXIT_INFEASIBLE if outcome.status == "infeasible" else 1
    print_result(request.output_format, document, _blocks(experiment, outcome), code=code)


def _note_unused(request: StudyRequest) -> None:
    """Say that a K or an E on the command line is not used."""
    given = {word.partition("=")[0].strip().rpartition(".")[2] for word in request.overrides}
    unused = " and ".join(key for key in _CHOSEN if key in given)
    if unused and not request.quiet:
        click.echo(
            f"Not used: {unused}, which `fedplan run` chooses. For a setting of your own: "
            "fedplan simulate, or fedplan compare --course K=10,E=20.",
            err=True,
        )


def _as_json(experiment: Experiment, outcome: Outcome) -> dict[str, Any]:
    """The outcome without its rounds."""
    measured, all_in = outcome.measured, outcome.all_in
    runs = () if measured is None else measured.runs
    limits = experiment.constraints
    predicted = None
    if (told := outcome.forecast) is not None:
        totals = {"rounds": told.rounds, **asdict(told.bill)}
        predicted = totals | {f"{name}_interval": told.interval_of(v) for name, v in totals.items()}
    return {
        **picked(outcome, "success", "status"),
        "study": experiment.study.name,
        "plan": _plan_json(outcome),
        "course": _course_json(runs[0]) if runs else None,
        "predicted": predicted,
        "measured": measured
        and {
            **picked(measured, "reached", "rounds", "rounds_sd"),
            **asdict(measured.bill),
            "as_predicted": outcome.as_predicted,
            "runs": [{**asdict(RunSummary.of(one)), "course": _course_json(one)} for one in runs],
        },
        "limits": {
            name: {"limit": getattr(limits, name), "runs_within": count if runs else None}
            for name, count in runs_within(limits, runs).items()
        },
        "pilots": [asdict(RunSummary.of(one)) for one in outcome.pilots],
        "bill": {
            "unit": experiment.objective.unit,
            "all_in": all_in and asdict(all_in),
            "pilots": asdict(outcome.pilots_bill),
            "training": measured and asdict(measured.bill),
            "pilots_share": outcome.pilots_share,
        },
        "alternatives": [
            {"name": other.name, **asdict(other.prediction)} for other in outcome.alternatives
        ],
        "message": outcome.message,
    }


def _plan_json(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.setting is None:
        return None
    step = plan_step(outcome)
    law = {"law": step.pop("participation"), "groups": step.pop("groups")}
    return {"participation": law, **step}


def _course_json(run: RunRecord) -> list[dict[str, Any]]:
    """What was decided in a run, and from which round on."""
    return [
        {
            **picked(one, "round", "participation", "local_steps", "saturation"),
            "predicted_rounds": one.expected_rounds,
            **picked(one, "interval", "why"),
        }
        for one in decisions_of(run)
    ]


def _blocks(experiment: Experiment, outcome: Outcome) -> Iterator[Facts | Table | str]:
    """What was trained, what was decided, the bill, and the message."""
    setting = outcome.setting
    made = () if outcome.measured is None else decisions_of(outcome.measured.runs[0])
    facts = [("study", study_in_words(experiment)), ("course", outcome.course)]
    if setting is not None:
        law, groups = setting.participation.law, len(outcome.groups)
        clients = experiment.num_clients
        facts.append(who_trains(law, setting.clients_per_round, groups, clients))
        if len(made) < 2:
            facts.append(("local steps", f"[bold]{setting.local_steps:,}[/]"))
    if made and made[0].round == 1 and made[0].saturation is not None:
        facts.append(("began", made[0].why))
    yield Facts(facts)
    if outcome.measured is not None and len(made) > 1:
        decisions = decision_table(outcome.measured.runs[0], in_full=False)
        rows, half = [*decisions.rows], _MOST_DECISIONS // 2
        if len(rows) > _MOST_DECISIONS:
            rows[half:-half] = [["..."]]
        yield replace(decisions, rows=rows, title="")
    yield replace(bill_table(experiment, outcome), title="")
    yield outcome.message
