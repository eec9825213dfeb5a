"""LeNet-5 against float64 NumPy, finite differences and PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from models import lenet_reference as reference
from models.clients import one_client_round, small_clients

from fedplan import InputError
from fedplan.core.records import Stop
from fedplan.models import LeNet5
from fedplan.participation import uniform
from fedplan.simulation import Job, LearningRate, Simulator
from fedplan.tasks import federate, iid, mnist_mini


def images(*sizes):
    return small_clients(784, 10, sizes)


def drawn_within(boxes):
    """One client whose sample i has all its pixels, but for zeros, in boxes[i % len(boxes)]."""
    data = images(40)
    x = np.zeros_like(data.x).reshape(-1, 28, 28)
    for i, image in enumerate(data.x.reshape(-1, 28, 28)):
        rows, columns = boxes[i % len(boxes)]
        x[i, rows, columns] = image[rows, columns]
    return type(data)(x=x.reshape(-1, 784), y=data.y, starts=data.starts, num_classes=10)


def doubles(learner, weights):
    return [layer.astype(np.float64) for layer in learner.unpack(weights)]


def gradient(learner, weights, client=0):
    """What one full-batch step of size 1 moves the weights by."""
    moved = weights.copy()
    one_client_round(learner, moved, client, 1, 1.0)
    return [a - b for a, b in zip(doubles(learner, weights), doubles(learner, moved), strict=True)]


@pytest.mark.parametrize("size", [1, 15, 16, 17, 50, 64])
def test_loss_and_gradient_equal_the_reference(size):
    learner = LeNet5(images(size))
    weights = learner.initial(3)
    x, y = learner.samples().images, learner.labels
    loss, expected = reference.loss_and_gradient(doubles(learner, weights), x, y)
    assert learner.evaluate(weights, learner.samples())[0] == pytest.approx(loss, rel=1e-6)
    for got, right in zip(gradient(learner, weights), expected, strict=True):
        assert np.abs(got - right).max() <= 5e-6 * np.abs(right).max()


def test_weights_after_thirty_steps_equal_the_reference():
    learner = LeNet5(images(64))
    weights = learner.initial(3)
    expected = doubles(learner, weights)
    one_client_round(learner, weights, 0, 30, 0.01)
    for _ in range(30):
        _, step = reference.loss_and_gradient(expected, learner.samples().images, learner.labels)
        expected = [layer - 0.01 * move for layer, move in zip(expected, step, strict=True)]
    for got, right in zip(learner.unpack(weights), expected, strict=True):
        assert np.abs(got - right).max() <= 1e-5 * np.abs(right).max()


def test_gradient_equals_finite_differences():
    learner = LeNet5(images(64))
    weights = learner.initial(3)
    random = np.random.default_rng(0)
    slope, everything = gradient(learner, weights), learner.samples()
    for i, layer in enumerate(doubles(learner, weights)):
        along = np.sign(slope[i]) + random.normal(size=layer.shape)
        along /= np.linalg.norm(along)
        losses = []
        for step in (-2e-3, 2e-3):
            moved = weights.copy()
            learner.unpack(moved)[i][:] += (step * along).astype(np.float32)
            losses.append(learner.evaluate(moved, everything)[0])
        expected = (losses[1] - losses[0]) / 4e-3
        assert (slope[i] * along).sum() == pytest.approx(expected, rel=0.02)


def test_loss_and_gradient_equal_those_of_torch():
    torch = pytest.importorskip("torch")
    learner = LeNet5(images(64))
    weights = learner.initial(3)
    layers = [torch.tensor(layer, requires_grad=True) for layer in doubles(learner, weights)]
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = layers
    f = torch.nn.functional
    x = torch.tensor(learner.samples().images, dtype=torch.float64).reshape(-1, 1, 28, 28)
    x = f.max_pool2d(f.relu(f.conv2d(x, w1, b1, padding=2)), 2)
    x = f.max_pool2d(f.relu(f.conv2d(x, w2, b2)), 2).flatten(1)
    x = f.relu(f.linear(f.relu(f.linear(x, w3, b3)), w4, b4))
    loss = f.cross_entropy(f.linear(x, w5, b5), torch.tensor(learner.labels))
    loss.backward()
    assert learner.evaluate(weights, learner.samples())[0] == pytest.approx(loss.item(), rel=1e-6)
    for got, layer in zip(gradient(learner, weights), layers, strict=True):
        assert np.abs(got - layer.grad.numpy()).max() <= 5e-6 * np.abs(layer.grad.numpy()).max()


def test_pixels_that_tie_pass_their_gradient_to_the_first_as_argmax_does():
    data = images(16)
    flat = type(data)(x=np.full_like(data.x, 0.5), y=data.y, starts=data.starts, num_classes=10)
    learner = LeNet5(flat)
    weights = learner.initial(3)
    _, expected = reference.loss_and_gradient(doubles(learner, weights), flat.x, flat.y)
    for got, right in zip(gradient(learner, weights), expected, strict=True):
        assert np.abs(got - right).max() <= 1e-4 * np.abs(right).max()


def at(top, bottom, left, right):
    return slice(top, bottom), slice(left, right)


@pytest.mark.parametrize(
    "boxes",
    [
        [at(0, 0, 0, 0)],
        [at(0, 3, 0, 3)],
        [at(0, 3, 25, 28)],
        [at(25, 28, 0, 3)],
        [at(25, 28, 25, 28)],
        [at(0, 1, 13, 14)],
        [at(27, 28, 14, 15)],
        [at(13, 14, 0, 1)],
        [at(14, 15, 27, 28)],
        [at(0, 28, 11, 12)],
        [at(4, 24, 4, 24)],
        [at(0, 0, 0, 0), at(0, 2, 0, 2), at(26, 28, 9, 12), at(5, 20, 7, 21), at(12, 13, 27, 28)],
    ],
)
def test_blank_pixels_are_left_out_exactly(boxes):
    learner = LeNet5(drawn_within(boxes))
    weights, everything = learner.initial(3), learner.samples()
    layers = doubles(learner, weights)
    loss, expected = reference.loss_and_gradient(layers, everything.images, learner.labels)
    scores, _ = reference.forward(layers, everything.images)
    right = (scores.argmax(axis=1) == learner.labels).mean()
    assert learner.evaluate(weights, everything) == pytest.approx((loss, right), rel=1e-6)
    rounding = np.spacing(np.abs(weights).max())  # of the weights the gradient is read from
    for got, layer in zip(gradient(learner, weights), expected, strict=True):
        assert np.abs(got - layer).max() <= 5e-6 * np.abs(layer).max() + rounding


def test_every_single_pixel_counts():
    x, y = 5 * np.eye(784, dtype=np.float32), np.arange(784) % 10
    data = images(1)
    learner = LeNet5(type(data)(x=x, y=y, starts=np.array([0, 784]), num_classes=10))
    weights = learner.initial(3)
    scores, _ = reference.forward(doubles(learner, weights), x)
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(784), y]
    got = [learner.evaluate(weights, learner.samples(np.array([row])))[0] for row in range(784)]
    assert got == pytest.approx(losses, rel=1e-6)


def test_first_weights_are_seeded_and_normal():
    learner = LeNet5(images(5))
    assert (learner.initial(1) == learner.initial(1)).all()
    assert (learner.initial(1) != learner.initial(2)).any()
    layers = learner.unpack(learner.initial(1))
    assert sum(layer.size for layer in layers) == 61_706
    for layer, bias in zip(layers[::2], layers[1::2], strict=True):
        expected = 1 / math.sqrt(3 * math.prod(layer.shape[1:]))
        for part in (layer, bias):
            assert part.std() == pytest.approx(expected, rel=3 / math.sqrt(2 * part.size))


def test_it_learns_digits_the_same_with_one_thread_and_two():
    digits = mnist_mini()
    data = federate(digits.x, digits.y, iid(len(digits.y), 20, seed=0))
    simulator = Simulator(LeNet5(data), LearningRate(initial=0.1))
    jobs = [Job(course=uniform(5, 20), seed=seed) for seed in (0, 1)]
    one = list(simulator.run_all(jobs, Stop(max_rounds=12), threads=1))
    two = list(simulator.run_all(jobs[::-1], Stop(max_rounds=12), threads=2))[::-1]
    assert one == two
    assert all(run.losses[0] > 2.2 and run.final_loss < 0.6 for run in one)


def test_rows_and_test_samples_are_evaluated_as_they_stand():
    data = images(40)
    with_test = type(data)(
        x=data.x, y=data.y, starts=data.starts, num_classes=10,
        test_x=data.x[7:30], test_y=data.y[7:30],
    )  # fmt: skip
    learner = LeNet5(with_test)
    weights = learner.initial(3)
    rows = learner.evaluate(weights, learner.samples(np.arange(7, 30)))
    assert rows == learner.evaluate(weights, learner.test_samples())
    assert LeNet5(data).test_samples() is None


def test_data_of_another_shape_is_refused_with_all_that_is_wrong():
    with pytest.raises(InputError) as error:
        LeNet5(small_clients(60, 11))
    assert len(error.value.problems) == 2 and "28 x 28" in str(error.value)
