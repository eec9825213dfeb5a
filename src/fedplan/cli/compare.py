"""`fedplan compare`: several courses on one study, with their full costs."""

from collections.abc import Iterator
from dataclasses import asdict

import click

from fedplan.cli.output import draw, print_result
from fedplan.cli.progress import step_bar
from fedplan.cli.training import StudyRequest, compile_kernels, study_options
from fedplan.studies.compare import Comparison, compare_courses, read_entrants
from fedplan.studies.experiment import Experiment
from fedplan.studies.figures import comparison_figure
from fedplan.words import Table, table_of, with_error


@click.command()
@study_options()
@click.option(
    "--course",
    "courses",
    multiple=True,
    metavar="COURSE",
    help="online, fixed, paper, a rule of others, a pair such as K=10,E=20, or best-fixed; again "
    "for more.",
)
@click.option(
    "--seeds", type=int, metavar="N", help="Runs of each course; by default as in the study."
)
def compare(request: StudyRequest, courses: tuple[str, ...], seeds: int | None) -> None:
    """Train a study with several courses, and compare their full bills.

    A course decides who trains when, and for how many local steps: fedplan's own (online), one
    setting (fixed), the paper's procedure (paper), a published rule (fedtune, adacomm,
    adaptive-tau, oort, infocom22), a given pair (K=10,E=20), or the cheapest pair of the grid that
    `fedplan sweep` tries (best-fixed, which is chosen by these very seeds and not billed for the
    grid, so that no course can know it). By default: online, all published rules, and paper if the
    study has its pairs.

    The bill includes every round, also of pilots. Every course is compared with the cheapest pair
    among them, or else with the first. Runs are stored as they end: after an interruption the same
    command resumes, and with more courses or seeds it trains only those.

    STUDY is a study file (TOML) or a built-in study: demo, setup1, setup2, setup3. KEY=VALUE
    overrides it.

    \b
    Examples:
      fedplan compare demo
      fedplan compare demo --course online --course oort --course K=5,E=20 --seeds 3
      fedplan compare setup3 energy-weight=0.5 --course online --course paper --plot bills.png
      fedplan compare study.toml --course best-fixed --course online --format json

    Exit codes: 0 some course reached the target with every seed, 1 none did, 2 wrong input.
    """
    entrants = request.read(read_entrants, courses=courses, seeds=seeds)
    experiment = request.build(entrants[0].study)
    with request.open_store() as store:
        compile_kernels(experiment, quiet=request.quiet)
        with step_bar(quiet=request.quiet) as progress:
            result = compare_courses(experiment, entrants, store, report=progress)
    name, unit = experiment.study.name, experiment.objective.unit
    draw(
        request.plot, lambda: comparison_figure(result, name, unit), otherwise="nothing was trained"
    )
    document = {
        "success": any(row.arrived for row in result.rows),
        "study": name,
        "target_loss": experiment.stop.target_loss,
        "unit": unit,
        "against": result.against,
        "courses": [asdict(row) for row in result.rows],
    }
    print_result(request.output_format, document, _blocks(experiment, result))


def _blocks(experiment: Experiment, result: Comparison) -> Iterator[Table | str]:
    yield table_of(
        result.rows,
        {
            "course": "course",
            "arrived": lambda row: f"{row.reached} of {row.seeds}",
            "rounds": "rounds",
            "time": "time_s",
            "energy": "energy_j",
            f"cost ({experiment.objective.unit})": lambda row: with_error(row.cost, row.cost_error),
            "against": "ratio",
        },
    )
    end = f"the loss {experiment.stop.target_loss:g}"
    yield f"All in, from the first round to {end}; against {result.against}."
    for row in result.rows:
        if not row.arrived and row.message:
            yield f"{row.course}: {row.message}"
