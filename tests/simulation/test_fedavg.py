"""The simulator against a float64 reference, and against its own promises."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from models import logistic_reference as reference
from models.clients import small_clients

from fedplan import Fleet, InputError
from fedplan.core.fleet import draw_fleet
from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from fedplan.models import Logistic
from fedplan.participation import Shuffled, Turns, Uniform, Weighted, uniform
from fedplan.simulation import Clock, Evaluation, Job, LearningRate, Simulator
from fedplan.tasks import FederatedData, federate, mnist_mini, synthetic, two_labels_balanced


@pytest.mark.parametrize("num_features", [1, 15, 16, 31, 60, 100])
@pytest.mark.parametrize("num_classes", [2, 3, 10, 12, 13, 62])
def test_full_batch_training_equals_the_reference(num_features, num_classes):
    data = small_clients(num_features, num_classes)
    simulator = Simulator(Logistic(data), LearningRate(initial=0.02))
    run = simulator.run(uniform(3, 5), Stop(max_rounds=6), seed=4)  # 30 steps
    cohorts = [record.cohort for record in run.rounds[1:]]
    assert all(len(set(cohort)) == 3 for cohort in cohorts)
    expected = [
        reference.loss_and_accuracy(weights, data.x, data.y)
        for weights in reference.full_batch_rounds(data, cohorts, 5, 0.02)
    ]
    losses = [loss for loss, _ in expected]
    assert run.losses[0] == pytest.approx(math.log(num_classes), rel=1e-6)
    assert run.losses[1:] == pytest.approx(losses, rel=1e-5)
    assert [r.accuracy for r in run.rounds[1:]] == pytest.approx([a for _, a in expected], abs=0.02)


def test_threads_and_order_change_nothing():
    simulator = Simulator(Logistic(synthetic(1, 1, num_clients=20)), LearningRate(initial=0.1))
    jobs = [Job(course=uniform(k, 7), seed=s) for k in (3, 10) for s in (0, 1)]
    stop = Stop(max_rounds=5)
    one = list(simulator.run_all(jobs, stop, threads=1))
    two = list(simulator.run_all(jobs, stop, threads=2))
    backwards = list(simulator.run_all(jobs[::-1], stop, threads=2))[::-1]
    assert one == two == backwards
    assert one[0].losses != one[1].losses


def test_a_fresh_process_gives_the_same_losses():
    code = (
        "import json; from fedplan.simulation import *; from fedplan.tasks import synthetic;"
        "from fedplan.models import Logistic; from fedplan.core.records import Stop;"
        "from fedplan.participation import uniform;"
        "s = Simulator(Logistic(synthetic(1, 1, num_clients=20)), LearningRate(initial=0.1));"
        "print(json.dumps(s.run(uniform(5, 9), Stop(max_rounds=4), seed=3).losses))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    simulator = Simulator(Logistic(synthetic(1, 1, num_clients=20)), LearningRate(initial=0.1))
    expected = simulator.run(uniform(5, 9), Stop(max_rounds=4), seed=3)
    assert json.loads(done.stdout) == list(expected.losses)


LOGISTIC = """
from fedplan.models.logistic import Logistic, _evaluate, _train_round
learner = Logistic(synthetic(1, 1, num_clients=4))
compiled = [_train_round(10, 10), _evaluate(10, 10)]
"""
LENET = """
from fedplan.models.lenet_kernels import evaluate, train_round
from fedplan.models import LeNet5
digits = mnist_mini()
learner = LeNet5(federate(digits.x, digits.y, iid(len(digits.y), 4)))
compiled = [train_round, evaluate]
"""


def compiled_by_a_process(model, **environment):
    """How many kernels a process of its own compiles before it trains this model."""
    code = f"""
