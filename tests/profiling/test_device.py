"""A device's row in a fleet.csv: added, replaced, and nothing else touched."""

from __future__ import annotations

import pytest

from fedplan import read_fleet
from fedplan.errors import InputError
from fedplan.profiling import write_row

ROW = {"step_time_s": 0.02, "comm_time_s": 0.9, "step_energy_j": 0.06, "comm_energy_j": 1.1}
HEADER = "device,step_time_s,comm_time_s,step_energy_j,comm_energy_j,count"


def test_rows_are_added_and_replaced(tmp_path):
    path = tmp_path / "fleet.csv"
    assert write_row(path, "pi-4", ROW) is False
    assert write_row(path, "pixel, 7", ROW | {"step_time_s": 0.5}) is False
    assert write_row(path, "pi-4", ROW | {"comm_energy_j": 0.0}) is True
    fleet = read_fleet(path)
    assert fleet.device == ("pi-4", "pixel, 7")
    assert fleet.step_time_s.tolist() == [0.02, 0.5]
    assert fleet.comm_energy_j.tolist() == [0.0, 1.1]
    assert [file.name for file in tmp_path.iterdir()] == ["fleet.csv"]


def test_other_rows_and_counts_stay(tmp_path):
    path = tmp_path / "fleet.csv"
    path.write_text(f"{HEADER}\na,1,2,3,4,400\nb,5,6,7,8,2\n")
    assert write_row(path, "a", ROW) is True and write_row(path, "c", ROW) is False
    fleet = read_fleet(path)
    assert fleet.count.tolist() == [400, 2, 1] and fleet.comm_time_s.tolist() == [0.9, 6.0, 0.9]


def test_samples_stay(tmp_path):
    path = tmp_path / "fleet.csv"
    path.write_text(f"{HEADER},samples\na,1,2,3,4,400,10\nb,5,6,7,8,2,30\n")
    assert write_row(path, "a", ROW) is True and write_row(path, "c", ROW) is False
    assert read_fleet(path).samples.tolist() == [10, 30, 20]


def test_a_fleet_without_names_keeps_its_rows(tmp_path):
    path = tmp_path / "fleet.csv"
    path.write_text("step_time_s,comm_time_s,step_energy_j,comm_energy_j\n1,2,3,4\n")
    assert write_row(path, "a", ROW) is False
    assert read_fleet(path).device == ("", "a")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("name,age\nBob,7\n", "must name every column"),
        ("", "must not be empty"),
        (f"{HEADER}\na,1,2,3,4,1\na,1,2,3,4,1\n", "stands in 2 rows"),
        (f"{HEADER}\na,-1,2,3,4,1\n", "line 2"),
    ],
)
def test_what_is_no_fleet_is_left_alone(tmp_path, text, word):
    path = tmp_path / "fleet.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=word):
        write_row(path, "a", ROW)
    assert path.read_text() == text


@pytest.mark.parametrize("device", ["", " a", "a\n", "a\0", "a\nb"])
def test_a_name_is_one_line(tmp_path, device):
    with pytest.raises(InputError, match="--device"):
        write_row(tmp_path / "fleet.csv", device, ROW)


def test_a_file_must_be_a_csv_in_a_folder(tmp_path):
    for path in (tmp_path / "fleet.txt", tmp_path / "no" / "fleet.csv"):
        with pytest.raises(InputError):
            write_row(path, "a", ROW)
