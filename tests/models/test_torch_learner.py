"""TorchLearner against the compiled model, against torch in float64, and its promises."""

from __future__ import annotations

import copy
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch
from models.torch_cases import cnn, images, noisy, noisy_simulator, normalised, zero_linear
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from fedplan import InputError
from fedplan.core.records import Stop
from fedplan.models import Logistic
from fedplan.models.draws import draw_batches
from fedplan.models.torch_learner import TorchLearner
from fedplan.participation import uniform
from fedplan.simulation import Job, LearningRate, Simulator
from fedplan.tasks import synthetic

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("batch_size", [16, 100_000])  # drawn batches; then every step full-batch
def test_a_linear_module_trains_as_the_compiled_model(batch_size):
    data = synthetic(1, 1, num_clients=6)
    rate, stop = LearningRate(initial=0.01), Stop(max_rounds=6)
    compiled = Simulator(Logistic(data, batch_size=min(batch_size, data.sizes.max())), rate)
    learner = TorchLearner.from_data(zero_linear(60, 10), data, batch_size=batch_size)
    expected = compiled.run(uniform(3, 5), stop, seed=4)  # 30 steps
    run = Simulator(learner, rate).run(uniform(3, 5), stop, seed=4)
    assert run.losses == pytest.approx(expected.losses, rel=1e-5)
    assert [r.cohort for r in run.rounds] == [r.cohort for r in expected.rounds]
    accuracies = [r.accuracy for r in expected.rounds]
    assert [r.accuracy for r in run.rounds] == pytest.approx(accuracies, abs=0.01)


def in_float64(learner, weights, data, cohort, steps, rate):
    """Each client's module after full-batch steps of torch's own SGD in float64."""
    ends = []
    for client in cohort:
        module = copy.deepcopy(learner.module(weights)).double().train()
        rows = data.client_rows(client)
        x = torch.tensor(data.x[rows]).double().reshape(-1, 1, *data.image_shape)
        optimiser = torch.optim.SGD(module.parameters(), lr=rate)
        for _ in range(steps):
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(x), torch.tensor(data.y[rows])).backward()
            optimiser.step()
        ends.append(module.state_dict())
    return ends


@pytest.mark.parametrize("build", [cnn, normalised])
def test_a_round_equals_torch_in_float64(build):
    data = images()
    learner = TorchLearner.from_data(build, data)
    weights = learner.initial(3)
    start = learner.module(weights).state_dict()
    cohort, shares = [0, 1, 3], [0.3, 0.4, 0.1]  # a fifth of the old weights stays
    expected = in_float64(learner, weights, data, cohort, 20, 0.1)
    learner.train_round(weights, np.array(cohort), np.array(shares), 20, 0.1, 3, 1)
    for name, value in learner.module(weights).state_dict().items():
        if name.endswith("num_batches_tracked"):
            assert value == 0 and expected[0][name] == 20
            continue
        moved = 0.2 * start[name].double()
        for share, end in zip(shares, expected, strict=True):
            moved += share * end[name]
        assert not torch.equal(value, start[name])
        assert torch.allclose(value.double(), moved, rtol=1e-4, atol=1e-6), name


def test_loss_and_accuracy_are_means_over_the_samples():
    data = images((700, 5, 9), seed=2)  # more than are evaluated at a time
    learner = TorchLearner.from_data(cnn, data)
    weights = learner.initial(1)
    rows = np.array([3, 1, 709])
    for samples, x, y in (
        (learner.samples(), data.x, data.y),
        (learner.samples(rows), data.x[rows], data.y[rows]),
        (learner.test_samples(), data.test_x, data.test_y),
    ):
        with torch.no_grad():
            scores = learner.module(weights).double()(torch.tensor(x).double().view(-1, 1, 8, 8))
        picked = scores.log_softmax(1)[torch.arange(len(y)), torch.tensor(y)]
        loss, accuracy = learner.evaluate(weights, samples)
        assert loss == pytest.approx(-float(picked.mean()), rel=1e-5)
        assert accuracy == np.mean(scores.argmax(1).numpy() == y)


