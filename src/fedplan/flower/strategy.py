"""PlannedFedAvg: train to a target at the lowest cost, in the place of Flower's FedAvg."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result

from fedplan.core.constraints import Constraints
from fedplan.core.course import Decision
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord, Status, Stop
from fedplan.core.setting import Setting
from fedplan.course.live import alike
from fedplan.errors import FedplanError, InputError, InputProblem, unmet
from fedplan.flower.exchange import Clock
from fedplan.flower.kept_study import KeptStudy
from fedplan.flower.log import LOG
from fedplan.flower.models import to_record
from fedplan.flower.rounds import Made
from fedplan.flower.rules import RoundRules
from fedplan.flower.runner import FlowerRunner
from fedplan.simulation import Job
from fedplan.store import DEFAULT_URL, Store
from fedplan.store.database import path_of
from fedplan.tables import read_fleet

EvaluateFn = Callable[[int, ArrayRecord], MetricRecord | None]


class PlannedFedAvg:
    """FedAvg in which who trains when, and for how many local steps, is learnt as it trains.

    Training begins at once, with every client that is there: what their devices cost is measured
    as they take part. Groups of like speed then take turns, and local steps follow what the updates
    themselves show. No round is thrown away.

    target_loss : where training ends.
    learning_rate : of the clients, for every round; sent to them as `learning-rate`.
    objective, constraints : what is to be low, and what must be kept to; seconds alone by default.
    plan : a fixed (K, E) to use instead, or a JSON file of `fedplan plan --format json`.
    fleet : a fleet.csv of `fedplan profile`, by the names of the nodes, so that groups and local
        steps are right from the first round; without it, what earlier runs of the study have
        measured is used, and otherwise the first rounds measure it.
    study, store : under which name, and in which file, everything is kept. A server that was
        killed and is started again with the same two goes on from its last round.
    min_clients : how many clients must be there before anything begins; others join when they come.
    rules : how a round deals with clients that fail.
    loss_metric, accuracy_metric : what the clients' evaluation calls them, where they evaluate.

    After `start`, `setting` is the one last used, `decisions` what was settled on and why, and
    `status` and `message` say how training has ended.
    """

    def __init__(
        self,
        *,
        target_loss: float,
        learning_rate: float | LearningRate,
        objective: Objective | None = None,
        constraints: Constraints | None = None,
        plan: tuple[int, int] | str | os.PathLike[str] | None = None,
        fleet: str | os.PathLike[str] | None = None,
        study: str = "flower",
        store: str = DEFAULT_URL,
        seed: int = 0,
        patience: int = 1,
        min_clients: int = 2,
        rules: RoundRules | None = None,
        loss_metric: str = "eval_loss",
        accuracy_metric: str = "eval_acc",
        clock: Clock | None = None,
    ) -> None:
        if not re.fullmatch(r"[\w.-]+", study) or study.startswith("."):
            raise InputError(f"study names a folder: letters, digits, - and _, but got {study!r}.")
        self.setting: Setting | None = None
        self.decisions: tuple[Decision, ...] = ()
        self.status: Status | None = None
        self.message = ""
        self.folder = path_of(store).absolute().parent / f"{study}-flower"
        if not isinstance(learning_rate, LearningRate):
            learning_rate = LearningRate(initial=learning_rate)
        self._plan = plan if plan is None or isinstance(plan, tuple) else read_plan(plan)
        _check(target_loss, patience, min_clients, self._plan)
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
        self._rules = rules or RoundRules()
        self._metrics = (loss_metric, accuracy_metric)
        self._clock = clock

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 1000,
        timeout: float | None = None,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: EvaluateFn | None = None,
    ) -> Result:
        """Train to the target, or for `num_rounds` at most; as FedAvg's `start`, and its result.

        evaluate_fn : a MetricRecord with `loss`, and `accuracy` if there is one, of the model
            after a round; without it, all clients evaluate.
        timeout : seconds a round waits for an answer.
        """
        rules = self._rules if timeout is None else replace(self._rules, deadline_s=timeout)
        with Store(self._store_url) as store:
            LOG.info("Study %s is kept in %s", self._study, path_of(self._store_url).absolute())
            kept = KeptStudy(store, self._study, self.folder, initial_arrays, self._rate)
            runner = FlowerRunner(
                grid,
                kept.first_arrays(initial_arrays),
                evaluate=None if evaluate_fn is None else _central(evaluate_fn),
                learning_rate=self._rate,
                rules=rules,
                train_config=train_config,
                evaluate_config=evaluate_config,
                loss_metric=self._metrics[0],
                accuracy_metric=self._metrics[1],
                names=kept.names,
                journal=kept.journal,
                clock=self._clock,
            )
            self._meet_clients(runner, kept)
            run, result = self._train(runner, kept, replace(self._stop, max_rounds=num_rounds))
        evaluations = (
            result.evaluate_metrics_clientapp
            if evaluate_fn is None
            else result.evaluate_metrics_serverapp
        )
        for record in run.rounds:
            found = {"loss": record.loss, "accuracy": record.accuracy}
            evaluations[record.round] = MetricRecord(
                {key: value for key, value in found.items() if value is not None}
            )
        self.status, self.message, self.decisions = run.status, run.message, run.decisions
        self.setting = (run.rounds[-1].setting if run.rounds else None) or run.setting
        LOG.info("Training has ended (%s) after %d rounds. %s", run.status, run.num_rounds,
                 run.message)  # fmt: skip
        return result

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
            if made.metrics:
                result.train_metrics_clientapp[made.record.round] = MetricRecord({**made.metrics})
            kept.save_names(runner.names)

        runner.report = report
        course = kept.begin(self._seed, self._problem, self._plan, fleet=self._fleet)
        run = runner.run(course, stop, seed=self._seed)
        run = replace(run, message=" ".join([run.message, *_remarks(run, stop, runner)]).strip())
        kept.finish(run, runner.weights)
        result.arrays = to_record(runner.weights)
        return run, result


def read_plan(path: str | os.PathLike[str]) -> tuple[int, int]:
    """(K, E) of a JSON file that `fedplan plan --format json` wrote."""
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
        setting = (plan["clients_per_round"], plan["local_steps"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"is no plan ({error}). Write one: fedplan plan ... --format json > plan.json."
        raise InputError(InputProblem(source=str(path), message=message)) from error
    if not _is_pair(setting):
        message = f"must have clients_per_round and local_steps >= 1, but has {setting}."
        raise InputError(InputProblem(source=str(path), message=message))
    return setting


def _is_pair(value: object) -> bool:
    """Whether this can be a (K, E)."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(part, int) and part >= 1 for part in value)
    )


