"""FederatedData: what it tells, and every way in which arrays can disagree."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from fedplan.errors import InputError
from fedplan.tasks import FederatedData

GOOD = {
    "x": np.arange(12.0).reshape(4, 3),
    "y": np.array([0, 1, 2, 1]),
    "starts": np.array([0, 1, 4]),
    "num_classes": 3,
}


def problems(**changes) -> dict[str | None, str]:
    with pytest.raises(InputError) as caught:
        FederatedData(**{**GOOD, **changes})
    return {problem.column: problem.message for problem in caught.value.problems}


def test_counts_sizes_and_weights():
    data = FederatedData(**GOOD, test_x=np.ones((2, 3)), test_y=[0, 2], name="mine")
    assert (data.num_clients, data.num_samples, data.num_features) == (2, 4, 3)
    assert data.sizes.tolist() == [1, 3]
    assert data.weights.tolist() == [0.25, 0.75]
    assert data.y[data.client_rows(1)].tolist() == [1, 2, 1]
    assert (data.x.dtype, data.y.dtype, data.starts.dtype) == (np.float32, np.int64, np.int64)
    assert data.test_x is not None and data.test_x.dtype == np.float32
    assert repr(data) == (
        "<FederatedData 'mine': 2 clients, 4 samples (1 to 3 a client), 3 features, 3 classes, "
        "2 test samples>"
    )


def test_an_image_shape_is_kept_and_shown():
    data = FederatedData(**{**GOOD, "x": np.zeros((4, 6))}, image_shape=[2, 3])
    assert data.image_shape == (2, 3)
    assert "6 features (image (2, 3))" in repr(data)


def test_nothing_can_be_changed_and_the_callers_array_stays_writeable():
    x = np.zeros((4, 3), np.float32)
    data = FederatedData(**{**GOOD, "x": x})
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    with pytest.raises(ValueError, match="read-only"):
        data.x[0, 0] = 1.0
    assert x.flags.writeable
    assert np.shares_memory(data.x, x)  # no copy of a large array


@pytest.mark.parametrize("client", [-1, 2])
def test_a_client_that_does_not_exist_has_no_rows(client):
    with pytest.raises(InputError, match="client must be 0 to 1"):
        FederatedData(**GOOD).client_rows(client)


def test_all_problems_are_listed_at_once():
    found = problems(
        x=[[1.0, math.nan], [2.0, 3.0], [math.inf, 0.0], [0.0, 0.0]],
        y=[0, 1, 2, 3],
        starts=[0, 2, 2, 4],
        test_x=[[1.0, 2.0, 3.0]],
        test_y=[-1],
        image_shape=(2, 2),
    )
    assert set(found) == {"x", "y", "starts", "test_x", "test_y", "image_shape"}
    assert "row 0" in found["x"] and "2 such rows" in found["x"]
    assert "entry 3 is 3" in found["y"]
    assert "client 1 holds 0" in found["starts"]
    assert "2 features" in found["test_x"]
    assert "entry 0 is -1" in found["test_y"]
    assert "multiply to the 2 features" in found["image_shape"]


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"x": np.full((4, 3), 1e300)}, "x", "finite in float32"),
        ({"x": [[1.0], [2.0, 3.0]]}, "x", "real numbers"),
        ({"x": [["a"], ["b"]]}, "x", "real numbers"),
        ({"x": np.ones((4, 3), complex)}, "x", "real numbers"),
        ({"x": np.ones((4, 2, 2))}, "x", "(4, 2, 2)"),
        ({"x": np.ones(4)}, "x", "(4,)"),
        ({"x": np.ones((0, 3))}, "x", "(0, 3)"),
        ({"y": [0, 1, 2]}, "y", "3 for 4"),
        ({"y": [0.0, 1.0, 2.0, 1.0]}, "y", "y.astype(int)"),
        ({"y": [[0, 1, 2, 1]]}, "y", "(1, 4)"),
        ({"y": [[0], [1, 2]]}, "y", "flat array of integers"),
        ({"y": np.array([0, 1, 2, 2**64 - 1], np.uint64)}, "y", "entry 3"),
        ({"num_classes": 1}, "num_classes", "got 1"),
        ({"starts": [0, 1]}, "starts", "from 0 to 1"),
        ({"starts": [1, 4]}, "starts", "from 1 to 4"),
        ({"starts": [0]}, "starts", "1 offsets"),
        ({"starts": np.array([], int)}, "starts", "from nothing"),
        ({"starts": [0, 5, 4]}, "starts", "client 1 holds -1"),
        ({"starts": [0.0, 4.0]}, "starts", "integers"),
        ({"test_x": np.ones((1, 3))}, None, "both test_x and test_y"),
        ({"test_x": np.ones((1, 3)), "test_y": [0, 1]}, "test_y", "2 for 1"),
        ({"image_shape": ()}, "image_shape", "got ()"),
        ({"image_shape": (-1, -3)}, "image_shape", "(-1, -3)"),
    ],
)
def test_each_problem_names_its_array_and_the_values(changes, field, said):
    found = problems(**changes)
    assert set(found) == {field}
    assert said in found[field]
