"""PlannedFedAvg: profile, pilot, plan and train to a target, in the place of Flower's FedAvg."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result

from fedplan.core.constraints import Constraints
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.records import Status
from fedplan.errors import InputError, InputProblem
from fedplan.flower.border import Layout
from fedplan.flower.course import Course, Goal, is_setting
from fedplan.flower.exchange import Clock
from fedplan.flower.journal import load_weights, save_weights
from fedplan.flower.log import LOG
from fedplan.flower.rounds import RoundRules, to_record
from fedplan.flower.runner import FlowerRunner
from fedplan.store import DEFAULT_URL, Store
from fedplan.store.database import path_of
from fedplan.studies.devices import find_names

EvaluateFn = Callable[[int, ArrayRecord], MetricRecord | None]


class PlannedFedAvg:
    """FedAvg with K and E chosen for the lowest cost of reaching a loss.

    target_loss : where training ends.
    learning_rate : of the clients, for every round; sent to them as `learning-rate`.
    objective, constraints : what is to be low, and what must be kept to; seconds alone by default.
    plan : the (K, E) to use, or a JSON file of `fedplan plan --format json`; None finds them by
        pilots.
    study, store : under which name, and in which file, everything is kept. A server that was
        killed and is started again with the same two goes on from its last round.
    min_clients : how many clients must be there before anything begins. The profile, and so the
        plan, is of those that are there then: give the size of your federation.
    rules : how a round deals with clients that fail.
    loss_metric, accuracy_metric : what the clients' evaluation calls them, where they evaluate.

    After `start`, `setting` is the (K, E) last used, and `status` and `message` say how training
    has ended.
    """

    def __init__(
        self,
        *,
        target_loss: float,
        learning_rate: float | LearningRate,
        objective: Objective | None = None,
        constraints: Constraints | None = None,
        plan: tuple[int, int] | str | os.PathLike[str] | None = None,
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
        self.setting: tuple[int, int] | None = None
        self.status: Status | None = None
        self.message = ""
        self.folder = path_of(store).absolute().parent / f"{study}-flower"
        if not isinstance(learning_rate, LearningRate):
            learning_rate = LearningRate(initial=learning_rate)
        self._goal = Goal(
            target_loss=target_loss,
            patience=patience,
            rate=learning_rate,
            objective=objective or Objective.weighted(0.0),
            constraints=constraints or Constraints(),
            plan=plan if plan is None or isinstance(plan, tuple) else read_plan(plan),
            min_clients=min_clients,
            seed=seed,
        )
        self._study, self._store_url = study, store
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
            experiment = {
                "engine": "flower",
                "study": self._study,
                "arrays": _shapes(initial_arrays),
                "learning_rate": asdict(self._goal.rate),
            }
            entry = store.save_study(self._study, {}, experiment)
            runner = FlowerRunner(
                grid,
                self._first_arrays(initial_arrays),
                evaluate=None if evaluate_fn is None else _central(evaluate_fn),
                learning_rate=self._goal.rate,
                rules=rules,
                train_config=train_config,
                evaluate_config=evaluate_config,
                loss_metric=self._metrics[0],
                accuracy_metric=self._metrics[1],
                names=find_names(store, entry),
                clock=self._clock,
            )
            course = Course(self._goal, num_rounds, runner, store, entry, self.folder)
            run, result = course.train(course.choose())
        self.status, self.message = run.status, run.message
        self.setting = run.setting.pair
        LOG.info("Training has ended (%s) after %d rounds. %s", run.status, run.num_rounds,
                 run.message)  # fmt: skip
        return result

    def _first_arrays(self, arrays: ArrayRecord) -> ArrayRecord:
        """The arrays of the first start: after a restart, pilots begin where others did."""
        path = self.folder / "initial.npz"
        given = Layout(arrays).arrays
        if not path.exists():
            save_weights(path, 0, given)
        first = to_record(load_weights(path)[1])
        if _shapes(first) != _shapes(to_record(given)):
            message = "is of another model. Give this one a study of its own, or remove the folder."
            raise InputError(InputProblem(source=str(path), message=message))
        return first


def read_plan(path: str | os.PathLike[str]) -> tuple[int, int]:
    """(K, E) of a JSON file that `fedplan plan --format json` wrote."""
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
        setting = (plan["clients_per_round"], plan["local_steps"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"is no plan ({error}). Write one: fedplan plan ... --format json > plan.json."
        raise InputError(InputProblem(source=str(path), message=message)) from error
    if not is_setting(setting):
        message = f"must have clients_per_round and local_steps >= 1, but has {setting}."
        raise InputError(InputProblem(source=str(path), message=message))
    return setting


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


def _shapes(arrays: ArrayRecord) -> list[list[Any]]:
    return [[name, array.dtype, list(array.shape)] for name, array in arrays.items()]
