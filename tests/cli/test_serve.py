"""`fedplan serve` as a command: where it listens, what it refuses, how it ends."""

from __future__ import annotations

import socket

import pytest
from served import end_server, start_server


def test_a_taken_port_is_said_with_a_remedy(fedplan):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = fedplan("serve", "--no-open", "--port", port)
    assert result.code == 1
    assert f"port {port} cannot be used" in result.err and "--port" in result.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--token", "a-long-enough-token"], "--token goes with --public"),
        (["--public", "--token", "short"], "at least 16 characters"),
        (["--store", "fedplan.db"], "Write sqlite:///fedplan.db"),
        (["--fleet", "missing.csv", "--ratio", "3750"], "no such file"),
        (["--fleet", "missing.csv"], "no such file"),
        (["--port", "70000"], "--port"),
    ],
)
def test_what_is_refused_before_anything_listens(fedplan, words, reason):
    result = fedplan("serve", "--no-open", *words)
    assert result.code == 2
    assert reason in result.err


def test_files_of_the_command_line_are_what_the_page_begins_with(tmp_path, fleet_csv, pilots_csv):
    made = start_server(tmp_path, "--fleet", str(fleet_csv), "--pilots", str(pilots_csv))
    try:
        shown = made.plan(energy_weight=0.4).json
        assert shown["method"] == "robust" and shown["num_clients"] == 100
        assert f"--fleet {fleet_csv} --pilots {pilots_csv}" in shown["command"]
        assert made.ask("GET", "/api/start").json["has_pilots"]
    finally:
        assert end_server(made) == 0  # Ctrl-C


def test_a_bound_of_the_command_line(tmp_path, fleet_csv):
    made = start_server(
        tmp_path, "--fleet", str(fleet_csv), "--bound", "a0=3750,b0=1,c0=26", "--target-gap", "0.5"
    )
    try:
        shown = made.plan(energy_weight=0.4).json
        assert "--bound a0=3750,b0=1,c0=26 --target-gap 0.5" in shown["command"]
        assert "target_gap=0.5" in shown["python"]
    finally:
        assert end_server(made) == 0


def test_a_fleet_alone_is_planned_by_turns(tmp_path, fedplan):
    path = tmp_path / "fleet.csv"
    path.write_text(
        "step_time_s,comm_time_s,step_energy_j,comm_energy_j\n"
        + "".join(f"{0.1 * n},2,0.1,0.2\n" for n in range(1, 13))
    )
    printed = fedplan("plan", "--fleet", path, "--energy-weight", 0.4, "--format", "json").json
    made = start_server(tmp_path, "--fleet", str(path))
    try:
        assert not made.ask("GET", "/api/start").json["is_measured"]
        shown = made.plan(energy_weight=0.4).json
        assert shown["participation"]["law"] == "turns"
        assert shown["rows"][0]["cost"] == printed["cost"]
    finally:
        assert end_server(made) == 0
