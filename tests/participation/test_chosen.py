"""Clients that a course has chosen, and a few more at random."""

from __future__ import annotations

from itertools import combinations

import pytest
from contracts.participation import CLIENTS, PROBLEM, ParticipationContract

from fedplan.core.setting import Setting
from fedplan.participation import LAWS, Chosen, setting_from_dict


@pytest.mark.parametrize("drawn", [0, 1, 2, 4])
class TestChosen(ParticipationContract):
    @pytest.fixture
    def law(self, drawn):
        return Chosen(clients=(1, 4), pool=(0, 2, 3, 5), drawn=drawn)

    def possible_cohorts(self, law):
        more = list(combinations(law.pool, law.drawn))
        return [(1 / len(more), (*law.clients, *each)) for each in more]

    def test_it_is_read_back_from_what_is_stored(self, law):
        setting = Setting(participation=law, local_steps=5)
        assert setting_from_dict(setting.to_dict()) == setting
        assert law.law not in LAWS  # nobody asks for it by name


def test_of_nobody_chosen_everyone_may_be_drawn():
    law = Chosen.of(PROBLEM, 3, 2)
    assert law.clients_per_round == 2 and law.pool == tuple(range(CLIENTS))
    assert law.sampling_variance(PROBLEM) == pytest.approx(4 / 10)
    assert law.largest_share(PROBLEM) == 1.0


def test_what_cannot_be_is_said():
    assert "different clients" in Chosen(clients=(1, 1)).problems(6)[0]
    assert "different clients" in Chosen(clients=(6,)).problems(6)[0]
    assert "drawn" in Chosen(clients=(1,), pool=(2,), drawn=2).problems(6)[0]
    assert "drawn" in Chosen(clients=()).problems(6)[0]
