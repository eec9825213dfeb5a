"""A sweep trains each cell once, prices it for whoever asks, and chooses fairly."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace

import pytest

from fedplan import Fleet
from fedplan.core.objective import Objective
from fedplan.errors import FedplanError, InputError
from fedplan.participation import uniform
from fedplan.store import Store
from fedplan.studies.cells import RunSummary, empirical_optimum, make_cells, write_summaries
from fedplan.studies.experiment import build_experiment, make_jobs
from fedplan.studies.grid import Grid, default_grid, read_sweep
from fedplan.studies.sweep import sweep_study

TIME = Objective.weighted(0.0)
SMALL = ("num-clients=6", "rounds=30", "target-loss=1.2", "seeds=3")
GRID = ("clients-per-round=1,4", "local-steps=5,20")


def summary(k, e, seed, time_s, status="target"):
    return RunSummary(
        clients_per_round=k, local_steps=e, seed=seed, status=status, rounds=10, time_s=time_s,
        energy_j=1.0, final_loss=0.5,
    )  # fmt: skip


def test_a_cell_is_the_mean_over_its_seeds():
    cells = make_cells([summary(2, 5, seed, time) for seed, time in enumerate((1, 2, 6))], TIME)
    (cell,) = cells
    assert (cell.seeds, cell.reached, cell.cost, cell.time_s) == (3, 3, 3.0, 3.0)
    assert cell.cost_error == pytest.approx(math.sqrt(7 / 3)) and cell.rounds_sd == 0


def test_a_cell_that_a_seed_missed_costs_infinitely_and_is_last():
    runs = [summary(1, 5, 0, 1.0), summary(1, 5, 1, 9.0, "rounds"), summary(2, 5, 0, 99.0)]
    whole, missed = make_cells([*runs, summary(2, 5, 1, 99.0)], TIME)
    assert (missed.setting, missed.reached, missed.seeds) == ((1, 5), 1, 2)
    assert math.isinf(missed.cost) and missed.time_s == 1.0 and whole.cost == 99.0


def test_the_optimum_is_priced_on_seeds_that_did_not_choose_it():
    chosen = {0: 1.0, 1: 5.0, 2: 1.0, 3: 7.0}
    other = dict.fromkeys(range(4), 2.0)
    runs = [
        summary(k, 5, seed, time)
        for k, times in ((1, chosen), (2, other))
        for seed, time in times.items()
    ]
    best = empirical_optimum(runs, TIME)
    assert (best.setting, best.cost, best.seeds) == ((1, 5), 6.0, 2)
    runs.append(summary(1, 5, 4, 1.0, "rounds"))  # and not one that a seed missed
    runs.append(summary(2, 5, 4, 2.0))
    assert empirical_optimum(runs, TIME).setting == (2, 5)


def test_the_optimum_of_a_sweep_that_was_cut_off_is_of_the_seeds_that_all_cells_have():
    cut_off = [summary(1, 5, 0, 1.0), summary(2, 5, 0, 2.0), summary(2, 5, 1, 7.0)]
    best = empirical_optimum(cut_off, TIME)
    assert (best.setting, best.cost, best.seeds) == ((1, 5), 1.0, 1)
    assert empirical_optimum([summary(1, 5, 0, 1.0), summary(2, 5, 1, 2.0)], TIME) is None


def test_there_is_no_optimum_where_nothing_arrives():
    assert empirical_optimum([summary(1, 5, 0, 1.0, "rounds")], TIME) is None
    assert empirical_optimum([summary(1, 5, 0, 1.0)], TIME).cost == 1.0


def test_jobs_go_seed_by_seed():
    grid = Grid(clients_per_round=(1, 2), local_steps=(5, 9))
    jobs = make_jobs([uniform(*pair) for pair in grid.pairs], range(2))
    assert len(set(jobs)) == 8 and [job.seed for job in jobs] == [0] * 4 + [1] * 4


@pytest.mark.parametrize(
    ("fleet", "clients", "steps"),
    [
        (Fleet(step_time_s=0.5, comm_time_s=40.0, count=100), (1, 3, 6, 16, 40, 100), 20),
        (Fleet(step_time_s=1.0, comm_time_s=0.0, count=3), (1, 2, 3), 1),
        (Fleet(step_time_s=1.0, comm_time_s=1e6), (1,), 250_000),
    ],
)
def test_the_default_grid_spans_the_clients_and_the_balance(fleet, clients, steps):
    grid = default_grid(fleet)
    assert grid.clients_per_round == clients
    assert grid.local_steps == tuple(steps * 2**power for power in range(6))


def test_a_sweep_is_made_once_and_priced_for_any_fleet_and_weight(tmp_path):
    def swept(*words, train=True):
        read = read_sweep("demo", [*SMALL, *GRID, *words])
        experiment = build_experiment(read.study)
        engine = experiment.simulator if train else Refusing()
        with Store(f"sqlite:///{tmp_path}/runs.db") as store:
            counts = []
            result = sweep_study(
                experiment, read.grid(experiment.fleet), store, engine=engine,
                count=lambda *pair: counts.append(pair),
            )  # fmt: skip
        return result, counts

    class Refusing:
        num_clients = 6

        def run_all(self, jobs, *_, **__):
            assert not list(jobs)
            return iter(())

    first, counts = swept()
    assert counts == [(done, 12) for done in range(13)]
    again, counts = swept(train=False)
    assert again.runs == first.runs and again.cells == first.cells and counts == [(12, 12)]
    slower, _ = swept("step-time-s=1.0", "comm-time-s=20.0", train=False)
    assert [r.rounds for r in slower.runs] == [r.rounds for r in first.runs]
    assert all(b.time_s > 2 * a.time_s for a, b in zip(first.runs, slower.runs, strict=True))
    energy, _ = swept("energy-weight=1.0", train=False)
    assert [c.cost for c in energy.cells] == pytest.approx([c.energy_j for c in energy.cells])
    with Store(f"sqlite:///{tmp_path}/runs.db", readonly=True) as store:
        studies = store.studies()
        assert len(studies) == 3 and {study.num_runs for study in studies} == {12}
        assert studies[0].configuration["training"]["clients-per-round"] == [1, 4]
        assert store.find_step(studies[0], "sweep")["best"]["cost"] == first.best.cost


def test_messages_say_what_to_change(tmp_path):
    def message(*words):
        read = read_sweep("demo", [*SMALL, "clients-per-round=3", *words])
        experiment = build_experiment(read.study)
        with Store(f"sqlite:///{tmp_path}/runs.db") as store:
            return sweep_study(experiment, read.grid(experiment.fleet), store).message

    steps = "local-steps=10"
    assert "Allow more rounds (now 2), or raise target-loss" in message("rounds=2", steps)
    assert "lower learning-rate (now 1e+38)" in message("learning-rate=1e38", steps)
    two = message("seeds=2", steps)
    assert re.search(
        r"by half of the seeds\. By the other half, .* costs [\d.]+ s on average\.", two
    )
    alone = message("seeds=1", steps)
    assert "add seeds" in alone and "1 of 1 settings reached the loss 1.2." in alone
    for words in ("smallest clients-per-round", "smallest local-steps"):
        assert words in alone
    with pytest.raises(FedplanError, match=r"before training is at the target already.*\(now 99\)"):
        message("target-loss=99", steps)
    assert "largest local-steps tried: add larger" in message(
        "target-loss=0.4", "clients-per-round=4", "local-steps=1,5"
    )


def test_what_costs_nothing_is_refused(tmp_path):
    silent = ["step-energy-j=0", "step-energy-sd-j=0", "comm-energy-j=0", "comm-energy-sd-j=0"]
    experiment = build_experiment(read_sweep("demo", [*silent, "energy-weight=1.0"]).study)
    grid = Grid(clients_per_round=(1,), local_steps=(1,))
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        with pytest.raises(InputError, match="nothing costs anything"):
            sweep_study(experiment, grid, store)
        with pytest.raises(InputError, match="needs target-loss"):
            sweep_study(replace(experiment, fleet=None), grid, store)


def test_a_file_of_runs_keeps_every_digit_and_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "runs.csv"
    runs = [summary(1, 5, 0, 1 / 3), replace(summary(2, 5, 1, 7.0, "diverged"), final_loss=None)]
    write_summaries(path, runs)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert ",".join(rows[0]) == (
        "clients_per_round,local_steps,seed,status,rounds,time_s,energy_j,final_loss,"
        "participation,groups,taken_part"
    )
    assert float(rows[0]["time_s"]) == 1 / 3 and rows[1]["final_loss"] == ""
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        write_summaries(path, (1 / 0 for _ in runs))
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match=r"cannot be written .*Give the path of a \.csv file"):
        write_summaries(tmp_path / "nowhere" / "runs.csv", runs)


def test_every_problem_of_a_request_is_said_at_once(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[task]\ndata = "synthetic"\nnum-clients = 8\n[training]\nlearning-rate = -1.0\n'
    )
    words = ["training.clients-per-round=1,x,9", "local-steps=", "sedes=3"]
    with pytest.raises(InputError) as caught:
        read_sweep(str(path), words)
    text = str(caught.value)
    for part in (
        "but got 'x' in clients-per-round=1,x,9", "but got '' in local-steps=",
        "clients-per-round=9, num-clients=8", "[fleet] is missing", "target-loss is missing",
        "learning-rate > 0", "Did you mean seeds?",
    ):  # fmt: skip
        assert part in text
    assert len(caught.value.problems) == 7


@pytest.mark.parametrize("value", ["0", "-3", "2.5", "1,,2", ",", "1e3", "[1, 2]"])
def test_lists_are_whole_numbers_from_1_on(value):
    with pytest.raises(InputError, match="must be whole numbers from 1 on"):
        read_sweep("demo", [f"local-steps={value}"])


def test_a_target_of_0_is_none():
    with pytest.raises(InputError, match="target-loss is missing"):
        read_sweep("demo", ["target-loss=0"])
