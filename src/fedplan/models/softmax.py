"""Softmax and cross-entropy of sixteen samples at once; class c of sample s at c * stride + s."""

from numba import float32, njit

from fedplan.models.lanes import (
    add,
    constant,
    divide,
    exponent,
    fma,
    load,
    maximum,
    multiply,
    nearest,
    power_of_two,
    store,
    subtract,
    where_greater,
)


@njit(inline="always")
def exp(x):
    """e**x to two units in the last place; 0 below -87."""
    x = maximum(x, constant(-87.0))
    n = nearest(multiply(x, constant(1.4426950408889634)))
    r = fma(n, constant(-0.693359375), x)
    r = fma(n, constant(2.12194440e-4), r)
    p = constant(1.9875691500e-4)
    p = fma(p, r, constant(1.3981999507e-3))
    p = fma(p, r, constant(8.3334519073e-3))
    p = fma(p, r, constant(4.1665795894e-2))
    p = fma(p, r, constant(1.6666665459e-1))
    p = fma(p, r, constant(5.0000001201e-1))
    p = fma(multiply(r, r), p, add(r, constant(1.0)))
    return multiply(p, power_of_two(n))


@njit(inline="always")
def log(x):
    """Natural logarithm of normal positive numbers, to two units in the last place."""
    e = exponent(x)
    m = subtract(multiply(x, power_of_two(multiply(e, constant(-1.0)))), constant(1.0))
    z = multiply(m, m)
    p = constant(7.0376836292e-2)
    p = fma(p, m, constant(-1.1514610310e-1))
    p = fma(p, m, constant(1.1676998740e-1))
    p = fma(p, m, constant(-1.2420140846e-1))
    p = fma(p, m, constant(1.4249322787e-1))
    p = fma(p, m, constant(-1.6668057665e-1))
    p = fma(p, m, constant(2.0000714765e-1))
    p = fma(p, m, constant(-2.4999993993e-1))
    p = fma(p, m, constant(3.3333331174e-1))
    y = multiply(multiply(m, z), p)
    y = fma(e, constant(-2.12194440e-4), y)
    y = fma(z, constant(-0.5), y)
    return fma(e, constant(0.693359375), add(m, y))


@njit(inline="always")
def softmax(scores, s, stride, classes):
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
def log_sum_exp(scores, s, stride, classes, sums, winners):
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
