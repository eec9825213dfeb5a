"""Settings of a study: who trains when, by the law that it names, and for how many local steps."""

from __future__ import annotations

from fedplan.core.fleet import Fleet
from fedplan.core.problem import Problem
from fedplan.core.setting import Participation, Setting
from fedplan.errors import InputError
from fedplan.participation import LAWS, Turns
from fedplan.planning.turns import choose_groups
from fedplan.simulation import Job
from fedplan.studies.building import Experiment
from fedplan.studies.jobs import make_jobs

# Rounds that all clients at once are taken to need where nobody has said how many groups there are.
_FULL_ROUNDS = 100.0


def build_setting(experiment: Experiment, who: int | None, local_steps: int) -> Setting:
    """The setting of the study's law.

    who : clients per round, or the number of groups that take turns; None lets the planner choose
        that number.

    >>> from fedplan.studies import read_study
    >>> from fedplan.studies.building import build_experiment
    >>> experiment = build_experiment(read_study("demo", ["participation=turns"]))
    >>> str(build_setting(experiment, 4, 20))
    'participation=turns, groups=4, local-steps=20'
    """
    law = _participation(experiment, who, local_steps)
    return Setting(participation=law, local_steps=local_steps)


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


def _participation(experiment: Experiment, who: int | None, local_steps: int) -> Participation:
    law, problem = experiment.study.training.law, study_problem(experiment)
    if who is not None:
        return LAWS[law].of(problem, local_steps, who)
    if law == Turns.law:
        return choose_groups(problem, local_steps, _FULL_ROUNDS).whole()
    raise InputError(
        f"participation={law} needs clients-per-round. Set it in [training], or add "
        "clients-per-round=... to the command."
    )


def study_problem(experiment: Experiment) -> Problem:
    """The devices with the clients' own samples, and what counts.

    Without a [fleet] all devices are alike: a law that goes by their speed is refused before.
    """
    fleet = experiment.fleet
    if fleet is None:
        fleet = Fleet(step_time_s=1.0, comm_time_s=0.0, count=experiment.num_clients)
    problem = Problem(
        fleet=fleet,
        objective=experiment.objective,
        limits=experiment.constraints,
        target_loss=experiment.stop.target_loss,
        learning_rate=experiment.rate,
    )
    return problem.with_samples(experiment.simulator.learner.sizes)
