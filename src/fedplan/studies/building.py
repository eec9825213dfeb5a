"""Building what a study describes: its data, model, devices and runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, draw_fleet
from fedplan.core.objective import Objective, Prices
from fedplan.core.records import Stop
from fedplan.errors import Collector, InputError, InputProblem
from fedplan.models import Learner, LeNet5, Logistic
from fedplan.participation import Uniform
from fedplan.simulation import Clock, Evaluation, LearningRate, Simulator
from fedplan.store import Store, StudyEntry
from fedplan.studies.archive import Archive, Engine
from fedplan.studies.config import Study
from fedplan.studies.identity import experiment_settings, live_settings, run_settings
from fedplan.studies.keys import (
    LIMIT_KEYS,
    PRICE_KEYS,
    FleetTable,
    ObjectiveTable,
    TaskTable,
    TrainingTable,
)
from fedplan.tables import read_fleet
from fedplan.tasks import (
    FederatedData,
    by_sizes,
    dirichlet,
    federate,
    iid,
    load_mnist,
    mnist_mini,
    power_law_sizes,
    read_data,
    synthetic,
    two_labels_balanced,
    two_labels_shards,
)
from fedplan.tasks.mnist import IMAGE_SHAPE, NUM_DIGITS

if TYPE_CHECKING:
    from fedplan.tasks import Assignment, Digits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Experiment:
    """A study, ready to be run.

    settings : what makes its runs comparable with others in a store.
    federation : the live one that trains; None where clients are simulated.
    """

    study: Study
    data_name: str
    fleet: Fleet | None
    rate: LearningRate
    simulator: Simulator
    stop: Stop
    objective: Objective
    constraints: Constraints
    settings: dict[str, Any]
    federation: str | None = None

    @property
    def num_clients(self) -> int:
        """Clients N."""
        return self.simulator.num_clients

    def save(self, store: Store) -> StudyEntry:
        """Keep the study in a store, or find it again there."""
        return store.save_study(self.study.name, self.study.configuration(), self.settings)

    def archive(self, store: Store, engine: Engine | None = None) -> Archive:
        """The study's runs in a store; the simulator makes those that are missing."""
        engine = engine or self.simulator
        clock = None
        if self.fleet is not None and self.federation is None:  # real seconds are what they are
            clock = Clock(self.fleet, engine.num_clients)
        return Archive(engine, store, partial(run_settings, self.settings), clock)


def build_experiment(study: Study, *, federation: str | None = None) -> Experiment:
    """Load or draw the data and the devices, and make a simulator of them.

    federation : the live one that is to train; its devices are real, and the study's are left out.

    What is wrong with each of them is said at once.

    >>> from fedplan.studies import read_study
    >>> experiment = build_experiment(read_study("demo"))
    >>> experiment.data_name, experiment.simulator.num_clients
    ('Synthetic(1, 1)', 20)
    """
    if federation is not None:
        _check_live(study.training)
        study = replace(study, fleet=None)
    training = study.training
    learner, fleet, name, settings = _load(study)
    if federation is not None:
        settings = live_settings(settings, federation)
    rate = build_rate(training)
    evaluation = Evaluation(every=training.evaluate_every, subset=training.evaluate_subset)
    return Experiment(
        study=study,
        data_name=name,
        fleet=fleet,
        rate=rate,
        simulator=Simulator(learner, rate, fleet, evaluation, training.dropout),
        stop=build_stop(training),
        objective=build_objective(study.objective),
        constraints=build_constraints(study.objective),
        settings=settings,
        federation=federation,
    )


def _check_live(training: TrainingTable) -> None:
    """Refuse what real clients cannot be asked for."""
    problems = []
    if training.law != Uniform.law:
        problems.append(
            "a live federation draws its clients uniformly, for whoever is away must be replaced, "
            f"but got participation={training.participation}. Set participation=uniform, or leave "
            "out --runner flower to simulate it."
        )
    if training.dropout:
        problems.append(
            f"real clients drop out by themselves, but got dropout={training.dropout:g}. Set "
            "dropout=0, or leave out --runner flower to simulate it."
        )
    if problems:
        raise InputError(problems)


def _load(study: Study) -> tuple[Learner, Fleet | None, str, dict[str, Any]]:
    """Learner, devices, and the data's name and settings.

    Not the data: the learner has what it needs of them, and they may be gigabytes.
    """
    collector = Collector()
    data = collector.attempt(lambda: build_data(study.task))
    fleet = learner = None
    if (table := study.fleet) is not None and (data is not None or table.file is not None):
        num_clients = 1 if data is None else data.num_clients
        fleet = collector.attempt(lambda: build_fleet(table, num_clients))
    if (known := data) is not None:
        for problem in _size_problems(study, known.num_clients, fleet):
            collector.add(problem)
        learner = collector.attempt(lambda: build_learner(study.task, study.training, known))
    collector.finish()
    if data is None or learner is None:
        raise AssertionError("a missing part is always a noted problem")
    return learner, fleet, data.name, experiment_settings(study, data)


