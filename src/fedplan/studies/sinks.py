"""Sinks: report trainings to MLflow, TensorBoard or Weights & Biases, round by round.

Best effort: a sink works in a thread of its own, and if it fails, that is logged. No training waits
for it or fails with it.
"""

import logging
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from queue import SimpleQueue
from threading import Thread
from typing import Any

from fedplan.core.records import RunRecord
from fedplan.errors import InputError

LOG = logging.getLogger(__name__)
LAST_WORDS_S = 10.0  # for a sink to tell what it has heard, when training has ended
Values = dict[str, float]
Log = Callable[[Values, int], object]
Opened = tuple[Log, Callable[[], object]]  # logs the values of a round; ends the record


class Sink:
    """Forwards the rounds of one run; called with the run so far whenever it has grown.

    to : mlflow, tensorboard or wandb. Where they keep their records is their own setting:
        MLFLOW_TRACKING_URI, WANDB_MODE and the like.
    name : of the training; that of the experiment, project or folder.
    """

    def __init__(self, to: str, name: str) -> None:
        if to not in OPENERS:
            raise InputError(f"sinks are {', '.join(OPENERS)}, but got {to!r}.")
        package, install, open_ = OPENERS[to]
        if find_spec(package) is None:
            raise InputError(
                f"the sink {to} needs the package {package}, which is not installed. "
                f"Type: pip install {install}"
            )
        self._to, self._heard = to, 0
        self._news: SimpleQueue[tuple[Values, int] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, args=(open_, name), daemon=True)
        self._thread.start()

    def __call__(self, run: RunRecord) -> None:
        """Tell the rounds that are new."""
        for values in told(run, self._heard):
            self._news.put(values)
        self._heard = len(run.rounds)

    def close(self) -> None:
        """Give the sink a moment to end its record."""
        self._news.put(None)
        self._thread.join(LAST_WORDS_S)

    def _work(self, open_: Callable[[str], Opened], name: str) -> None:
        try:
            log, end = open_(name)
            while (item := self._news.get()) is not None:
                log(*item)
            end()
        except Exception as error:  # whatever another library raises: training goes on
            LOG.warning("%s hears no more of this training: %r", self._to, error)


def told(run: RunRecord, first: int = 0) -> Iterator[tuple[Values, int]]:
    """The metrics of each round from this one on.

    Predicted seconds and joules are of the whole training: what is spent, and the rounds that are
    still expected, at the mean cost of the last cycle.
    """
    for place in range(first, len(run.rounds)):
        record = run.rounds[place]
        setting = record.setting or run.setting
        decided = [one.expected_rounds for one in run.decisions if one.round <= record.round + 1]
        expected = next((rounds for rounds in reversed(decided) if rounds), None)
        values: dict[str, float | None] = {
            "loss": record.loss,
            "accuracy": record.accuracy,
            "clients": len(record.cohort),
            "groups": setting.groups,
            "local_steps": setting.local_steps,
            "predicted_rounds": expected,
        }
        for unit, part in (("s", "seconds"), ("j", "joules")):
            paid = [getattr(one, part) for one in run.rounds[: place + 1]]
            values |= {f"round_{unit}": paid[-1], f"spent_{unit}": sum(paid)}
            if expected and place:
                cycle = paid[1:][-setting.participation.cycle :]
                left = max(expected - record.round, 0.0) * sum(cycle) / len(cycle)
                values[f"predicted_{unit}"] = sum(paid) + left
        known = {name: float(value) for name, value in values.items() if value is not None}
        yield known, record.round


def _open_mlflow(name: str) -> Opened:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient()
    known = client.get_experiment_by_name(name)
    experiment = known.experiment_id if known else client.create_experiment(name)
    run: Any = client.create_run(experiment)

    def log(values: Values, round_: int) -> None:
        metrics = [Metric(key, value, 0, round_) for key, value in values.items()]
        client.log_batch(run.info.run_id, metrics)

    return log, lambda: client.set_terminated(run.info.run_id)


def _open_tensorboard(name: str) -> Opened:
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(f"runs/{name}")

    def log(values: Values, round_: int) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, round_)
        writer.flush()

    return log, writer.close


def _open_wandb(name: str) -> Opened:
    import wandb

    run = wandb.init(project=name)
    return lambda values, round_: run.log(values, step=round_), run.finish


# name: package, how to install it, and what opens a record there
OPENERS: dict[str, tuple[str, str, Callable[[str], Opened]]] = {
    "mlflow": ("mlflow", "mlflow-skinny", _open_mlflow),
    "tensorboard": ("tensorboardX", "tensorboardX", _open_tensorboard),
    "wandb": ("wandb", "wandb", _open_wandb),
}