from fedplan.simulation import LearningRate, Simulator
from fedplan.tasks import federate, iid, mnist_mini, synthetic
{model}
Simulator(learner, LearningRate(initial=0.1)).warm_up()
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in compiled))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_the_second_start_compiles_nothing(tmp_path):
    compiled = [compiled_by_a_process(LOGISTIC, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert compiled == [2, 0]
    compiled_by_a_process(LENET)  # takes long where no other test or run has done it
    assert compiled_by_a_process(LENET) == 0


def test_runs_stop_at_the_target_at_budgets_and_when_they_diverge():
    data = synthetic(1, 1, num_clients=20)
    fleet = Fleet(step_time_s=np.linspace(0.1, 0.3, 20), comm_time_s=2.0, comm_energy_j=1.5)
    simulator = Simulator(Logistic(data), LearningRate(initial=0.1, schedule="harmonic"), fleet)
    free = simulator.run(uniform(5, 20), Stop(max_rounds=30), seed=1)
    assert free.status == "rounds" and free.num_rounds == 30
    target = free.losses[10]
    arrived = simulator.run(uniform(5, 20), Stop(max_rounds=30, target_loss=target), seed=1)
    assert arrived.status == "target" and arrived.num_rounds == free.rounds_to(target)
    far = simulator.run(uniform(5, 20), Stop(max_rounds=3, target_loss=0.0), seed=1)
    assert far.status == "rounds"
    slow = simulator.run(uniform(5, 20), Stop(max_rounds=30, max_time_s=20.0), seed=1)
    assert slow.status == "time" and slow.time_s > 20.0 >= slow.time_s - slow.rounds[-1].seconds
    hungry = simulator.run(uniform(5, 20), Stop(max_rounds=30, max_energy_j=20.0), seed=1)
    assert hungry.status == "energy" and hungry.num_rounds == 3  # 7.5 J a round
    unstable = Simulator(Logistic(data), LearningRate(initial=1e38))
    wild = unstable.run(uniform(5, 20), Stop(max_rounds=9))
    assert wild.status == "diverged" and all(map(math.isfinite, wild.losses))


def test_a_run_is_repriced_as_if_it_had_run_on_the_other_fleet():
    data = synthetic(1, 1, num_clients=20)
    rate = LearningRate(initial=0.1)
    quick = Fleet(step_time_s=0.1, comm_time_s=1.0, step_energy_j=0.2, count=20)
    slow = Fleet(step_time_s=np.linspace(0.1, 3, 20), comm_time_s=2.0, comm_energy_j=5.0)
    stop = Stop(max_rounds=4)
    ran = Simulator(Logistic(data), rate, quick).run(uniform(5, 3), stop)
    expected = Simulator(Logistic(data), rate, slow).run(uniform(5, 3), stop)
    assert Clock(slow, 20).reprice(ran) == expected
    with pytest.raises(InputError, match="19 devices for 20 clients"):
        Clock(Fleet(step_time_s=0.1, comm_time_s=1.0, count=19), 20)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 64, 129, 300])
def test_many_rounds_cost_what_each_alone_costs_to_the_last_bit(size):
    fleet = draw_fleet(
        300, step_time_s=(0.1, 0.05), comm_time_s=(2.0, 0.7), step_energy_j=(1e-3, 3e-4)
    )
    clock, draw = Clock(fleet, 300), np.random.default_rng(size)
    cohorts = [draw.permutation(300)[: size - place % 2].tolist() for place in range(40)]
    expected = [clock.round_cost(cohort, 7) if cohort else (0.0, 0.0) for cohort in cohorts]
    assert clock.round_costs(cohorts, [7] * len(cohorts)) == expected


def test_setup_1_of_the_paper_takes_the_rounds_of_table_1():
    digits = mnist_mini()
    data = federate(digits.x, digits.y, two_labels_balanced(digits.y, 20, 300, seed=0))
    rate = LearningRate(initial=0.01, schedule="exponential", decay=0.996)
    simulator = Simulator(Logistic(data), rate)
    jobs = [Job(course=uniform(20, 100), seed=seed) for seed in range(4)]
    runs = list(simulator.run_all(jobs, Stop(max_rounds=90, target_loss=0.5)))
    to_upper = np.mean([run.rounds_to(0.6) for run in runs])
    to_lower = np.mean([run.rounds_to(0.5) for run in runs])
    assert to_upper == pytest.approx(32, abs=4) and to_lower == pytest.approx(56, abs=6)


def test_wrong_requests_are_refused_all_at_once():
    simulator = Simulator(Logistic(small_clients()), LearningRate(initial=0.1))
    with pytest.raises(InputError) as error:
        simulator.run(uniform(6, 0), Stop(max_rounds=0))
    assert len(error.value.problems) == 3
    with pytest.raises(InputError) as error:
        LearningRate(initial=-1, schedule="linear", decay=2.0)
    assert len(error.value.problems) == 3
    with pytest.raises(InputError) as error:
        Evaluation(every=0, subset=0)
    assert len(error.value.problems) == 2


