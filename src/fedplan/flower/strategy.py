"""Planned: any Flower strategy, trained to a target at the lowest cost."""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from inspect import signature
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result, Strategy

from fedplan.core.constraints import Constraints
from fedplan.core.course import Decision
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord, Status, Stop
from fedplan.core.setting import Setting
from fedplan.course.live import alike
from fedplan.errors import FedplanError, InputError
from fedplan.flower.epochs import Epochs
from fedplan.flower.exchange import Clock
from fedplan.flower.kept_study import KeptStudy
from fedplan.flower.log import LOG
from fedplan.flower.models import to_record
from fedplan.flower.options import check_options, read_plan
from fedplan.flower.rounds import Made
from fedplan.flower.rules import RoundRules
from fedplan.flower.runner import FlowerRunner
from fedplan.flower.wrapped import Wrapped
from fedplan.simulation import Job
from fedplan.store import DEFAULT_URL, Store
from fedplan.store.database import path_of
from fedplan.studies.sinks import Sink
from fedplan.tables import read_fleet

EvaluateFn = Callable[[int, ArrayRecord], MetricRecord | None]


class Planned(Strategy):
    """A Flower strategy that learns on the way who should train when, for how many local steps.

    Training begins at once, with every client that is there: what their devices cost is measured
    as they take part. Groups of similar speed then take turns, and local steps follow what the
    updates themselves show. No round is thrown away.

    strategy : any of Flower's Message API, or your own: it configures, aggregates and evaluates
        as ever, for the clients that are chosen. Options that fedplan cannot honour are refused.
    target_loss : where training ends.
    learning_rate : of the clients, for every round; sent to them as `learning-rate`. None where
        they have one of their own.
    objective, constraints : what to minimise, by default seconds alone, and the limits to keep.
    plan : a fixed (K, E) to use instead, or a JSON file of `fedplan plan --format json`.
    fleet : a fleet.csv of `fedplan profile`, by the names of the nodes, so that groups and local
        steps are right from the first round; without it, what earlier runs of the study have
        measured is used, and otherwise the first rounds measure it.
    study, store : under which name, and in which file, everything is kept. A server that was
        killed and is started again with the same two goes on from its last round.
    min_clients : how many clients must be there before anything begins; others join when they come.
    epochs : for clients that are not converted: how they are told their number of epochs.
    rules : how a round deals with clients that fail.
    loss_metric, accuracy_metric : what the clients' evaluation calls them, where they evaluate.
    sinks : any of mlflow, tensorboard and wandb, to be told of every round.

    After `start`, `setting` is the one last used, `decisions` what was settled on and why, and
    `status` and `message` say how training has ended.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        target_loss: float,
        learning_rate: float | LearningRate | None = None,
        objective: Objective | None = None,
        constraints: Constraints | None = None,
        plan: tuple[int, int] | str | os.PathLike[str] | None = None,
        fleet: str | os.PathLike[str] | None = None,
        study: str = "flower",
        store: str = DEFAULT_URL,
        seed: int = 0,
        patience: int = 1,
        min_clients: int = 2,
        epochs: Epochs | None = None,
        rules: RoundRules | None = None,
        loss_metric: str = "eval_loss",
        accuracy_metric: str = "eval_acc",
        sinks: Sequence[str] = (),
        clock: Clock | None = None,
    ) -> None:
        self.strategy = strategy
        self.setting: Setting | None = None
        self.decisions: tuple[Decision, ...] = ()
        self.status: Status | None = None
        self.message = ""
        self._plan = plan if plan is None or isinstance(plan, tuple) else read_plan(plan)
        check_options(study, target_loss, patience, min_clients, self._plan)
        if not isinstance(strategy, Strategy) or isinstance(strategy, Planned):
            raise InputError(
                "strategy must be one of Flower's Message API (flwr.serverapp.strategy), which "
                f"{type(strategy).__name__} is not."
            )
        self._wrapped = Wrapped(strategy, hooks=self)
        self.folder = path_of(store).absolute().parent / f"{study}-flower"
        if learning_rate is not None and not isinstance(learning_rate, LearningRate):
            learning_rate = LearningRate(initial=learning_rate)
        self._problem = Problem(
            fleet=alike(1),  # until the clients are there
            objective=objective or Objective.weighted(0.0),
            limits=constraints or Constraints(),
            target_loss=target_loss,
            learning_rate=learning_rate,
        )
        self._stop = Stop(max_rounds=1, target_loss=target_loss, patience=patience)
        self._rate, self._min_clients, self._seed = learning_rate, min_clients, seed
        self._study, self._store_url = study, store
        self._fleet = None if fleet is None else read_fleet(fleet)
        self._rules, self._epochs = rules or RoundRules(), epochs
        self._metrics = (loss_metric, accuracy_metric)
        self._clock = clock
        self._sinks = [Sink(to, study) for to in sinks]
        self._is_training = self._server_evaluates = False

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As the wrapped strategy does, for the nodes of a round."""
        return self._inner.configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """As the wrapped strategy does."""
        return self._inner.aggregate_train(server_round, replies)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As the wrapped strategy does."""
        return self._inner.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """As the wrapped strategy does."""
        return self._inner.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """Log what is planned, and the wrapped strategy's summary."""
        how = "groups take turns" if self._plan is None else "(K, E) = ({}, {})".format(*self._plan)
        LOG.info("\t├──> Planned by fedplan: to loss %g, %s", self._stop.target_loss, how)
        self.strategy.summary()

    @property
    def _inner(self) -> Strategy:
        """The wrapped strategy, for a round that is planned."""
        if not self._is_training:
            raise FedplanError(
                f"{type(self).__name__} plans only in its own start(), so another strategy cannot "
                "wrap it. Turn them round: Planned(DifferentialPrivacy...(FedAvg(), ...), ...)."
            )
        return self.strategy

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 1000,
        timeout: float = 3600.0,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: EvaluateFn | None = None,
    ) -> Result:
        """Train to the target, or for `num_rounds` at most; as Flower's `start`, and its result.

        evaluate_fn : a MetricRecord with `loss`, and `accuracy` if there is one, of the model
            after a round; without it, the clients' evaluation tells the loss.
        timeout : the most seconds that a round waits for an answer.
        """
        rules = replace(self._rules, deadline_s=min(timeout, self._rules.deadline_s))
        central: dict[int, MetricRecord] = {}
        with self._training(evaluate_fn), Store(self._store_url) as store:
            self.summary()
            LOG.info("Study %s is kept in %s", self._study, path_of(self._store_url).absolute())
            kept = KeptStudy(
                store, self._study, self.folder, initial_arrays,
                learning_rate=None if self._rate is None else asdict(self._rate),
                strategy=self._wrapped.configuration,
                train_config={key: repr(value) for key, value in (train_config or {}).items()},
                **({} if self._epochs is None else {"epochs": asdict(self._epochs)}),
            )  # fmt: skip
            runner = FlowerRunner(
                grid,
                kept.first_arrays(initial_arrays),
                strategy=self._wrapped,
                evaluate=None if evaluate_fn is None else _central(evaluate_fn, central),
                learning_rate=self._rate,
                rules=rules,
                train_config=train_config,
                evaluate_config=evaluate_config,
                loss_metric=self._metrics[0],
                accuracy_metric=self._metrics[1],
                epochs=self._epochs,
                names=kept.names,
                journal=kept.journal,
                sinks=self._sinks,
                clock=self._clock,
            )
            self._meet_clients(runner, kept)
            run, result = self._train(runner, kept, replace(self._stop, max_rounds=num_rounds))
        self._add_evaluations(result, run, central)
        self.status, self.message, self.decisions = run.status, run.message, run.decisions
        self.setting = (run.rounds[-1].setting if run.rounds else None) or run.setting
        LOG.info("Training has ended (%s) after %d rounds. %s", run.status, run.num_rounds,
                 run.message)  # fmt: skip
        return result

    @contextmanager
    def _training(self, evaluate_fn: EvaluateFn | None) -> Iterator[None]:
        """Let the hooks plan during training, and close the sinks after it."""
        self._is_training, self._server_evaluates = True, evaluate_fn is not None
        try:
            yield
        finally:
            self._is_training = False
            for sink in self._sinks:
                sink.close()

    def _add_evaluations(
        self, result: Result, run: RunRecord, central: Mapping[int, MetricRecord]
    ) -> None:
        """Add losses and accuracies of every round, including those of earlier starts."""
        names, evaluations = self._metrics, result.evaluate_metrics_clientapp
        if self._server_evaluates:
            names, evaluations = ("loss", "accuracy"), result.evaluate_metrics_serverapp
        for record in run.rounds:
            found = dict(zip(names, (record.loss, record.accuracy), strict=True))
            known = {key: value for key, value in found.items() if value is not None}
            evaluations[record.round] = MetricRecord(
                {**central.get(record.round, evaluations.get(record.round, {})), **known}
            )

    def _meet_clients(self, runner: FlowerRunner, kept: KeptStudy) -> None:
        wanted = self._min_clients
        there = runner.wait_for(wanted)
        if there < wanted:
            raise FedplanError(
                f"{wanted} clients are to be there, but after {runner.rules.wait_s:g} s {there} "
                "are. Start more nodes, or lower min_clients."
            )
        kept.save_names(runner.names)

    def _train(self, runner: FlowerRunner, kept: KeptStudy, stop: Stop) -> tuple[RunRecord, Result]:
        """Train to the end."""
        result = Result()

        def report(_job: Job, made: Made) -> None:
            if made.metrics is not None:
                result.train_metrics_clientapp[made.record.round] = made.metrics
            if made.evaluated is not None:
                result.evaluate_metrics_clientapp[made.record.round] = made.evaluated
            kept.save_names(runner.names)

        runner.report = report
        course = kept.begin(self._seed, self._problem, stop, self._plan, fleet=self._fleet)
        run = runner.run(course, stop, seed=self._seed)
        run = replace(run, message=" ".join([run.message, *_remarks(run, stop, runner)]).strip())
        kept.finish(run, runner.weights)
        result.arrays = to_record(runner.weights)
        return run, result


