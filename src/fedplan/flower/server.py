"""A ServerApp for fedplan's own studies: any course of `fedplan run`, on a live federation."""

import json
import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp

from fedplan.atomic import draft_of
from fedplan.core.records import RoundRecord
from fedplan.errors import FedplanError, InputError
from fedplan.flower.app import pack, unpack
from fedplan.flower.client import partition_name
from fedplan.flower.exchange import Clock
from fedplan.flower.journal import Journal
from fedplan.flower.log import LOG
from fedplan.flower.runner import FlowerRunner
from fedplan.simulation import Job
from fedplan.store import Store
from fedplan.strictjson import to_json
from fedplan.studies.devices import save_names
from fedplan.studies.experiment import Experiment, build_experiment
from fedplan.studies.grid import Grid as SweepGrid
from fedplan.studies.study import study_from_text
from fedplan.studies.sweep import sweep_study
from fedplan.studies.workflow import Report, run_study

MEETING_S = 60.0  # for the nodes to be there, before anything begins
_POLL_S = 1.0


def live_engine(
    grid: Grid, experiment: Experiment, store: Store, folder: Path, *, clock: Clock | None = None
) -> FlowerRunner:
    """The engine of a study's runs, once there is a node for each of its clients.

    Client k is the node with partition-id k.

    folder : for the models of runs under way. What store and folder have is not trained again.
    """
    learner, samples = experiment.simulator.learner, experiment.simulator.learner.samples()

    def evaluate(_round: int, arrays: ArrayRecord) -> tuple[float, float | None]:
        return learner.evaluate(unpack(arrays), samples)

    entry = experiment.save(store)
    runner = FlowerRunner(
        grid,
        lambda seed: pack(learner.initial(seed)),
        evaluate=evaluate,
        learning_rate=experiment.rate,
        names=[partition_name(client) for client in range(experiment.num_clients)],
        samples=learner.sizes.tolist(),
        journal=Journal(store, experiment.settings, folder),
        clock=clock,
    )
    _await(runner, experiment.num_clients)
    save_names(store, entry, runner.names)
    return runner


def _await(runner: FlowerRunner, clients: int) -> None:
    """Wait for one node per client; more or fewer would be another study."""
    there = runner.wait_for(clients, MEETING_S)
    strangers = runner.names[clients:]
    if there == clients and not strangers:
        return
    message = (
        f"The study has {clients} clients, and needs a node for each, with the partition-ids 0 to "
        f"{clients - 1}; the federation has {there} nodes"
    )
    if strangers:
        message += f", {', '.join(strangers)} among them"
    raise FedplanError(f"{message}. Start or stop nodes, or change num-clients.")


app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the study of the run config, and leave an answer for the command that waits for it."""
    config = {name: str(value) for name, value in context.run_config.items()}
    _show_log()
    desk = Path(config["desk"])
    if not desk.is_dir():
        raise FedplanError(
            f"{desk} is not here: `fedplan run` must be typed on the machine of the SuperLink."
        )
    answer: dict[str, object] = {"success": True}
    try:
        study = study_from_text(config["study"])
        experiment = build_experiment(study, federation=config["federation"])
        with Store(config["store"]) as store:
            entry = experiment.save(store)
            folder = Path(config["models"]) / f"{study.name}-{entry.experiment.fingerprint[:12]}"
            with _alone(folder, desk):
                report, engine = _reporter(desk), live_engine(grid, experiment, store, folder)
                tried = SweepGrid.of_keys(json.loads(config["sweep"] or "{}"))
                if tried is not None:
                    progress = partial(report, "sweep")
                    sweep_study(experiment, tried, store, engine=engine, progress=progress)
                else:
                    run_study(experiment, store, engine=engine, report=report)
    except FedplanError as error:
        LOG.error("%s", error)
        problems = [str(one) for one in error.problems] if isinstance(error, InputError) else None
        answer = {"success": False, "message": str(error), "problems": problems}
    if desk.is_dir():
        with draft_of(desk / "answer.json") as draft:
            draft.write_text(to_json(answer), encoding="utf-8")


def _show_log() -> None:
    """Show fedplan's log to those who follow the run: Flower passes on standard error."""
    logger, lines = logging.getLogger("fedplan"), logging.StreamHandler()
    lines.setFormatter(logging.Formatter("fedplan: %(message)s"))
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)


def _reporter(desk: Path) -> Report:
    def report(step: str, job: Job, record: RoundRecord) -> None:
        loss = "-" if record.loss is None else f"{record.loss:.4g}"
        setting = record.setting or job.setting
        LOG.info("%s: %s, round %d, loss %s, %.3g s", step, setting.label, record.round, loss,
                 record.seconds)  # fmt: skip
        _check_desk(desk)

    return report


def _check_desk(desk: Path) -> None:
    """End if the command has: nobody waits for the rest."""
    if not desk.is_dir():
        raise FedplanError("The command that began this has ended. Run it again to resume.")


@contextmanager
def _alone(folder: Path, desk: Path) -> Iterator[None]:
    """Be the only server of a study; one whose command was killed may still be at work.

    The second one waits, and then finds what the first has done. A lock of SQLite ends with the
    process that holds it, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "lock.db", timeout=0, isolation_level=None)) as lock:
        waiting = False
        while True:
            try:
                lock.execute("BEGIN EXCLUSIVE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
            if not waiting:
                LOG.info("Another server is at work on this study; waiting for it to end.")
                waiting = True
            _check_desk(desk)
            time.sleep(_POLL_S)
        yield