def test_batches_are_without_replacement_and_reach_every_sample():
    batches = draw_batches(1, 2, 3, 10, 4, 200)
    assert batches.shape == (200, 4)
    assert all(len(set(batch)) == 4 for batch in batches.tolist())
    times = np.bincount(batches.ravel(), minlength=10)
    assert times.min() > 50 and times.max() < 110  # 80 expected, standard deviation 7


def test_threads_order_and_a_fresh_process_change_nothing_even_with_dropout():
    simulator, stop = noisy_simulator(), Stop(max_rounds=3)
    jobs = [Job(course=uniform(k, 4), seed=s) for k in (2, 4) for s in (0, 1)]
    one = list(simulator.run_all(jobs, stop, threads=1))
    two = list(simulator.run_all(jobs, stop, threads=2))
    backwards = list(simulator.run_all(jobs[::-1], stop, threads=2))[::-1]
    assert one == two == backwards
    assert one[0].losses != one[1].losses
    code = (
        "import json; from models.torch_cases import noisy_simulator; "
        "from fedplan.core.records import Stop; from fedplan.participation import uniform; "
        "import torch; torch.manual_seed(99); "
        "print(json.dumps(noisy_simulator().run(uniform(4, 4), Stop(max_rounds=3), seed=1).losses))"
    )
    assert json.loads(python(code)) == list(one[-1].losses)


def test_a_client_draws_the_same_dropout_whoever_is_with_it():
    learner = TorchLearner.from_data(noisy, images(), batch_size=8)
    alone, together = learner.initial(0), learner.initial(0)
    learner.train_round(alone, np.array([2]), np.ones(1), 5, 0.1, 0, 1)
    learner.train_round(together, np.array([0, 2]), np.array([0.0, 1.0]), 5, 0.1, 0, 1)
    assert np.array_equal(alone, together)
    later = learner.initial(0)
    learner.train_round(later, np.array([2]), np.ones(1), 5, 0.1, 0, 2)
    assert not np.array_equal(alone, later)


def test_torch_is_left_as_it_was():
    threads = torch.get_num_threads()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    try:
        torch.set_num_threads(3)
        simulator = noisy_simulator()
        simulator.run(uniform(2, 3), Stop(max_rounds=2))
        jobs = [Job(course=uniform(2, 2), seed=s) for s in range(4)]
        list(simulator.run_all(jobs, Stop(max_rounds=2), threads=2))
        counts = [torch.get_num_threads()]
        fresh = Thread(target=lambda: counts.append(torch.get_num_threads()))
        fresh.start()
        fresh.join()
        assert counts == [3, 3]
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.get_rng_state(), before)