def _check(target_loss: float, patience: int, min_clients: int, plan: object) -> None:
    rules = {
        "target_loss > 0 and finite": 0 < target_loss < math.inf,
        "patience >= 1": patience >= 1,
        "min_clients >= 1": min_clients >= 1,
    }
    problems = unmet(rules, target_loss=target_loss, patience=patience, min_clients=min_clients)
    if plan is not None and not _is_pair(plan):
        problems.append(f"plan must be (K, E), both whole and >= 1, but is {plan!r}.")
    if problems:
        raise InputError(problems)


def _remarks(run: RunRecord, stop: Stop, runner: FlowerRunner) -> Iterator[str]:
    """What to know of a run besides how it ended."""
    if run.status == "rounds":
        yield (
            f"The loss {stop.target_loss:g} was not reached in {stop.max_rounds:,} rounds: allow "
            "more, or raise target_loss."
        )
    if runner.dropped_sketches:
        yield f"{runner.dropped_sketches:,} half-way sketches could not be used."


def _central(evaluate_fn: EvaluateFn) -> Callable[[int, ArrayRecord], tuple[float, float | None]]:
    def evaluate(round_: int, arrays: ArrayRecord) -> tuple[float, float | None]:
        metrics: Mapping[str, Any] = evaluate_fn(round_, arrays) or {}
        loss, accuracy = metrics.get("loss"), metrics.get("accuracy")
        if not isinstance(loss, int | float):
            raise InputError(
                "evaluate_fn must return a MetricRecord with a number `loss`, but it has "
                f"{sorted(metrics)}."
            )
        return float(loss), float(accuracy) if isinstance(accuracy, int | float) else None

    return evaluate
