"""The reproduction: published numbers, and checks of the theory on costs made up for them."""

from __future__ import annotations

import pytest

from fedplan.studies import RunSummary, read_study
from fedplan_reproduction.checks import check_theory
from fedplan_reproduction.design import DESIGNS, QUICK_DESIGNS, SETUPS
from fedplan_reproduction.grid import COMM_FACTORS, TrainedGrid
from fedplan_reproduction.published import published_pilots


@pytest.mark.parametrize("setup", SETUPS)
def test_the_studies_pairs_and_losses_are_those_published(setup):
    planning, pilots = read_study(setup).planning, published_pilots(setup)
    assert planning.pairs == [[p.clients_per_round, p.local_steps] for p in pilots]
    assert {planning.upper_loss} == {p.upper_loss for p in pilots}
    assert {planning.lower_loss} == {p.lower_loss for p in pilots}


@pytest.mark.parametrize("designs", [DESIGNS, QUICK_DESIGNS])
@pytest.mark.parametrize("setup", SETUPS)
def test_what_is_shown_is_in_the_grid(setup, designs):
    design = designs[setup]
    assert design.shown_clients in design.clients_per_round
    assert design.shown_steps in design.local_steps
    assert max(design.clients_per_round) <= read_study(setup).task.num_clients


def made_up(rounds, *, clients=(1, 4, 10), joules=1.0, never=()):
    """A grid whose runs take `rounds(K, E)`; a step takes 1 s and 1 J, a round 20 more."""
    summaries = {
        factor: [
            RunSummary(
                clients_per_round=k,
                local_steps=e,
                seed=seed,
                status="rounds" if (k, e) in never else "target",
                rounds=round(rounds(k, e)),
                time_s=rounds(k, e) * (e + 20 * factor),
                energy_j=joules * k * rounds(k, e) * (e + 20 * factor),
                final_loss=None,
            )
            for k in clients
            for e in (2, 5, 10, 20, 40, 80)
            for seed in (0, 1)
        ]
        for factor in COMM_FACTORS
    }
    return TrainedGrid(summaries=summaries, runs=[], shown=(), shown_clients=4, shown_steps=10)


def bound(k, e, strength=1.0):
    """The paper's bound, held with equality."""
    return (400 + (1 + strength * (10 - k) / (9 * k)) * e**2) / e


def verdicts(grid):
    return {check.source: check.verdict for check in check_theory(grid, 10)}


def test_everything_holds_on_the_papers_own_bound():
    found = verdicts(made_up(bound))
    assert found.pop("Remark on Theorem 2") == "holds"
    assert len(found) == 7 and set(found.values()) == {"holds"}


def test_a_strong_effect_of_clients_breaks_theorem_3_and_not_theorem_2():
    found = verdicts(made_up(lambda k, e: bound(k, e, strength=40.0)))
    assert found["Theorem 3"] == "does not hold" and found["Theorem 2"] == "holds"


def test_a_cost_that_only_falls_within_the_grid_cannot_tell():
    found = verdicts(made_up(lambda _k, e: 1e6 / e))
    assert found["Corollary 1"] == found["Corollary 2"] == "cannot tell"


def test_a_second_valley_breaks_corollary_1():
    found = verdicts(made_up(lambda k, e: bound(k, e) * (5 if e == 20 else 1)))
    assert found["Corollary 1"] == found["Corollary 3"] == "does not hold"


def test_what_never_arrives_is_infinitely_dear():
    grid = made_up(bound, never={(1, e) for e in (2, 5, 10, 20, 40, 80)})
    theorem = next(check for check in check_theory(grid, 10) if check.source == "Theorem 3")
    assert theorem.verdict == "does not hold" and "K=1: never arrives" in theorem.numbers


def test_the_remark_fails_where_few_clients_take_much_longer():
    found = verdicts(made_up(lambda k, e: bound(k, e, strength=40.0)))
    assert found["Remark on Theorem 2"] == "does not hold"


def test_theorem_4_fails_where_the_best_clients_or_steps_rise_with_the_energy_weight():
    # All clients need few rounds, and a single one so many that its energy is the highest too.
    found = verdicts(made_up(lambda k, e: bound(k, e) * (1 if k == 10 else 50)))
    assert found["Theorem 4"] == "does not hold"
    # One client does best with many steps, all of them with few.
    found = verdicts(made_up(lambda k, e: bound(k, e) * (9 if (k == 1) != (e > 20) else 1)))
    assert found["Theorem 4"] == "does not hold"


def test_theorem_2_fails_where_a_middling_number_of_clients_is_quickest():
    found = verdicts(made_up(lambda k, e: bound(k, e) * (1.2 if k == 10 else 1)))
    assert found["Theorem 2"] == "does not hold"


def test_what_the_grid_does_not_have_is_not_tested():
    found = verdicts(made_up(bound, clients=(4, 10)))
    untested = {source for source, verdict in found.items() if verdict == "not tested"}
    assert untested == {"Theorem 3", "Theorem 4"}
    found = verdicts(made_up(bound, clients=(1, 4)))
    untested = {source for source, verdict in found.items() if verdict == "not tested"}
    assert untested == {"Theorem 2", "Remark on Theorem 2", "Theorem 4"}
    found = verdicts(made_up(bound, joules=0.0))
    untested = {source for source, verdict in found.items() if verdict == "not tested"}
    assert untested == {"Theorem 3", "Theorem 4", "Corollary 3", "Corollary 4"}


@pytest.mark.parametrize("setup", SETUPS)
def test_every_grid_has_all_clients_and_one_where_it_speaks_of_one(setup):
    task = read_study(setup).task
    for designs in (DESIGNS, QUICK_DESIGNS):
        assert task.num_clients in designs[setup].clients_per_round
        assert 1 in designs[setup].clients_per_round
