"""What is learnt: logistic regression on a tenth of MNIST, in NumPy alone."""

from __future__ import annotations

import numpy as np

from fedplan.tasks import mnist_mini

NUM_PIXELS, NUM_DIGITS = 784, 10
# Read when the app is loaded, not while it trains: seconds of training are then those of steps.
# 6,000 images for training and 1,000 for tests, which fedplan has with it.
DIGITS = mnist_mini()


def load_partition(partition: int, num_partitions: int) -> tuple[np.ndarray, np.ndarray]:
    """One client's images and labels: half of them of all digits, half of a few digits alone."""
    by_digit = np.argsort(DIGITS.y, kind="stable")
    shared, own = by_digit[::2], by_digit[1::2]
    mine = [shared[partition::num_partitions], np.array_split(own, num_partitions)[partition]]
    rows = np.concatenate(mine)
    return DIGITS.x[rows], DIGITS.y[rows]


def initial_weights() -> list[np.ndarray]:
    """Weights and biases to begin with."""
    return [np.zeros((NUM_PIXELS, NUM_DIGITS), np.float32), np.zeros(NUM_DIGITS, np.float32)]


def sgd_step(weights: list[np.ndarray], x: np.ndarray, y: np.ndarray, rate: float) -> None:
    """One step down the cross-entropy of a batch, in place."""
    matrix, bias = weights
    slope = probabilities(weights, x)
    slope[np.arange(len(y)), y] -= 1.0
    slope *= rate / len(y)
    matrix -= x.T @ slope
    bias -= slope.sum(axis=0)


def evaluate(weights: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Mean cross-entropy and accuracy."""
    predicted = probabilities(weights, x)
    right = predicted[np.arange(len(y)), y]
    return float(-np.log(right + 1e-12).mean()), float((predicted.argmax(axis=1) == y).mean())


def probabilities(weights: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Of every digit, for every image."""
    scores = x @ weights[0] + weights[1]
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)