class PlannedFedAvg(Planned):
    """`Planned(FedAvg(...), ...)` in one: keywords of both.

    Where the server evaluates (`evaluate_fn`), clients do not: that takes a round trip.
    """

    def __init__(self, **options: Any) -> None:
        own = signature(FedAvg).parameters
        inner = {key: options.pop(key) for key in list(options) if key in own}
        self._evaluates = "fraction_evaluate" in inner
        super().__init__(FedAvg(**inner), **options)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As FedAvg does, unless the server evaluates."""
        if self._server_evaluates and not self._evaluates:
            return []
        return super().configure_evaluate(server_round, arrays, config, grid)


def _remarks(run: RunRecord, stop: Stop, runner: FlowerRunner) -> Iterator[str]:
    """What to know of a run besides how it ended."""
    if run.status == "rounds":
        yield (
            f"The loss {stop.target_loss:g} was not reached in {stop.max_rounds:,} rounds: allow "
            "more, or raise target_loss."
        )
    if runner.dropped_sketches:
        yield f"{runner.dropped_sketches:,} half-way sketches could not be used."


def _central(
    evaluate_fn: EvaluateFn, found: dict[int, MetricRecord]
) -> Callable[[int, ArrayRecord], tuple[float, float | None]]:
    """Evaluate loss and accuracy; the metrics of each round's better model go to `found`."""
    best: dict[int, float] = {}

    def evaluate(round_: int, arrays: ArrayRecord) -> tuple[float, float | None]:
        metrics = evaluate_fn(round_, arrays) or MetricRecord()
        loss, accuracy = metrics.get("loss"), metrics.get("accuracy")
        if not isinstance(loss, int | float):
            raise InputError(
                "evaluate_fn must return a MetricRecord with a number `loss`, but it has "
                f"{sorted(metrics)}."
            )
        if loss <= best.get(round_, math.inf):
            best[round_], found[round_] = loss, metrics
        return float(loss), float(accuracy) if isinstance(accuracy, int | float) else None

    return evaluate
