"""Experiment: a study ready to run, with its data, model, devices and objective."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from fedplan.core.constraints import Constraints
from fedplan.core.fleet import QUANTITIES, Fleet, draw_fleet
from fedplan.core.objective import Objective, Prices
from fedplan.core.problem import Problem
from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from fedplan.course.live import alike
from fedplan.errors import Collector, InputError, InputProblem
from fedplan.models import Learner
from fedplan.participation import LAWS, Turns
from fedplan.planning.turns import choose_groups
from fedplan.prices_and_limits import PRICES, STUDY_LIMITS
from fedplan.simulation import Clock, Evaluation, Job, LearningRate, Simulator
from fedplan.store import Store, StudyEntry
from fedplan.studies.archive import Archive, Engine
from fedplan.studies.keys import DATA_SETS, FleetTable, ObjectiveTable, TrainingTable
from fedplan.studies.study import Study
from fedplan.studies.task import build_data, build_learner
from fedplan.tables import read_fleet
from fedplan.tasks import FederatedData

# Rounds that all clients at once are assumed to need, if the number of groups is not given.
_FULL_ROUNDS = 100.0
# Raise it when the same settings begin to give other numbers: runs stored before no longer count.
SIMULATION = 1

# Keys of [training] that change the losses of a run; the later ones are stored only if set.
_ALWAYS = {"batch_size", "learning_rate", "schedule", "decay", "evaluate_every", "evaluate_subset"}
_LATER = {"decay_every", "decay_rounds", "rates", "dropout"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Experiment:
    """A study that is ready to run.

    settings : what makes its runs comparable with others in a store.
    fleet : the devices; real ones as measured in their rounds, None before the first.
    federation : the live one that trains; None if clients are simulated.
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
    def name(self) -> str:
        """The study's name."""
        return self.study.name

    @property
    def num_clients(self) -> int:
        """Clients N."""
        return self.simulator.num_clients

    @property
    def assumed_fleet(self) -> Fleet | None:
        """The devices as known before training: real ones are unknown, so all are alike."""
        return self.fleet if self.federation is None else alike(self.num_clients)

    @property
    def problem(self) -> Problem:
        """The devices with the clients' own samples, and the objective.

        Without a [fleet] all devices are alike; a law that depends on speed has been refused.
        """
        equal = Fleet(step_time_s=1.0, comm_time_s=0.0, count=self.num_clients)
        problem = Problem(
            fleet=self.assumed_fleet or equal,
            objective=self.objective,
            limits=self.constraints,
            target_loss=self.stop.target_loss,
            learning_rate=self.rate,
        )
        return problem.with_samples(self.simulator.learner.sizes)

    def save(self, store: Store) -> StudyEntry:
        """Save the study in a store, or find it there."""
        return store.save_study(self.study.name, self.study.configuration(), self.settings)

    def archive(
        self, store: Store, engine: Engine | None = None, *, readonly: bool = False
    ) -> Archive:
        """The study's runs in a store; the engine makes missing ones.

        engine : by default the simulator.
        readonly : make no runs.
        """
        clock = None
        if self.fleet is not None and self.federation is None:  # real seconds are not repriced
            clock = Clock(self.fleet, self.num_clients)
        made_by = None if readonly else engine or self.simulator
        return Archive(made_by, store, partial(_run_settings, self.settings), clock)


def build_experiment(study: Study, *, federation: str | None = None) -> Experiment:
    """Load or draw the data and the devices, and build their simulator.

    federation : the live one to train on; its devices replace those of the study.

    Reports the problems of both at once.

    >>> from fedplan.studies import read_study
    >>> experiment = build_experiment(read_study("demo"))
    >>> experiment.data_name, experiment.simulator.num_clients
    ('Synthetic(1, 1)', 20)
    """
    if federation is not None:
        study = study.model_copy(update={"fleet": None})
        if study.training.dropout:
            raise InputError(
                "real clients drop out by themselves, but got dropout="
                f"{study.training.dropout:g}. Set dropout=0, or leave out --runner flower to "
                "simulate it."
            )
    training = study.training
    learner, fleet, name, settings = _load(study)
    if federation is not None:
        settings = _live_settings(settings, federation)
    rate = LearningRate(
        initial=training.learning_rate,
        schedule=training.schedule,
        decay=training.decay,
        decay_every=training.decay_every,
        decay_rounds=training.decay_rounds,
        rates=tuple(training.rates or ()),
    )
    evaluation = Evaluation(every=training.evaluate_every, subset=training.evaluate_subset)
    return Experiment(
        study=study,
        data_name=name,
        fleet=fleet,
        rate=rate,
        simulator=Simulator(learner, rate, fleet, evaluation, training.dropout),
        stop=build_stop(training),
        objective=build_objective(study.objective),
        constraints=Constraints(**{name: getattr(study.objective, name) for name in STUDY_LIMITS}),
        settings=settings,
        federation=federation,
    )


def _load(study: Study) -> tuple[Learner, Fleet | None, str, dict[str, Any]]:
    """Learner, devices, and the data's name and settings.

    Not the data, which may be gigabytes: the learner has all it needs.
    """
    collector = Collector()
    data = collector.attempt(lambda: build_data(study.task))
    fleet = learner = None
    if (table := study.fleet) is not None and (data is not None or table.file is not None):
        num_clients = 1 if data is None else data.num_clients
        fleet = collector.attempt(lambda: build_fleet(table, num_clients))
    if (known := data) is not None:
        collector.add(*_size_problems(study, known.num_clients, fleet))
        learner = collector.attempt(lambda: build_learner(study.task, study.training, known))
    learner, data = collector.finished(learner), collector.finished(data)
    return learner, fleet, data.name, _comparable_settings(study, data)


