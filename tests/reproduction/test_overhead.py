"""Equation 26: both sides agree on the paper's own bound, and differ where training does."""

from __future__ import annotations

import math

import pytest

from fedplan_reproduction.overhead import overheads
from fedplan_reproduction.table1 import Cell, Row
from fedplan_reproduction.weights import FEDPLAN, PAPER, Priced

A0, B0, BEST, UPPER, LOWER, TARGET, N = 400.0, 2.0, 0.1, 0.6, 0.3, 0.15, 10


def rounds(clients, steps, loss):
    """By the paper's bound, Equation 15, held with equality."""
    sampling = (N - clients) / (clients * (N - 1))
    return (A0 + B0 * (1 + sampling) * steps**2) / (steps * (loss - BEST))


def row(clients, steps, never=False):
    found = (None,) if never else (rounds(clients, steps, LOWER),)
    upper = Cell(loss=UPPER, published=None, found=(rounds(clients, steps, UPPER),))
    lower = Cell(loss=LOWER, published=None, found=found)
    return Row(clients_per_round=clients, local_steps=steps, seeds=(0,), upper=upper, lower=lower)


def plan(clients, steps, taken, method=PAPER):
    return Priced(
        energy_weight=0.0, method=method, clients_per_round=clients, local_steps=steps, cost=1.0,
        error=0.0, time_s=1.0, energy_j=1.0, relative_cost=1.0, rounds=taken,
    )  # fmt: skip


def both_sides(table1, priced, best=BEST):
    return overheads(table1, priced, num_clients=N, target_loss=TARGET, best_loss=best)


TABLE = [row(10, 5), row(5, 20), row(2, 40)]


def test_both_sides_are_the_same_where_rounds_are_those_of_the_bound():
    (found,) = both_sides(TABLE, [plan(4, 15, rounds(4, 15, TARGET)), plan(3, 9, 5.0, FEDPLAN)])
    pilots = sum(r.lower.found[0] * r.local_steps for r in TABLE)
    assert found.pilot_iterations == pytest.approx(pilots)
    assert found.measured == pytest.approx(pilots / (rounds(4, 15, TARGET) * 15))
    assert found.predicted == pytest.approx(found.measured, rel=1e-9)


def test_training_that_takes_twice_the_rounds_halves_the_left_side_alone():
    (exact,) = both_sides(TABLE, [plan(4, 15, rounds(4, 15, TARGET))])
    (slow,) = both_sides(TABLE, [plan(4, 15, 2 * rounds(4, 15, TARGET))])
    assert slow.measured == pytest.approx(exact.measured / 2)
    assert slow.predicted == exact.predicted


def test_a_pilot_a_plan_or_a_target_out_of_reach_has_no_overhead():
    arrives = plan(4, 15, 100.0)
    assert both_sides([*TABLE, row(1, 3, never=True)], [arrives]) == []
    assert both_sides(TABLE, [plan(4, 15, math.inf)]) == []
    assert both_sides(TABLE, [arrives], best=TARGET) == []
