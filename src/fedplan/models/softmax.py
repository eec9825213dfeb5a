"""Softmax and cross-entropy of sixteen samples at once; class c of sample s at c * stride + s."""

from __future__ import annotations

from numba import float32, njit

from fedplan.models.lanes import (
    add,
    constant,
    divide,
    exp,
    load,
    log,
    maximum,
    multiply,
    store,
    subtract,
    where_greater,
)


@njit(inline="always")
def softmax(scores, s, stride, classes):  # type: ignore[no-untyped-def]
    """Scores of samples s to s + 15 into probabilities, in place; class c starts at c * stride."""
    top = load(scores, s)
    for c in range(1, classes):
        top = maximum(top, load(scores, c * stride + s))
    total = constant(0.0)
    for c in range(classes):
        e = exp(subtract(load(scores, c * stride + s), top))
        store(scores, c * stride + s, e)
        total = add(total, e)
    scale = divide(constant(1.0), total)
    for c in range(classes):
        store(scores, c * stride + s, multiply(load(scores, c * stride + s), scale))


@njit(inline="always")
def log_sum_exp(scores, s, stride, classes, sums, winners):  # type: ignore[no-untyped-def]
    """Log of the sum of exp(score), and the first class of the highest, for samples s to s + 15."""
    top, winner = load(scores, s), constant(0.0)
    for c in range(1, classes):
        score = load(scores, c * stride + s)
        winner = where_greater(score, top, constant(float32(c)), winner)
        top = maximum(top, score)
    total = constant(0.0)
    for c in range(classes):
        total = add(total, exp(subtract(load(scores, c * stride + s), top)))
    store(sums, s, add(top, log(total)))
    store(winners, s, winner)
