"""Synthetic(alpha, beta): the usual artificial federation; models and inputs differ by client."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from fedplan.errors import refuse, unmet
from fedplan.tasks.dataset import FederatedData, FloatArray, IntArray, as_array
from fedplan.tasks.partition import sizes_problems

MAX_SEED = 2**32 - 1  # what numpy.random.RandomState accepts


def synthetic(
    alpha: float,
    beta: float,
    *,
    num_clients: int = 100,
    num_features: int = 60,
    num_classes: int = 10,
    seed: int = 0,
    iid: bool = False,
    sizes: Sequence[int] | IntArray | None = None,
) -> FederatedData:
    """Draw Synthetic(alpha, beta): alpha spreads the clients' models, beta their inputs.

    One `numpy.random.RandomState(seed)` draws, in this order:

    1. n_k = int(lognormal(4, 2)) + 50 samples for every client; nothing if `sizes` is given;
    2. u_k ~ N(0, sd alpha) for every client: the mean of both W_k and b_k;
    3. B_k ~ N(0, sd beta) for every client;
    4. v_k ~ N(B_k, 1) for every client, shape (num_features,);
    5. client by client: W_k ~ N(u_k, 1) of shape (num_features, num_classes), b_k ~ N(u_k, 1),
       then n_k rows x ~ N(v_k, Sigma), Sigma diagonal with entries j^-1.2, j = 1, 2, ...

    A label is argmax(x W_k + b_k); no noise is added. Labels come from the float64 inputs, which
    are then stored as float32.

    With `iid`, steps 2 to 4 draw one u, one B and one v, then one W and one b are drawn, and all
    clients share them: client by client only the rows x are left to draw. Sizes still differ.

    >>> data = synthetic(1.0, 1.0, seed=2130)
    >>> data.num_clients, data.num_samples, round(float(data.sizes.std()))
    (100, 24573, 356)
    """
    shape = {"num_clients": num_clients, "num_features": num_features, "num_classes": num_classes}
    _check(sizes, alpha=alpha, beta=beta, seed=seed, **shape)
    random = np.random.RandomState(seed)
    if sizes is None:
        sizes = random.lognormal(4.0, 2.0, num_clients).astype(np.int64) + 50
    models = 1 if iid else num_clients
    model_means = random.normal(0.0, alpha, models)
    input_means = random.normal(0.0, beta, models)
    centres = np.stack([random.normal(mean, 1.0, num_features) for mean in input_means])
    scale = np.arange(1, num_features + 1) ** -0.6  # standard deviations of Sigma
    starts = np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))])
    x = np.empty((starts[-1], num_features), np.float32)
    y = np.empty(starts[-1], np.int64)
    for client, (start, end) in enumerate(pairwise(starts)):
        if client < models:
            centre, mean = centres[client], model_means[client]
            matrix = random.normal(mean, 1.0, (num_features, num_classes))
            bias = random.normal(mean, 1.0, num_classes)
        rows: FloatArray = centre + random.standard_normal((end - start, num_features)) * scale
        x[start:end] = rows
        y[start:end] = np.argmax(rows @ matrix + bias, axis=1)
    kind = "Synthetic-IID" if iid else "Synthetic"
    return FederatedData(
        x=x, y=y, starts=starts, num_classes=num_classes, name=f"{kind}({alpha:g}, {beta:g})"
    )


def _check(sizes: Sequence[int] | IntArray | None, **given: float) -> None:
    rules = {
        "0 <= alpha < inf": 0 <= given["alpha"] < np.inf,
        "0 <= beta < inf": 0 <= given["beta"] < np.inf,
        "num_clients >= 1": given["num_clients"] >= 1,
        "num_features >= 1": given["num_features"] >= 1,
        "num_classes >= 2": given["num_classes"] >= 2,
        f"0 <= seed <= {MAX_SEED}": 0 <= given["seed"] <= MAX_SEED,
    }
    problems = unmet(rules, **given)
    if sizes is not None:
        problems += sizes_problems(as_array(sizes), given["num_clients"])
    refuse(problems)