def _size_problems(study: Study, num_clients: int, fleet: Fleet | None) -> list[InputProblem]:
    problems = []
    training = study.training
    for name, chosen in (
        ("clients-per-round", training.clients_per_round),
        ("groups", training.groups),
    ):
        if chosen is not None and chosen > num_clients:
            message = (
                f"`{name} <= num-clients` must hold, but got {name}="
                f"{chosen} and data of {num_clients} clients. Lower {name}."
            )
            problems.append(InputProblem(source=f"study {study.name}", message=message))
    if study.fleet is not None and fleet is not None and len(fleet) != num_clients:
        message = (
            f"must have one device a client, but has {len(fleet):,} devices for "
            f"{num_clients:,} clients. Add or remove rows, or change their count."
        )
        problems.append(InputProblem(source=study.fleet.file, message=message))
    return problems


def build_data(task: TaskTable) -> FederatedData:
    """The clients' data."""
    match task.data:
        case "synthetic":
            return synthetic(
                task.alpha, task.beta, num_clients=task.num_clients, seed=task.data_seed
            )
        case "mnist":
            return _share_out(load_mnist(), task)
        case "mnist-mini":
            return _share_out(mnist_mini(), task)
        case path:
            return read_data(path)


def _share_out(digits: Digits, task: TaskTable) -> FederatedData:
    return federate(
        digits.x,
        digits.y,
        _assign(digits, task),
        num_classes=NUM_DIGITS,
        test_x=digits.test_x,
        test_y=digits.test_y,
        image_shape=IMAGE_SHAPE,
        name=digits.name,
    )


def _assign(digits: Digits, task: TaskTable) -> Assignment:
    labels, clients, seed = digits.y, task.num_clients, task.data_seed
    match task.partition:
        case "iid":
            return iid(len(labels), clients, seed)
        case "dirichlet":
            return dirichlet(labels, clients, task.concentration, seed)
        case "power-law":
            sizes = power_law_sizes(
                clients, len(labels), exponent=task.exponent, min_size=task.min_size, seed=seed
            )
            return by_sizes(len(labels), sizes, seed)
        case "two-labels-balanced":
            return two_labels_balanced(labels, clients, task.samples_per_client, seed)
        case "two-labels-shards":
            return two_labels_shards(labels, clients, task.shards_per_label, seed)


def build_learner(
    task: TaskTable, training: TrainingTable, data: FederatedData
) -> Logistic | LeNet5:
    """The model, bound to the data."""
    if task.model == "lenet5":
        return LeNet5(data, batch_size=training.batch_size)
    return Logistic(data, batch_size=training.batch_size)


def build_fleet(table: FleetTable, num_clients: int) -> Fleet:
    """The clients' devices, read or drawn."""
    if table.file is not None:
        return read_fleet(table.file)
    if table.step_time_s is None or table.comm_time_s is None:
        raise AssertionError("a study without these is refused when it is read")
    return draw_fleet(
        num_clients,
        step_time_s=(table.step_time_s, table.step_time_sd_s),
        comm_time_s=(table.comm_time_s, table.comm_time_sd_s),
        step_energy_j=(table.step_energy_j, table.step_energy_sd_j),
        comm_energy_j=(table.comm_energy_j, table.comm_energy_sd_j),
        law=table.distribution,
        seed=table.fleet_seed,
    )


def build_objective(table: ObjectiveTable) -> Objective:
    """What a second, a joule and a client's round are worth."""
    prices = {name: getattr(table, key) for key, name in PRICE_KEYS.items()}
    if any(prices.values()):
        return Prices(**prices).objective()
    return Objective.weighted(table.energy_weight or 0.0)


def build_constraints(table: ObjectiveTable) -> Constraints:
    """What a plan must keep to."""
    return Constraints(**{name: getattr(table, name) for name in LIMIT_KEYS})


def build_rate(training: TrainingTable) -> LearningRate:
    """The learning rate of every round."""
    return LearningRate(
        initial=training.learning_rate,
        schedule=training.schedule,
        decay=training.decay,
        decay_every=training.decay_every,
        decay_rounds=training.decay_rounds,
        rates=tuple(training.rates or ()),
    )


def build_stop(training: TrainingTable) -> Stop:
    """When a run ends."""
    return Stop(
        max_rounds=training.rounds,
        target_loss=training.target_loss or None,
        patience=training.patience,
        max_time_s=training.max_time_s,
        max_energy_j=training.max_energy_j,
    )
