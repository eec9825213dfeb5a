"""Settings of a study: who trains when, by the law that it names, and for how many local steps."""

from __future__ import annotations

from fedplan.core.problem import Problem
from fedplan.core.setting import Participation, Setting
from fedplan.errors import InputError
from fedplan.participation import Shuffled, Turns, Uniform, Weighted
from fedplan.participation.grouping import group
from fedplan.planning.turns import check_group_sizes, choose_groups
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
    who = training.groups if training.participation == Turns.law else training.clients_per_round
    if training.local_steps is None:
        raise InputError(
            "a run needs local-steps. Set it in [training], or add local-steps=... to the command."
        )
    setting = build_setting(experiment, who, training.local_steps)
    return make_jobs([setting], training.every_seed)


def _participation(experiment: Experiment, who: int | None, local_steps: int) -> Participation:
    law = experiment.study.training.participation
    if law == Turns.law:
        return _turns(study_problem(experiment), who, local_steps)
    if who is None:
        raise InputError(
            f"participation={law} needs clients-per-round. Set it in [training], or add "
            "clients-per-round=... to the command."
        )
    if law == Shuffled.law:
        return Shuffled(clients_per_round=who, num_clients=experiment.num_clients)
    if law == Weighted.law:
        return Weighted.of(study_problem(experiment), local_steps, who)
    return Uniform(clients_per_round=who)


def _turns(problem: Problem, groups: int | None, local_steps: int) -> Turns:
    if groups is None:
        return choose_groups(problem, local_steps, _FULL_ROUNDS).whole()
    check_group_sizes(problem)
    grouping = group(problem, local_steps, groups)
    if grouping is None:
        most = problem.limits.max_clients_per_round
        raise InputError(
            f"{len(problem.fleet):,} clients cannot be cut into {groups:,} groups of at most "
            f"max-clients-per-round={most}. Raise groups, or max-clients-per-round."
        )
    return grouping.whole()


def study_problem(experiment: Experiment) -> Problem:
    """The devices with the clients' own samples, and what counts."""
    if experiment.fleet is None:
        law = experiment.study.training.participation
        raise InputError(
            f"participation={law} goes by how quick devices are, and needs a [fleet]. Add one, or "
            "set participation=shuffled."
        )
    problem = Problem(
        fleet=experiment.fleet, objective=experiment.objective, limits=experiment.constraints
    )
    return problem.with_samples(experiment.simulator.learner.sizes)