def test_operations_run_on_one_thread():
    seen = []

    class Spy(nn.Linear):
        def forward(self, x):
            seen.append(torch.get_num_threads())
            return super().forward(x)

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        learner = TorchLearner.from_data(lambda: Spy(60, 10), synthetic(1, 1, num_clients=4))
        simulator = Simulator(learner, LearningRate(initial=0.1))
        jobs = [Job(course=uniform(2, 2), seed=s) for s in range(2)]
        list(simulator.run_all(jobs, Stop(max_rounds=1), threads=2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert len(seen) > 8 and set(seen) == {1}


def test_initial_weights_are_those_torch_gives_for_the_seed():
    learner = TorchLearner.from_data(cnn, images())
    with torch.random.fork_rng():
        torch.manual_seed(11)
        expected = torch.cat([parameter.reshape(-1) for parameter in cnn().parameters()])
    assert learner.initial(11).dtype == np.float32
    assert np.array_equal(learner.initial(11), expected.detach().numpy())
    assert not np.array_equal(learner.initial(11), learner.initial(12))


def test_buffers_that_are_replaced_or_not_saved_are_handled():
    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.register_buffer("mean", torch.zeros(2))
            self.register_buffer("mask", torch.tensor([0.0, -math.inf]), persistent=False)
            self.register_buffer("calls", torch.tensor(0))

        def forward(self, x):
            if self.training:
                self.mean = self.mean + x.detach().mean(0)
                self.calls += 1
            return self.linear(x)

    clients = [[([1.0, 2.0], 0), ([3.0, 4.0], 1)], [([5.0, 6.0], 0)]]
    learner = TorchLearner(Running, clients)
    weights = learner.initial(0)
    assert weights.size == 8 and weights[-2:].tolist() == [0, 0]
    learner.train_round(weights, np.array([0, 1]), np.array([0.5, 0.5]), 3, 0.1, 0, 1)
    assert weights[-2:].tolist() == [10.5, 13.5]  # half of 3 * (2, 3), half of 3 * (5, 6)
    assert learner.module(weights).calls == 0


def test_frozen_parameters_stay_and_shared_ones_count_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.second = nn.Linear(2, 2)
            self.second.weight = self.first.weight
            self.second.bias.requires_grad = False

        def forward(self, x):
            return self.second(torch.tanh(self.first(x)))

    learner = TorchLearner(Tied, [[([1.0, 2.0], 0), ([3.0, 4.0], 1)]])
    weights = learner.initial(0)
    assert weights.size == 8
    moved = weights.copy()
    learner.train_round(moved, np.array([0]), np.ones(1), 2, 0.1, 0, 1)
    assert np.array_equal(moved[-2:], weights[-2:]) and not (moved[:-2] == weights[:-2]).any()
    tied = learner.module(moved)
    assert tied.first.weight is tied.second.weight


def test_all_kinds_of_datasets_give_the_same_samples():
    x, y = torch.arange(12.0).reshape(6, 2), torch.tensor([0, 1, 0, 1, 1, 0])
    read_only = x.numpy().astype(np.float64)
    read_only.flags.writeable = False
    kinds = [
        [TensorDataset(x[:2], y[:2]), TensorDataset(x[2:], y[2:])],
        [Subset(TensorDataset(x, y), [0, 1]), Subset(TensorDataset(x, y), [2, 3, 4, 5])],
        [list(zip(x[:2], y[:2], strict=True)), list(zip(x[2:], y[2:].tolist(), strict=True))],
        [
            list(zip(read_only[:2], y[:2].numpy(), strict=True)),
            list(zip(read_only[2:], y[2:].numpy(), strict=True)),
        ],
    ]
    for clients in kinds:
        learner = TorchLearner(lambda: nn.Linear(2, 2), clients, test=clients[0])
        assert learner.sizes.tolist() == [2, 4]
        assert torch.equal(learner.samples().x, x) and learner.labels.tolist() == y.tolist()
        assert len(learner.test_samples()) == 2
    assert TorchLearner(lambda: nn.Linear(2, 2), kinds[0]).test_samples() is None


def test_whole_numbers_reach_the_module_as_they_are():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.linear = nn.EmbeddingBag(9, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.linear(self.words(x))

    learner = TorchLearner(Words, [[([1, 2, 8], 0)], [([0, 3, 3], 1), ([5, 6, 7], 0)]])
    run = Simulator(learner, LearningRate(initial=0.5)).run(uniform(2, 5), Stop(max_rounds=5))
    assert run.losses[-1] < run.losses[0]


def test_a_rate_too_high_is_a_diverged_run():
    learner = TorchLearner.from_data(cnn, images())
    run = Simulator(learner, LearningRate(initial=1e38)).run(uniform(2, 20), Stop(max_rounds=9))
    assert run.status == "diverged" and all(map(math.isfinite, run.losses))


PAIRS = [([1.0, 2.0], 0), ([3.0, 4.0], 1)]
KEPT = nn.Linear(2, 2)


def drawn_by_numpy():
    module = nn.Linear(2, 2)
    module.bias.data[:] = float(np.random.default_rng().normal())
    return module


class Masked(nn.Linear):
    def __init__(self):
        super().__init__(2, 2)
        self.register_buffer("mask", torch.tensor(-math.inf))


class Pair(nn.Linear):
    def forward(self, x):
        return super().forward(x), x


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (KEPT, "is a module. Give its class"),
        (lambda: KEPT, "new module each time"),
        (lambda: "net", "returned a str"),
        (drawn_by_numpy, "Draw random numbers from torch alone"),
        (nn.Identity, "parameters to train, but has none"),
        (lambda: nn.Linear(2, 2).double(), r"weight is torch.float64 on cpu \(2 such\)"),
        (lambda: nn.LazyLinear(2), "lazy"),
        (Masked, "mask is not .* persistent=False"),
        (lambda: Pair(2, 2), "but returns a tuple"),
        (lambda: nn.Linear(2, 1), r"2 or more\) for labels from 0 to 1, but returns \(1, 1\)"),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.Flatten(0)), r"2 or more\).* returns \(2,\)"),
        (lambda: nn.Linear(3, 2), r"samples of shape \(2,\).* fails with RuntimeError"),
        (
            lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)),
            "a batch of 1 samples .* smallest client .* more than 1 value per channel",
        ),
    ],
)
def test_wrong_modules_are_refused_before_the_first_round(build, message):
    with pytest.raises(InputError, match=message):
        TorchLearner(build, [PAIRS, PAIRS[:1]])


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ([], "at least one dataset"),
        ([PAIRS, []], "client 1: must hold at least 1 sample"),
        ([PAIRS, [], []], r"\(2 such datasets"),
        ([PAIRS, [([1.0], 0)]], r"client 1: .* of client 0, \(2,\), but have \(1,\)"),
        ([[*PAIRS, ([1.0], 0)]], r"one shape, .* \[2\] at entry 0 and \[1\] at entry 2"),
        ([[1.0, 2.0]], "pair .* sample 0 is a float"),
        ([[([1.0, 2.0], 0.5)]], "whole number, but sample 0 is a tuple .*'float' object"),
        ([[("ab", 0)]], "array of numbers .* sample 0 is a tuple"),
        ([[([1.0, 2.0], -1)]], "-1 occurs"),
        ([[([1.0, math.nan], 1)]], "finite"),
        ([TensorDataset(torch.ones(2, 2), torch.ones(2))], r"type torch.float32.* y.long\(\)"),
        ([DataLoader(PAIRS)], "DataLoader's .dataset"),
    ],
)
def test_wrong_data_is_refused(clients, message):
    with pytest.raises(InputError, match=message):
        TorchLearner(lambda: nn.Linear(2, 2), clients)


