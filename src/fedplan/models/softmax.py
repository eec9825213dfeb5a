"""Softmax and cross-entropy of sixteen samples at once; class c of sample s at c * stride + s."""

from __future__ import annotations

from numba import njit

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
def log_sum_exp(scores, s, stride, classes, out):  # type: ignore[no-untyped-def]
    """out[s] = log of the sum of exp(score) over classes, for samples s to s + 15."""
    top = load(scores, s)
    for c in range(1, classes):
        top = maximum(top, load(scores, c * stride + s))
    total = constant(0.0)
    for c in range(classes):
        total = add(total, exp(subtract(load(scores, c * stride + s), top)))
    store(out, s, add(top, log(total)))


@njit(inline="always")
def is_best(scores, s, stride, classes, label):  # type: ignore[no-untyped-def]
    """Whether argmax picks this label: of equal scores it takes the first."""
    score = scores[label * stride + s]
    best = True
    for c in range(classes):
        other = scores[c * stride + s]
        best &= other < score or (other == score and c >= label)
    return best