def test_sparse_evaluation_trains_the_same_and_still_finds_the_first_crossing():
    learner, rate = Logistic(synthetic(1, 1, num_clients=20)), LearningRate(initial=0.005)
    full = Simulator(learner, rate)
    free = full.run(uniform(20, 20), Stop(max_rounds=40), seed=1)
    target = free.losses[25]
    stop = Stop(max_rounds=40, target_loss=target)
    expected = full.run(uniform(20, 20), stop, seed=1)
    for evaluation in (
        Evaluation(every=4),
        Evaluation(subset=1000),
        Evaluation(every=3, subset=1000),
    ):
        run = Simulator(learner, rate, evaluation=evaluation).run(uniform(20, 20), stop, seed=1)
        assert run.status == "target" and run.num_rounds == expected.num_rounds
        assert run.final_loss == expected.final_loss  # measured on all samples
        assert [r.cohort for r in run.rounds] == [r.cohort for r in expected.rounds]
        early = [(r.round, r.loss) for r in run.rounds if r.round < 10]
        assert all((loss is None) == (r % evaluation.every != 0) for r, loss in early)
        if evaluation.subset:
            measured = [(loss, free.losses[r]) for r, loss in early[1:] if loss is not None]
            assert all(a != b and a == pytest.approx(b, rel=0.05) for a, b in measured)


def test_the_last_round_is_always_evaluated_on_all_samples():
    learner, rate = Logistic(synthetic(1, 1, num_clients=20)), LearningRate(initial=0.1)
    full = Simulator(learner, rate).run(uniform(5, 20), Stop(max_rounds=7), seed=1)
    sparse = Simulator(learner, rate, evaluation=Evaluation(every=5, subset=200))
    run = sparse.run(uniform(5, 20), Stop(max_rounds=7), seed=1)
    assert [loss is None for loss in run.losses] == [False, *[True] * 4, False, True, False]
    assert run.final_loss == full.final_loss


