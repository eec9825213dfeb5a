"""The costliest questions that a page can ask: answered within bounds, or refused with a reason."""

from __future__ import annotations

import json

import pytest
from invariant import bounded

from fedplan.csvfile import Upload
from fedplan.errors import InputError
from fedplan.tables import MOST_PILOTS
from fedplan.web.answers import MOST_DOUBTED, answer, doubts
from fedplan.web.shelf import MOST_ROWS
from fedplan.web.state import read_state

WIDE = {"fleet": "drawn", "law": "lognormal", "spread": 1.5, "energy_weight": 0.3}
HEAD = "clients_per_round,local_steps,upper_loss,lower_loss,rounds_to_upper,rounds_to_lower\n"


def pilots(number):
    rows = (f"{1 + place % 97},{1 + place % 89},1.5,1.3,{50 + place},{100 + 2 * place}\n"
            for place in range(number))  # fmt: skip
    return Upload("pilots.csv", (HEAD + "".join(rows)).encode())


@pytest.mark.parametrize("law", ["uniform", "shuffled", "weighted", "turns"])
def test_the_largest_fleet_of_a_page(shelf, law):
    state = {**WIDE, "num_clients": MOST_ROWS, "participation": law}
    with bounded(megabytes=500):
        question = read_state(state, shelf)
        assert json.dumps(answer(question))
        said = doubts(question)
    assert (law == "uniform") == bool(said["sensitivity"])
    assert law == "uniform" or f"{MOST_DOUBTED:,}" in said["turns"]


def test_the_largest_fleet_with_what_ifs(shelf):
    state = {**WIDE, "num_clients": MOST_DOUBTED, "participation": "weighted"}
    with bounded(megabytes=500):
        assert doubts(read_state(state, shelf))["sensitivity"]


def test_the_most_pilots(shelf):
    with pytest.raises(InputError, match=f"at most {MOST_PILOTS:,} pilots, but has 1,001"):
        shelf.add_pilots(pilots(MOST_PILOTS + 1))
    with bounded(megabytes=500):
        id_, _ = shelf.add_pilots(pilots(MOST_PILOTS))
        assert json.dumps(answer(read_state({"pilots": id_}, shelf)))


def test_a_larger_fleet_than_a_page_may_bring(shelf):
    head = b"step_time_s,comm_time_s,step_energy_j,comm_energy_j\n"
    with (
        bounded(megabytes=500),
        pytest.raises(InputError, match="at most 200,000 rows on the page, but has 200,001"),
    ):
        shelf.add_fleet(Upload("fleet.csv", head + (MOST_ROWS + 1) * b"1,2,3,4\n"))
