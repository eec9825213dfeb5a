"""Runs to store, and what is true of any store; light, for processes are started with it."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from children import start

from fedplan.core.records import Observation, RoundRecord, RunRecord
from fedplan.participation import uniform

EXPERIMENT = {"task": {"data": "synthetic", "alpha": 1.0}, "training": {"batch_size": 64}}


def make_run(seed=0, rounds=3, clients=2, steps=5, status="rounds"):
    """A run that its arguments determine; a longer one begins like the shorter."""
    draw = random.Random(f"{seed} {clients} {steps}")
    setting = uniform(clients, steps)
    records = [
        RoundRecord(
            round=number,
            loss=draw.random() if number % 2 == 0 else None,
            accuracy=draw.random() if number % 2 == 0 else None,
            cohort=tuple(draw.sample(range(100), clients)) if number else (),
            seconds=draw.random(),
            joules=draw.random(),
            shares=(1 / clients,) * clients if number else (),
            setting=setting if number else None,
        )
        for number in range(rounds + 1)
    ]
    return RunRecord(setting=setting, seed=seed, status=status, rounds=tuple(records))


def observe(client, steps, problem=""):
    """What a client of a live study took: 0.1 s more a step than the client before it."""
    train = 0.5 + (0.1 + 0.1 * client) * steps
    return Observation(
        client=client, local_steps=steps, train_seconds=train, round_trip_seconds=train + 2,
        joules=3.0 + 0.25 * steps, problem=problem,
    )  # fmt: skip


def save_live_study(store):
    """A live study of three clients, the last of which has never answered."""
    from fedplan.studies.devices import save_names

    start = RoundRecord(round=0, loss=2.0, accuracy=None, cohort=(), seconds=0.0, joules=0.0)
    live = store.save_study("digits", {}, {"engine": "flower"})
    save_names(store, live, ["phone-a", "phone-b", "phone-c"])
    earlier = (observe(client, steps) for client in (0, 1) for steps in (2, 10))
    silent = observe(2, 20, problem="no answer within 60 s")
    seen = (*earlier, observe(0, 20), observe(1, 20), silent)
    first = RoundRecord(
        round=1, loss=1.0, accuracy=None, cohort=(0, 1), seconds=5.0, joules=16.0,
        observations=seen,
    )  # fmt: skip
    for clients in (1, 2):  # the second went on from the first
        run = RunRecord(
            setting=uniform(clients, 20), seed=0, status="rounds", rounds=(start, first)
        )
        store.save_run({"engine": "flower"}, run)


def check_integrity(path):
    """The file is sound, and no part of a run is without the rest."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        if connection.execute("PRAGMA user_version").fetchone() == (0,):
            assert connection.execute("SELECT * FROM sqlite_schema").fetchall() == []
            return  # killed before the tables were made: a file is a whole store, or empty
        for table in ("rounds", "cohorts"):
            query = f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT id FROM runs)"
            assert connection.execute(query).fetchone() == (0,)


def run_python(code, *words, **options):
    """Start a process that can import this module."""
    return start(
        [sys.executable, "-c", code, *map(str, words)],
        env={
            **os.environ,
            "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}",
        },
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