def test_accuracy_is_also_of_samples_no_client_trains_on():
    data = small_clients(15, 3)
    test = {"test_x": data.x[::2], "test_y": data.y[::2]}
    own = FederatedData(x=data.x, y=data.y, starts=data.starts, num_classes=3, **test)
    learner, rate = Logistic(own), LearningRate(initial=0.02)
    run = Simulator(learner, rate).run(uniform(3, 5), Stop(max_rounds=6), seed=4)
    cohorts = [record.cohort for record in run.rounds[1:]]
    expected = [
        reference.loss_and_accuracy(weights, own.test_x, own.test_y)[1]
        for weights in reference.full_batch_rounds(data, cohorts, 5, 0.02)
    ]
    assert [r.test_accuracy for r in run.rounds[1:]] == pytest.approx(expected, abs=0.02)
    assert run.test_accuracy == run.rounds[-1].test_accuracy
    few = Evaluation(every=2, subset=(len(data.y) + 1) // 2)
    sparse = Simulator(learner, rate, evaluation=few).run(uniform(3, 5), Stop(max_rounds=6), seed=4)
    assert [r.round for r in sparse.rounds if r.test_accuracy is not None] == [0, 4, 6]
    assert sparse.test_accuracy == run.test_accuracy
    without = Simulator(Logistic(data), rate).run(uniform(3, 5), Stop(max_rounds=2), seed=4)
    assert without.test_accuracy is None and without.losses == run.losses[:3]


def test_leaving_a_batch_of_runs_early_ends_them():
    simulator = Simulator(Logistic(synthetic(1, 1, num_clients=20)), LearningRate(initial=0.1))
    simulator.warm_up()
    jobs = [Job(course=uniform(5, 1), seed=s) for s in range(40)]
    seen = []
    runs = simulator.run_all(
        jobs, Stop(max_rounds=2000), threads=2, progress=lambda job, _: seen.append(job.seed)
    )
    next(runs)
    runs.close()
    assert len(set(seen)) < 10  # of forty; those under way stopped at their next round


def test_jobs_are_taken_as_they_can_be_begun_and_their_errors_are_heard():
    simulator = Simulator(Logistic(synthetic(1, 1, num_clients=20)), LearningRate(initial=0.1))
    ended, ahead = [], []

    def jobs():
        for seed in range(12):
            ahead.append(seed - len(ended))
            yield Job(course=uniform(2, 1), seed=seed)
        raise LookupError("no more")

    runs = simulator.run_all(jobs(), Stop(max_rounds=3), threads=2, finished=ended.append)
    assert [next(runs).seed for _ in range(12)] == list(range(12))
    assert max(ahead) <= 1  # one under way beside the one that is begun
    with pytest.raises(LookupError, match="no more"):
        next(runs)


LAWS = [
    Uniform(clients_per_round=3),
    Shuffled(clients_per_round=3, num_clients=8),
    Turns(groups=((0, 1, 2), (3, 4), (5, 6, 7)), visits=(2, 1, 1)),
    Weighted(clients_per_round=3, chances=(0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)),
]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_the_same_seed_gives_the_same_run_by_every_law_on_any_threads(dropout):
    learner = Logistic(synthetic(1, 1, num_clients=8))
    fleet = Fleet(step_time_s=np.linspace(0.1, 0.8, 8), comm_time_s=1.0)
    simulator = Simulator(learner, LearningRate(initial=0.1), fleet, dropout=dropout)
    settings = [Setting(participation=law, local_steps=4) for law in LAWS]
    jobs = [Job(course=setting, seed=seed) for setting in settings for seed in (0, 1)]
    stop = Stop(max_rounds=9)
    one, two = (list(simulator.run_all(jobs, stop, threads=threads)) for threads in (1, 2))
    assert one == two == [simulator.run(job.setting, stop, seed=job.seed) for job in jobs]
    for run in one:
        assert all(len(record.cohort) == len(record.shares) for record in run.rounds)
        assert all(record.setting == run.setting for record in run.rounds[1:])
    assert [run.rounds[-1].model_loss is None for run in one[::2]] == [True, False, False, True]


def test_the_model_that_is_judged_is_the_average_of_the_last_ones():
    learner = Logistic(synthetic(1, 1, num_clients=8))
    setting = Setting(participation=LAWS[2], local_steps=4)
    models, judged = [learner.initial(1)], []
    evaluate, train_round = learner.evaluate, learner.train_round

    def train(weights, *rest):
        train_round(weights, *rest)
        models.append(weights.copy())

    def judge(weights, samples):
        judged.append(weights.copy())
        return evaluate(weights, samples)

    learner.train_round, learner.evaluate = train, judge
    simulator = Simulator(learner, LearningRate(initial=0.1), evaluation=Evaluation(every=5))
    run = simulator.run(setting, Stop(max_rounds=21), seed=1)
    # At rounds 0, 5, 10, 15 and 20 and at the end, each followed by the last model from 10 on.
    assert [r.round for r in run.rounds if r.model_loss is not None] == [10, 15, 20, 21]
    for round_, found in zip((5, 10, 15, 20, 21), [judged[1], *judged[2::2]], strict=True):
        latest = models[1 : round_ + 1][-3:]
        np.testing.assert_array_equal(found, np.mean(latest, axis=0, dtype=float).astype("f4"))


def test_a_run_by_turns_that_diverges_between_evaluations_says_so():
    learner = Logistic(synthetic(1, 1, num_clients=8))
    simulator = Simulator(learner, LearningRate(initial=1e38), evaluation=Evaluation(every=50))
    run = simulator.run(Setting(participation=LAWS[2], local_steps=4), Stop(max_rounds=99), seed=1)
    assert run.status == "diverged"


def test_a_round_that_nobody_answers_changes_nothing_and_takes_no_time():
    learner = Logistic(synthetic(1, 1, num_clients=4))
    fleet = Fleet(step_time_s=0.1, comm_time_s=1.0, count=4)
    simulator = Simulator(learner, LearningRate(initial=0.1), fleet, dropout=0.9)
    run = simulator.run(uniform(1, 5), Stop(max_rounds=12), seed=0)
    missed = [n for n, record in enumerate(run.rounds) if n and not record.cohort]
    assert missed and len(missed) < 12
    for number in missed:
        assert run.losses[number] == run.losses[number - 1]
        assert (run.rounds[number].seconds, run.rounds[number].joules) == (0.0, 0.0)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, math.nan])
def test_a_dropout_that_is_no_chance_is_refused(dropout):
    with pytest.raises(InputError, match="0 <= dropout < 1"):
        Simulator(Logistic(small_clients()), LearningRate(initial=0.1), dropout=dropout)
