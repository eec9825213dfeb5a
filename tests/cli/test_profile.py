"""`fedplan profile`: its JSON, its table, its file, and its companion."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from children import start

from fedplan import read_fleet

COMMAND = [sys.executable, "-m", "fedplan.cli", "profile"]
CONTRACT = {
    "success", "device", "study", "client", "num_parameters", "model_bytes", "step_time_s",
    "fixed_time_s", "comm_time_s", "comm_source", "step_energy_j", "comm_energy_j", "meter",
    "energy_note", "num_calls", "local_steps", "num_exchanges", "processor_share", "cautions",
    "output", "replaced", "message",
}  # fmt: skip
QUICK = ("--seconds", "0.2", "--meter", "none")


def test_json_and_file_agree(fedplan, tmp_path):
    path = tmp_path / "fleet.csv"
    answer = fedplan(
        "profile", "demo", "num-clients=5", "--seconds", 0.2, "--meter", "constant:4.5",
        "--idle-watts", 1.5, "--bandwidth-mbps", 20, "-o", path, "--device", "pi", "--format",
        "json",
    )  # fmt: skip
    assert answer.code == 0 and answer.json.keys() == CONTRACT and answer.json["success"]
    got = answer.json
    assert got["model_bytes"] == 4 * got["num_parameters"] == 4 * 610
    comm = 2 * 2440 * 8 / 20e6
    assert got["comm_time_s"] == {"value": comm, "low": comm, "high": comm}
    assert got["comm_source"] == "bandwidth" and got["num_exchanges"] is None
    step = got["step_time_s"]
    assert 0 < step["low"] <= step["value"] <= step["high"]
    assert got["step_energy_j"]["value"] == pytest.approx(3.0 * step["value"], rel=0.01)
    assert got["comm_energy_j"]["value"] == pytest.approx(3.0 * comm, rel=0.01)
    assert got["meter"]["is_measurement"] is False and got["meter"]["idle_watts"] == 1.5
    assert got["meter"]["training_watts"] == pytest.approx(4.5, rel=0.01)
    fleet = read_fleet(path)
    assert fleet.device == ("pi",) and got["replaced"] is False
    for name in ("step_time_s", "comm_time_s", "step_energy_j", "comm_energy_j"):
        assert getattr(fleet, name).tolist() == [got[name]["value"]]


def test_a_device_profiled_again_replaces_its_row_and_plans_can_be_made(
    fedplan, tmp_path, pilots_csv
):
    path = tmp_path / "fleet.csv"
    for device, comm in (("a", 2), ("b", 3), ("a", 1)):
        answer = fedplan("profile", *QUICK, "--comm-time-s", comm, "-o", path, "--device", device)
        assert answer.code == 0
    assert "Replaced the row of a in" in answer.err
    fleet = read_fleet(path)
    assert fleet.device == ("a", "b") and fleet.comm_time_s.tolist() == [1.0, 3.0]
    assert fedplan("plan", "--fleet", path, "--ratio", 100).code == 0


def test_the_table_says_what_is_measured_and_what_is_not(fedplan):
    answer = fedplan("profile", "setup1", "data=mnist-mini", "--seconds", 1, "--meter", "none")
    assert answer.code == 0
    words = " ".join(answer.out.split())
    assert "7,850 parameters, 31,400 bytes" in words and "model exchange unknown" in words
    assert "energy of a step unknown" in words and "Energy is not measured" in words
    assert "in one thread of this machine" in words and "300 samples, the median of 20" in words
    assert fedplan("profile", "num-clients=6", *QUICK, "-q").err == ""


def test_a_noisy_measurement_warns_and_says_what_to_do(fedplan):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def unsteady():
            peer, _ = listener.accept()
            with peer, peer.makefile("rb") as incoming:
                for number in range(100):
                    request = incoming.read(16)
                    if len(request) < 16:
                        return
                    size = int.from_bytes(request[8:], "big")
                    time.sleep(0.04 * (number % 3))
                    peer.sendall(b"\x06" + bytes(size))
                    incoming.read(size)
                    peer.sendall(b"\x06")

        thread = threading.Thread(target=unsteady, daemon=True)
        thread.start()
        address = f"127.0.0.1:{port}"
        answer = fedplan("profile", *QUICK, "--server", address, "--format", "json")
        thread.join(30)
    assert answer.json["comm_source"] == "measured" and answer.json["num_exchanges"] >= 5
    cautions = " ".join(answer.json["cautions"])
    assert "an exchange is uncertain by" in cautions and "--seconds 10" in cautions


def test_a_device_and_its_server(tmp_path):
    with start(
        [*COMMAND, "--listen", "127.0.0.1:0", "--format", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        try:
            lines = iter(server.stdout.readline, "")
            text = next(lines)
            while not text.endswith("}\n"):
                text += next(lines)
            address = json.loads(text)["listening"]
            path = tmp_path / "fleet.csv"
            device = subprocess.run(
                [*COMMAND, *QUICK, "--server", address, "-o", path, "--format", "json", "-q"],
                capture_output=True, text=True, check=True, timeout=120,
            )  # fmt: skip
            answer = json.loads(device.stdout)
            assert answer["num_exchanges"] >= 5 and device.stderr == ""
            assert read_fleet(path).device == (socket.gethostname(),)
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(300) == 130
        assert "127.0.0.1" in server.stderr.read()


def test_every_problem_is_named_at_once(fedplan, tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text("milk,eggs\n1,2\n")
    answer = fedplan(
        "profile", "nothing", "--seconds", "-1", "--server", "x:99999", "--comm-time-s", "-3",
        "-o", path, "--meter", "wind", "--idle-watts", "nan", "--allow-network", "--format", "json",
    )  # fmt: skip
    assert answer.code == 2 and not answer.json["success"]
    problems = [problem["message"] for problem in answer.json["error"]["problems"]]
    for word in (
        "no such study", "seconds", "--server must be", "at most one of", "--comm-time-s must",
        "must name every column of a fleet file", "--meter must be", "--idle-watts", "--listen",
    ):  # fmt: skip
        assert any(word in problem for problem in problems), word
    assert path.read_text() == "milk,eggs\n1,2\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "fleet.csv"), "needs the time of a model exchange"),
        (("--bandwidth-mbps", "0"), "--bandwidth-mbps must be"),
        (("--meter", "none", "--idle-watts", "2"), "there is no meter"),
        (("--listen", "--meter", "none", "--comm-time-s", "1"), "does not go with --listen"),
        (("--listen", "0.0.0.0:0"), "Add --allow-network if that is meant"),
        (("--listen", "pi:x"), "--listen must be HOST:PORT"),
        (("learning-rte=1",), "Did you mean learning-rate?"),
    ],
)
def test_wrong_requests(fedplan, words, message):
    answer = fedplan("profile", *words)
    assert answer.code == 2 and message in answer.err


def test_no_server_is_said_before_training_is_measured(fedplan):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    answer = fedplan(
        "profile", "--seconds", 100, "--meter", "none", "--server", f"127.0.0.1:{port}"
    )
    assert answer.code == 1 and "Start `fedplan profile --listen` there" in answer.err
