"""LeNet-5 in float64 NumPy, written out layer by layer."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def convolve(x, w, b):
    patches = sliding_window_view(x, (5, 5), axis=(2, 3))  # sample, channel, y, x, i, j
    return np.einsum("ncyxij,ocij->noyx", patches, w, optimize=True) + b[None, :, None, None]


def convolve_back(x, w, error):
    patches = sliding_window_view(x, (5, 5), axis=(2, 3))
    taps = np.einsum("ncyxij,noyx->ocij", patches, error, optimize=True)
    padded = np.pad(error, ((0, 0), (0, 0), (4, 4), (4, 4)))
    around = sliding_window_view(padded, (5, 5), axis=(2, 3))
    pixels = np.einsum("noyxij,ocij->ncyx", around, w[:, :, ::-1, ::-1], optimize=True)
    return taps, error.sum(axis=(0, 2, 3)), pixels


def pool(x):
    n, c, h, w = x.shape
    windows = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    flat = windows.reshape(n, c, h // 2, w // 2, 4)
    which = flat.argmax(axis=-1)
    best = np.take_along_axis(flat, which[..., None], axis=-1)[..., 0]
    return np.maximum(best, 0.0), which


def pool_back(error, pooled, which):
    n, c, h, w = error.shape
    flat = np.zeros((n, c, h, w, 4))
    np.put_along_axis(flat, which[..., None], (error * (pooled > 0))[..., None], axis=-1)
    windows = flat.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return windows.reshape(n, c, 2 * h, 2 * w)


def forward(layers, x):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = layers
    image = np.pad(x.reshape(-1, 1, 28, 28).astype(np.float64), ((0, 0), (0, 0), (2, 2), (2, 2)))
    first, which_1 = pool(convolve(image, w1, b1))
    second, which_2 = pool(convolve(first, w2, b2))
    a = second.reshape(len(x), -1)
    b = np.maximum(a @ w3.T + b3, 0.0)
    c = np.maximum(b @ w4.T + b4, 0.0)
    return c @ w5.T + b5, (image, first, which_1, second, which_2, a, b, c)


def loss_and_gradient(layers, x, y):
    w2, w3, w4, w5 = layers[2], layers[4], layers[6], layers[8]
    z, (image, first, which_1, second, which_2, a, b, c) = forward(layers, x)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    p[np.arange(len(y)), y] -= 1.0
    p /= len(y)
    error_c = (p @ w5) * (c > 0)
    error_b = (error_c @ w4) * (b > 0)
    error_a = (error_b @ w3).reshape(second.shape)
    taps_2, bias_2, error_first = convolve_back(first, w2, pool_back(error_a, second, which_2))
    taps_1, bias_1, _ = convolve_back(image, layers[0], pool_back(error_first, first, which_1))
    dense = [error_b.T @ a, error_b.sum(0), error_c.T @ b, error_c.sum(0), p.T @ c, p.sum(0)]
    return loss, [taps_1, bias_1, taps_2, bias_2, *dense]
