"""Priors: of every parameter of a law, its mean and standard deviation before any pilot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fedplan.core.fleet import FloatArray

Prior = Mapping[str, tuple[float, float]]


def by_name(prior: Prior, parameters: FloatArray, dimensions: int) -> dict[str, FloatArray]:
    """Parameters by their names, each with room for so many axes after its own.

    >>> by_name({"slope": (0, 1), "height": (0, 1)}, np.array([[1, 2], [3, 4]]), 1)["height"]
    array([[2],
           [4]])
    """
    columns = np.moveaxis(np.asarray(parameters), -1, 0)
    if columns.ndim > 1:
        columns = columns[(..., *(np.newaxis,) * dimensions)]
    return dict(zip(prior, columns, strict=True))
