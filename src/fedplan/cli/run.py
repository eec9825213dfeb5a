"""`fedplan run`: the whole flow, from pilots to the check of the plan's own prediction."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.live import check_runner, needed_keys, on_federation, runner_options
from fedplan.cli.options import (
    download_option,
    plot_option,
    quiet_option,
    store_options,
    verbose_option,
)
from fedplan.cli.output import (
    amount,
    check_file,
    check_plot,
    console,
    joules,
    note_kept,
    print_json,
    save_plot,
    say_not_drawn,
    seconds,
    who_trains,
)
from fedplan.cli.preparing import build, compile_kernels, named_study, read_checked
from fedplan.cli.progress import step_bar

if TYPE_CHECKING:
    from fedplan.studies.building import Experiment
    from fedplan.studies.workflow import Bill, Outcome

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
    """Find clients per round and local steps for a study, train with them, and check.

    Short pilots show how fast the loss falls; the plan is the setting that stays cheap whatever
    they leave open; training with it shows whether the prediction was right. Everything is kept in
    the store: the same command after an interruption goes on where it was. With
    participation=turns no pilots are needed: groups of devices of like speed take turns.

    STUDY is a study file (TOML) or one that is built in: demo, setup1, setup2, setup3. KEY=VALUE
    takes the place of what it says.

    With --runner flower the same study is run on a live federation of Flower's, client k on the
    node with partition-id k. Seconds are real ones then, and its devices are profiled first.

    \b
    Examples:
      fedplan run
      fedplan run setup3 energy-weight=0.5 --plot setup3.png --report setup3.md
      fedplan run setup3 participation=turns --plot turns.png
      fedplan run setup1 pilots=paper
      fedplan run study.toml deadline-s=3600 --format json
      fedplan run study.toml --runner flower --federation lab

    Exit codes: 0 the target was reached, 1 it was not, 2 wrong input, 3 no feasible plan.
    """
    from fedplan.store import Store
    from fedplan.studies import read_study

    study, overrides = named_study(study, overrides)
    read = read_checked(
        lambda: read_study(study, overrides, required=needed_keys(runner)),
        lambda: check_runner(runner, federation),
        lambda: check_plot(plot),
        lambda: check_file(report, _REPORTS),
    )

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
        print_json({**_as_json(experiment, outcome), "report": report})
    else:
        _print_table(experiment, outcome)
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


def _plan_json(outcome: Outcome) -> dict[str, Any] | None:
    from fedplan.studies.workflow import plan_step

    if outcome.plan is not None:
        step = plan_step(outcome.plan)
        law = {"law": step.pop("participation"), "groups": step.pop("groups")}
        return {"participation": law, **step} if outcome.plan.success else None
    if outcome.setting is None:
        return None
    return {
        "participation": {"law": "uniform", "groups": []},
        "clients_per_round": outcome.setting[0],
        "local_steps": outcome.setting[1],
        "regret": outcome.regret,
    }


def _predicted_json(outcome: Outcome) -> dict[str, Any] | None:
    if (expected := outcome.forecast) is None:
        return None
    prediction = expected.prediction
    totals = {
        "rounds": prediction.expected_rounds,
        "time_s": prediction.time_s,
        "energy_j": prediction.energy_j,
        "cost": prediction.cost,
    }
    intervals = {f"{name}_interval": list(expected.interval(v)) for name, v in totals.items()}
    return {**totals, **intervals}


def _as_json(experiment: Experiment, outcome: Outcome) -> dict[str, Any]:
    from fedplan.studies.summary import RunSummary
    from fedplan.studies.workflow import runs_within

    measured = outcome.measured
    within = runs_within(experiment.constraints, () if measured is None else measured.runs)
    return {
        "success": outcome.success,
        "status": outcome.status,
        "study": experiment.study.name,
        "plan": _plan_json(outcome),
        "predicted": _predicted_json(outcome),
        "measured": measured
        and {
            "reached": measured.reached,
            "rounds": measured.rounds,
            "rounds_sd": measured.rounds_sd,
            **asdict(measured.bill),
            "as_predicted": outcome.as_predicted,
            "runs": [asdict(RunSummary.of(one)) for one in measured.runs],
        },
        "limits": {
            name: {
                "limit": getattr(experiment.constraints, name),
                "runs_within": None if measured is None else count,
            }
            for name, count in within.items()
        },
        "pilots": [asdict(RunSummary.of(one)) for one in outcome.pilots],
        "bill": {
            "unit": experiment.objective.unit,
            "pilots": asdict(outcome.pilots_bill),
            "training": None if measured is None else asdict(measured.bill),
            "pilots_share": outcome.pilots_share,
        },
        "message": outcome.message,
    }


def _print_table(experiment: Experiment, outcome: Outcome) -> None:
    from rich.table import Table

    out = console()
    study = experiment.study
    facts = Table.grid(padding=(0, 3))
    facts.add_row("study", f"{study.name}: {experiment.data_name}, {study.task.model}")
    if (plan := _plan_json(outcome)) is not None:
        law, clients = plan["participation"], plan["clients_per_round"]
        facts.add_row(*who_trains(law["law"], clients, len(law["groups"]), experiment.num_clients))
        facts.add_row("local steps", f"[bold]{plan['local_steps']:,}[/]")
    out.print(facts)
    out.print()
    out.print(_comparison(experiment, outcome))
    out.print()
    out.print(outcome.message, markup=False)


def _comparison(experiment: Experiment, outcome: Outcome) -> Any:
    """Pilots, prediction and training side by side."""
    from rich.table import Table

    table = Table(box=None)
    for name in ("", "rounds", "time", "energy", f"cost ({experiment.objective.unit})"):
        table.add_column(name, justify="right" if name else "left", no_wrap=not name)
    for pilot in outcome.pilots:
        bill = type(outcome.pilots_bill).of([pilot], experiment.objective)
        setting = f"{pilot.clients_per_round:,} clients, {pilot.local_steps:,} steps"
        _add_bill(table, f"pilot: {setting}", f"{pilot.num_rounds:,}", bill)
    if outcome.pilots:
        _add_bill(table, "all pilots", "", outcome.pilots_bill)
    if (expected := outcome.forecast) is not None:
        prediction = expected.prediction
        totals = (prediction.expected_rounds, prediction.time_s, prediction.energy_j)
        shown = (amount, seconds, joules, amount)
        cells = [
            f"{form(low)} to {form(high)}"
            for form, (low, high) in zip(
                shown, map(expected.interval, (*totals, prediction.cost)), strict=True
            )
        ]
        table.add_row("training, predicted", *cells)
    if (measured := outcome.measured) is not None:
        _add_bill(table, "training, measured", amount(measured.rounds), measured.bill)
    return table


def _add_bill(table: Any, name: str, rounds: str, bill: Bill) -> None:
    table.add_row(name, rounds, seconds(bill.time_s), joules(bill.energy_j), amount(bill.cost))
