"""`fedplan profile --fleet-from`: a fleet from what real devices did."""

from __future__ import annotations

import numpy as np
import pytest
from stored_runs import save_live_study

from fedplan import read_fleet
from fedplan.store import Store


@pytest.fixture
def store(tmp_path):
    """A live study of three clients, the last of which has never answered; and a simulated one."""
    url = f"sqlite:///{tmp_path}/runs.db"
    with Store(url) as store:
        save_live_study(store)
        store.save_study("demo", {}, {"engine": "simulator"})
    return url


def test_the_latest_live_study_becomes_a_fleet(fedplan, store, tmp_path):
    path = tmp_path / "fleet.csv"
    words = ("profile", "--fleet-from", store, "--output", path, "--format", "json")
    answer = fedplan(*words).json
    assert answer.keys() == {
        "success", "study", "store", "devices", "unknown", "rejected", "output"
    }  # fmt: skip
    assert answer["study"] == "digits" and answer["unknown"] == ["phone-c"]
    assert answer["rejected"] == ["client 2: its answer was not used: no answer within 60 s."]
    first, second = answer["devices"]
    assert (first["device"], first["client"], first["num_observations"]) == ("phone-a", 0, 3)
    for part, value in (("step_time_s", 0.2), ("comm_time_s", 2.5), ("step_energy_j", 0.25)):
        assert second[part]["value"] == pytest.approx(value)
        assert second[part]["low"] <= value <= second[part]["high"]
    fleet = read_fleet(path)
    assert fleet.device == ("phone-a", "phone-b", "phone-c")
    np.testing.assert_allclose(fleet.step_time_s, [0.1, 0.2, 0.15])  # the last: a median device
    np.testing.assert_allclose(fleet.comm_time_s, 2.5)
    np.testing.assert_allclose(fleet.comm_energy_j, 3.0)


def test_the_table_has_intervals_and_what_was_not_believed(fedplan, store):
    shown = fedplan("profile", "digits", "--fleet-from", store)
    assert shown.code == 0
    for words in ("phone-b", "200 ms (", "as the median device", "Not believed, 1:", "client 2"):
        assert words in shown.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("demo",), "demo has no observations of real devices"),
        (("digit",), "Did you mean digits?"),
        (("digits", "--seconds", "5"), "--seconds does not go with --fleet-from"),
        (("digits", "rounds=5"), "[KEY=VALUE]... does not go with --fleet-from"),
        (("--output", "fleet.txt"), "fleet.txt"),
    ],
)
def test_what_cannot_be_is_refused(fedplan, store, words, message):
    answer = fedplan("profile", *words, "--fleet-from", store)
    assert answer.code == 2 and message in answer.err


def test_a_store_without_live_runs_says_so(fedplan, tmp_path):
    Store(f"sqlite:///{tmp_path}/none.db").close()
    answer = fedplan("profile", "--fleet-from", f"sqlite:///{tmp_path}/none.db")
    assert answer.code == 2 and "was trained on real devices" in answer.err