def test_a_loss_of_many_numbers_is_refused_and_one_of_ones_own_is_used():
    def each(scores, labels):
        return nn.functional.cross_entropy(scores, labels, reduction="none")

    with pytest.raises(InputError, match=r"mean over a batch.* returned \(2,\)"):
        TorchLearner(lambda: nn.Linear(2, 2), [PAIRS], loss=each)
    with pytest.raises(InputError, match=r"returned 1\.0"):
        TorchLearner(lambda: nn.Linear(2, 2), [PAIRS], loss=lambda *_: 1.0)
    doubled = TorchLearner(
        lambda: nn.Linear(2, 2), [PAIRS], loss=lambda scores, y: 2 * each(scores, y).mean()
    )
    plain = TorchLearner(lambda: nn.Linear(2, 2), [PAIRS])
    weights = plain.initial(0)
    twice, _ = doubled.evaluate(weights, doubled.samples())
    assert twice == pytest.approx(2 * plain.evaluate(weights, plain.samples())[0])


def test_everything_wrong_is_reported_at_once():
    with pytest.raises(InputError) as error:
        TorchLearner(lambda: nn.Linear(2, 2).double(), [PAIRS, [], [1]], test=[3], batch_size=0)
    messages = [str(problem) for problem in error.value.problems]
    assert len(messages) == 4
    assert "batch_size >= 1" in messages[0] and "float64" in messages[1]
    assert "client 1" in messages[2] and "(2 such datasets.)" in messages[3]


def python(code):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_without_torch_the_line_to_type_is_given_and_everything_else_works():
    code = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Blocker())
import fedplan.models, fedplan.simulation
from fedplan import FedplanError
from fedplan.participation import uniform
try:
    from fedplan.models.torch_learner import TorchLearner
except FedplanError as error:
    print(error.exit_code, error)
"""
    assert python(code).strip() == (
        "1 TorchLearner needs the package torch, which is not installed. "
        "Type: pip install 'fedplan[torch]'"
    )
    assert python("import sys, fedplan.models; print('torch' in sys.modules)") == "False\n"