def _size_problems(study: Study, num_clients: int, fleet: Fleet | None) -> Iterable[InputProblem]:
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
            yield InputProblem(source=f"study {study.name}", message=message)
    if study.fleet is not None and fleet is not None and len(fleet) != num_clients:
        message = (
            f"must have one device per client, but has {len(fleet):,} devices for "
            f"{num_clients:,} clients. Add or remove rows, or change their count."
        )
        yield InputProblem(source=study.fleet.file, message=message)


def build_fleet(table: FleetTable, num_clients: int) -> Fleet:
    """The clients' devices, read or drawn."""
    if table.file is not None:
        return read_fleet(table.file)
    if table.step_time_s is None or table.comm_time_s is None:
        raise AssertionError("a study without these is refused when it is read")
    spreads: dict[str, Any] = {
        name: (getattr(table, name), getattr(table, f"{name[:-2]}_sd{name[-2:]}"))
        for name in QUANTITIES
    }
    return draw_fleet(num_clients, **spreads, law=table.distribution, seed=table.fleet_seed)


def build_objective(table: ObjectiveTable) -> Objective:
    """What a second, a joule and a client's round are worth."""
    prices = {price.field: getattr(table, name) for name, price in PRICES.items()}
    if any(prices.values()):
        return Prices(**prices).objective()
    return Objective.weighted(table.energy_weight or 0.0)


def build_stop(training: TrainingTable) -> Stop:
    """When a run ends."""
    return Stop(
        max_rounds=training.rounds,
        target_loss=training.target_loss or None,
        patience=training.patience,
        max_time_s=training.max_time_s,
        max_energy_j=training.max_energy_j,
    )


def build_setting(experiment: Experiment, who: int | None, local_steps: int) -> Setting:
    """The setting of the study's law.

    who : clients per round, or the number of groups that take turns; None lets the planner choose
        that number.

    >>> from fedplan.studies import read_study
    >>> experiment = build_experiment(read_study("demo", ["participation=turns"]))
    >>> str(build_setting(experiment, 4, 20))
    'participation=turns, groups=4, local-steps=20'
    """
    law, problem = experiment.study.training.law, experiment.problem
    if who is not None:
        participation = LAWS[law].of(problem, local_steps, who)
    elif law == Turns.law:
        participation = choose_groups(problem, local_steps, _FULL_ROUNDS).whole()
    else:
        raise InputError(
            f"participation={law} needs clients-per-round. Set it in [training], or add "
            "clients-per-round=... to the command."
        )
    return Setting(participation=participation, local_steps=local_steps)


def build_jobs(experiment: Experiment) -> list[Job]:
    """One run for each seed, with the study's own setting."""
    training = experiment.study.training
    who = training.groups if training.law == Turns.law else training.clients_per_round
    if training.local_steps is None:
        raise InputError(
            "a run needs local-steps. Set it in [training], or add local-steps=... to the command."
        )
    setting = build_setting(experiment, who, training.local_steps)
    return make_jobs([setting], training.every_seed)


def make_jobs(settings: Iterable[Setting], seeds: Iterable[int]) -> list[Job]:
    """One job for each setting and seed, seed by seed, so that an interrupted sweep has full grids.

    >>> from fedplan.participation import uniform
    >>> jobs = make_jobs([uniform(2, 5), uniform(4, 5)], range(2))
    >>> [(job.setting.clients_per_round, job.seed) for job in jobs]
    [(2, 0), (4, 0), (2, 1), (4, 1)]
    """
    every = list(settings)
    return [Job(course=setting, seed=seed) for seed in seeds for setting in every]


def _comparable_settings(study: Study, data: FederatedData) -> dict[str, Any]:
    """Everything that affects a run's losses, other than its setting, seed and end.

    Not the devices: seconds and joules follow from the cohorts, for any fleet.
    """
    task = study.task.model_dump()
    if study.task.data not in DATA_SETS:
        task["data"] = f"sha256:{_content(data)}"
    training = study.training.model_dump(include=_ALWAYS | _LATER)
    kept = {name: value for name, value in training.items() if value or name in _ALWAYS}
    return {"simulation": SIMULATION, "task": task, "training": kept}


def _live_settings(settings: Mapping[str, Any], federation: str) -> dict[str, Any]:
    """The settings of the same study on a live federation, whose rounds are all evaluated.

    Not comparable with simulated runs, whose seconds are virtual and whose clients never fail.
    """
    training = {**settings["training"], "evaluate_every": 1, "evaluate_subset": None}
    return {**settings, "training": training, "engine": "flower", "federation": federation}


def _run_settings(settings: Mapping[str, Any], stop: Stop) -> Mapping[str, Any]:
    """These settings, and when a run ends if that changes its losses.

    A run that ended later contains the one that ended earlier, unless the target decides which
    rounds are evaluated, and on what.
    """
    training = settings["training"]
    if training["evaluate_every"] == 1 and training["evaluate_subset"] is None:
        return settings
    return {**settings, "stop": asdict(stop)}


def _content(data: FederatedData) -> str:
    digest = hashlib.sha256()
    for array in (data.x, data.y, data.starts):
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
