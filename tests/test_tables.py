"""fleet.csv and pilots.csv: what is read, what is refused and where, and the way back to disk."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan.convergence.pilots import Pilot
from fedplan.core.fleet import QUANTITIES, Fleet
from fedplan.errors import InputError
from fedplan.tables import read_fleet, read_pilots, write_fleet

FLEET = "step_time_s,comm_time_s,step_energy_j,comm_energy_j"
PILOTS = "clients_per_round,local_steps,upper_loss,lower_loss,rounds_to_upper,rounds_to_lower"
PILOT = {
    "clients_per_round": 5,
    "local_steps": 10,
    "upper_loss": 1.2,
    "lower_loss": 0.9,
    "rounds_to_upper": 12.0,
    "rounds_to_lower": 20.5,
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables") / "given.csv"


def put(file: Path, content: str | bytes) -> Path:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def refused(read, path) -> list:
    with pytest.raises(InputError) as caught:
        read(path)
    assert all(problem.source == Path(path).name for problem in caught.value.problems)
    return list(caught.value.problems)


def same(one: Fleet, other: Fleet) -> bool:
    columns = (*QUANTITIES, "count")
    return one.device == other.device and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in columns
    )


def test_reads_a_fleet(file):
    content = "count,comm_time_s,step_time_s,comm_energy_j,device,step_energy_j\n"
    content += "2,0.5,0.1,4,phone,3\n1e1,1,2,0,,0\n"
    fleet = read_fleet(put(file, content))
    wanted = Fleet(
        step_time_s=[0.1, 2],
        comm_time_s=[0.5, 1],
        step_energy_j=[3, 0],
        comm_energy_j=[4, 0],
        count=[2, 10],
        device=["phone", ""],
    )
    assert same(fleet, wanted)
    assert len(fleet) == 12


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"\ufeff{FLEET}\n1,2,3,4\n5,6,0,0\n", id="byte order mark"),
        pytest.param(f"{FLEET}\r\n1,2,3,4\r\n5,6,0,0\r\n", id="Windows line ends"),
        pytest.param(f"{FLEET}\r1,2,3,4\r5,6,0,0\r", id="old Mac line ends"),
        pytest.param(f"{FLEET}\n1,2,3,4\n5,6,0,0", id="no final line end"),
        pytest.param(f"\n\n{FLEET}\n\n1,2,3,4\n  \n5,6,0,0\n\n\n", id="blank lines"),
        pytest.param(f"{FLEET}\n1,2,3,4\n,,,\n5,6,0,0\n , ,,\n", id="rows of empty cells"),
        pytest.param(f"{FLEET}\n1,2,3,4\n5,6,0,0\n,,,,,,\n", id="a longer row of empty cells"),
        pytest.param(FLEET.replace(",", " ,\t") + "\n 1 , 2,3\t,4 \n5,6,0,0\n", id="spaces around"),
        pytest.param(
            '"step_time_s" , "comm_time_s",step_energy_j,"comm_energy_j"\n"1","2" , "3",4\n5,6,0,0',
            id="quotes",
        ),
        pytest.param(f"{FLEET}\n+1.,.2e1,3E0,4e-0\n005,6,0,-0\n", id="every way to write a number"),
    ],
)
def test_reads_what_spreadsheets_and_people_write(file, content):
    wanted = Fleet(
        step_time_s=[1, 5], comm_time_s=[2, 6], step_energy_j=[3, 0], comm_energy_j=[4, 0]
    )
    assert same(read_fleet(put(file, content)), wanted)


def test_names_with_commas_quotes_and_any_script_are_read(file):
    content = f'{FLEET},device\n1,1,1,1,"a, ""b"""\n1,1,1,1, 電話 é \n'
    assert read_fleet(put(file, content)).device == ('a, "b"', "電話 é")


def test_a_device_column_without_a_name_in_it_says_nothing(file):
    assert read_fleet(put(file, f"device,{FLEET}\n,1,1,1,1\n")).device is None


def test_reads_pilots(file):
    content = f"{PILOTS},seed\n5,10,1.2,0.9,12,20.5,\n5.0,10,1.2,0.9,12,20.5,9007199254740993\n"
    first, second = read_pilots(put(file, content))
    assert first == Pilot(**PILOT)
    assert second == Pilot(**PILOT, seed=9007199254740993)
    assert type(second.clients_per_round) is int
    assert read_pilots(put(file, f"{PILOTS}\n5,10,1.2,0.9,12,20.5\n")) == [first]


POSITIVE = "must be a finite number > 0, but got "
NOT_NEGATIVE = "must be a finite number >= 0, but got "
WHOLE = "must be a positive integer (at most 10^12), but got "
NOT_TEXT = "is not UTF-8 text (byte 0x"
RENAME = "Did you mean "


@pytest.mark.parametrize(
    ("content", "line", "column", "pieces"),
    [
        (f"{FLEET}\n1,1,1,1\nabc,1,1,1\n", 3, "step_time_s", [f"{POSITIVE}'abc'."]),
        (f"{FLEET}\n\n\n1,,1,1\n", 4, "comm_time_s", [f"{NOT_NEGATIVE}''."]),
        (f"{FLEET}\r\n\r\n1,1,1,x\r\n", 3, "comm_energy_j", [f"{NOT_NEGATIVE}'x'."]),
        (f"{FLEET}\r1,1,1,x\r", 2, "comm_energy_j", [f"{NOT_NEGATIVE}'x'."]),
        (f"{FLEET}\n1,1,,1\n", 2, "step_energy_j", [f"{NOT_NEGATIVE}''.", "0 where it is unknown"]),
        ("1,2,3,4\n5,6,7,8\n", 1, None, ["must name every column", "Found: '1', '2', '3', '4'"]),
        (f"{FLEET}\n0,1,1,1\n", 2, "step_time_s", [f"{POSITIVE}'0'."]),
        (f"{FLEET}\n1,-1,1,1\n", 2, "comm_time_s", [f"{NOT_NEGATIVE}'-1'."]),
        (f"{FLEET}\n1,1,nan,1\n", 2, "step_energy_j", [f"{NOT_NEGATIVE}'nan'."]),
        (f"{FLEET}\n1,1,1,Infinity\n", 2, "comm_energy_j", [f"{NOT_NEGATIVE}'Infinity'."]),
        (f"{FLEET}\n1e999,1,1,1\n", 2, "step_time_s", [f"{POSITIVE}'1e999'."]),
        (
            f"{FLEET}\n1e99,1,1,1\n",
            2,
            "step_time_s",
            [POSITIVE, "from 1e-40 to 1e+40 are accepted"],
        ),
        (f"{FLEET}\n1_000,1,1,1\n", 2, "step_time_s", [f"{POSITIVE}'1_000'."]),
        (f"{FLEET}\n0x1p3,1,1,1\n", 2, "step_time_s", [f"{POSITIVE}'0x1p3'."]),
        (f"{FLEET}\n1.5s,1,1,1\n", 2, "step_time_s", [f"{POSITIVE}'1.5s'."]),
        (f"{FLEET}\n\u0661,1,1,1\n", 2, "step_time_s", [POSITIVE]),
        (f'{FLEET}\n"0,1",1,1,1\n', 2, "step_time_s", [f"{POSITIVE}'0,1'.", "with a point"]),
        (f"{FLEET},count\n1,1,1,1,2.5\n", 2, "count", [f"{WHOLE}'2.5'."]),
        (f"{FLEET},count\n1,1,1,1,0\n", 2, "count", [f"{WHOLE}'0'."]),
        (f"{FLEET},count\n1,1,1,1,\n", 2, "count", [f"{WHOLE}''."]),
        (f"{FLEET},count\n1,1,1,1,1e13\n", 2, "count", [f"{WHOLE}'1e13'."]),
        (f"{FLEET}\n0,5,1,1,1\n", 2, None, ["has 5 fields", "header has 4", "with a point"]),
        (f"{FLEET}\n1,1,1\n", 2, None, ["has 3 fields", "header has 4"]),
        (f'{FLEET},device\n1,1,1,1,"a\n1,1,1,1,b\n', 2, None, ["quote", "must be closed"]),
        (f"{FLEET},device\n1,1,1,1,a\0b\n", 2, None, [f"{NOT_TEXT}00)", "CSV UTF-8"]),
        (f"{FLEET},device\n1,1,1,1,é\n".encode("latin-1"), 2, None, [f"{NOT_TEXT}e9)"]),
        (f"{FLEET}\n1,1,1,1\n".encode("utf-16"), 1, None, [NOT_TEXT, "CSV UTF-8", "UTF-16"]),
        (f"{FLEET}\n1,1,1,1\n".encode("utf-16-le"), 1, None, [f"{NOT_TEXT}00)"]),
        (b"\x80\x81\xff\x00", 1, None, [f"{NOT_TEXT}80)"]),
        ("", None, None, ["must not be empty", FLEET]),
        ("\ufeff \n\n,,\n", None, None, ["must not be empty", FLEET]),
        (f"{FLEET}\n", None, None, ["at least one row"]),
        (f"\n{FLEET}\n,,,\n\n", None, None, ["at least one row"]),
        (FLEET.replace(",", ";") + "\n1;1;1;1\n", 1, None, ["commas", "semicolons"]),
        (FLEET.replace(",", "\t") + "\n1\t1\t1\t1\n", 1, None, ["commas", "tabs"]),
        ("step_time_s,comm_time_s\n1,1\n", 1, None, ["Missing: step_energy_j, comm_energy_j. "]),
        (f"{FLEET},{FLEET[:11]}\n1,1,1,1,1\n", 1, "step_time_s", ["once", "2 times"]),
        (f"{FLEET},devise\n1,1,1,1,a\n", 1, "devise", ["not a column", f"{RENAME}device?"]),
        (f"{FLEET},Count\n1,1,1,1,1\n", 1, "Count", ["not a column", f"{RENAME}count?"]),
        (f"{FLEET},colour\n1,1,1,1,1\n", 1, "colour", ["not a column of a fleet file", "Remove"]),
        (f"{FLEET},\n1,1,1,1,\n", 1, "(no name)", ["not a column", "Remove"]),
        (f"{PILOTS}\n5,10,1.2,0.9,12,20\n", 1, None, ["Missing: step", "looks like a pilots file"]),
    ],
)
def test_a_wrong_fleet_is_refused_at_its_line_and_column(file, content, line, column, pieces):
    [problem] = refused(read_fleet, put(file, content))
    assert (problem.line, problem.column) == (line, column)
    for piece in pieces:
        assert piece in problem.message


COUNT = "must be an integer >= 1 (and at most 10^12), but got "


@pytest.mark.parametrize(
    ("row", "column", "pieces"),
    [
        ("0,10,1.2,0.9,12,20,1", "clients_per_round", [f"{COUNT}0."]),
        ("x,10,1.2,0.9,12,20,1", "clients_per_round", [f"{COUNT}'x'."]),
        ("5,2.5,1.2,0.9,12,20,1", "local_steps", [f"{COUNT}2.5."]),
        ("5,1e13,1.2,0.9,12,20,1", "local_steps", [COUNT]),
        ("5,10,inf,0.9,12,20,1", "upper_loss", ["must be a finite number, but got 'inf'."]),
        ("5,10,1.2,,12,20,1", "lower_loss", ["must be a finite number, but got ''."]),
        ("5,10,1.2,0.9,-1,20,1", "rounds_to_upper", [f"{NOT_NEGATIVE}-1.0."]),
        ("5,10,1.2,0.9,12,1e400,1", "rounds_to_lower", [f"{NOT_NEGATIVE}'1e400'."]),
        ("5,10,0.9,1.2,12,20,1", "lower_loss", ["`lower_loss < upper_loss` must hold", "=1.2"]),
        ("5,10,1.2,0.9,20,20,1", "rounds_to_upper", ["`rounds_to_upper < rounds_to_lower` must"]),
        ("5,10,1.2,0.9,20,20,1", "rounds_to_upper", ["Set the two losses further apart."]),
        ("5,10,1.2,0.9,20,12,1", "rounds_to_upper", ["Swap them: the upper loss is reached first"]),
        ("5,10,1.2,1.2,12,20,1", "lower_loss", ["Set the two losses further apart."]),
        ('5,10,1.2,"0,9",12,20,1', "lower_loss", ["but got '0,9'. Write decimals with a point"]),
        ("5,10,1.2,0.9,12,20,1", None, ["repeats line 2", "Remove it"]),
        ("5,10,1.2,0.9,12,20,1.5", "seed", ["must be an integer, or left out, but got 1.5."]),
        ("5,10,1.2,0.9,12,20,a", "seed", ["must be an integer, or left out, but got 'a'."]),
        ("5,10,1.2,0.9,12,20", None, ["has 6 fields, but the header has 7"]),
    ],
)
def test_a_wrong_pilot_is_refused_at_its_line_and_column(file, row, column, pieces):
    content = f"{PILOTS},seed\n5,10,1.2,0.9,12,20,1\n{row}\n"
    [problem] = refused(read_pilots, put(file, content))
    assert (problem.line, problem.column) == (3, column)
    for piece in pieces:
        assert piece in problem.message


def test_equal_devices_are_a_fleet_and_equal_pilots_with_other_seeds_are_pilots(file):
    assert len(read_fleet(put(file, f"{FLEET},device\n" + "1,1,1,1,pi\n" * 2))) == 2
    rows = "5,10,1.2,0.9,12,20,1\n5,10,1.2,0.9,12,20,2\n"
    assert len(read_pilots(put(file, f"{PILOTS},seed\n{rows}"))) == 2


def test_a_fleet_given_as_pilots_is_recognised(file):
    [problem] = refused(read_pilots, put(file, f"{FLEET}\n1,1,1,1\n"))
    assert "looks like a fleet file" in problem.message


def test_a_misspelt_column_is_named_with_the_right_one(file):
    content = "steptime_s,comm_time,step_energy_j,comm_energy_j\n1,1,1,1\n"
    missing, *unknown = refused(read_fleet, put(file, content))
    assert "Missing: step_time_s, comm_time_s. Found: 'steptime_s', 'comm_time'" in missing.message
    assert [(p.column, p.message.split()[-1]) for p in unknown] == [
        ("steptime_s", "step_time_s?"),
        ("comm_time", "comm_time_s?"),
    ]


def test_every_problem_is_reported_at_once_in_the_order_of_the_file(file):
    content = f"{FLEET},count\n0,1,-1,1,0\n1,1,1,1,1\n1,1\n\n1,nan,1,x,1\n1,1,1,1,1,1\n"
    problems = refused(read_fleet, put(file, content))
    places = [(problem.line, problem.column) for problem in problems]
    assert places == [
        (2, "step_time_s"),
        (2, "step_energy_j"),
        (2, "count"),
        (4, None),
        (6, "comm_time_s"),
        (6, "comm_energy_j"),
        (7, None),
    ]
    rows = "0,0,1,2,-1,-1\n5,10,1.2,0.9,12,20\n5,10,1,x,9,9\n"
    problems = refused(read_pilots, put(file, f"{PILOTS}\n{rows}"))
    assert [problem.line for problem in problems] == [2, 2, 2, 2, 2, 4, 4]


def test_reading_stops_after_fifty_problems_and_says_so(file):
    rows = "0,1,1,1\n1,1\n" * 1000
    *problems, last = refused(read_fleet, put(file, f"{FLEET}\n{rows}"))
    assert [problem.line for problem in problems] == list(range(2, 52))
    assert "reading stopped here, after 50 problems" in last.message
    assert last.line == 51
    names = ",".join(f"column{number}" for number in range(1000))
    assert len(refused(read_fleet, put(file, f"{FLEET},{names}\n"))) == 51
    assert len(refused(read_pilots, put(file, f"{PILOTS}\n" + "x,1,2,1,1,2\n" * 99))) == 51


@pytest.mark.parametrize("length", [100_001, 10**7])
def test_a_line_too_long_for_a_table_is_refused(file, length):
    for content, line in (("1" * length, 1), (f"{FLEET}\n1,1,1,1\n1,1,1," + "1" * length, 3)):
        [problem] = refused(read_fleet, put(file, content))
        assert problem.line == line
        assert "at most 100,000 characters" in problem.message


def test_too_many_devices_in_all_is_a_problem_of_the_file(file):
    [problem] = refused(read_fleet, put(file, f"{FLEET},count\n" + "1,1,1,1,6e11\n" * 2))
    assert problem.column == "count"
    assert "adds up to over" in problem.message


@pytest.mark.parametrize("read", [read_fleet, read_pilots])
def test_a_path_that_leads_to_no_file_is_refused(tmp_path, read):
    [problem] = refused(read, tmp_path / "nowhere.csv")
    assert problem.message.startswith("no such file: check the path")
    [problem] = refused(read, str(tmp_path))
    assert "is a folder" in problem.message
    put(tmp_path / "plain", "")
    [problem] = refused(read, tmp_path / "plain" / "fleet.csv")
    assert "cannot be read" in problem.message


def test_a_file_that_may_not_be_read_is_refused(file, monkeypatch):
    def forbid(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbid)  # permissions do not stop a test run by root
    [problem] = refused(read_fleet, file)
    assert "permissions forbid it" in problem.message


def test_pilots_count_local_steps_and_check_what_they_are_given():
    assert Pilot(**PILOT).iterations == 85.0
    with pytest.raises(InputError) as caught:
        Pilot(**{**PILOT, "clients_per_round": 2.0, "upper_loss": float("nan"), "local_steps": 0})
    columns = [problem.column for problem in caught.value.problems]
    assert columns == ["clients_per_round", "local_steps", "upper_loss"]


energy = st.floats(1e-40, 1e40) | st.sampled_from([0.0, 0.1])
names = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n")).map(str.strip)
devices = st.fixed_dictionaries(
    {
        "step_time_s": st.floats(1e-40, 1e40),
        "comm_time_s": energy,
        "step_energy_j": energy,
        "comm_energy_j": energy,
        "count": st.integers(1, 10**9),
        "device": names,
    }
)


@settings(deadline=None)
@given(rows=st.lists(devices, min_size=1, max_size=8), optional=st.sets(st.sampled_from("dc")))
def test_what_is_written_reads_back_the_same(file, rows, optional):
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    if "d" not in optional or not any(columns["device"]):
        del columns["device"]
    if "c" not in optional:
        del columns["count"]
    fleet = Fleet(**columns)
    write_fleet(file, fleet)
    assert same(read_fleet(file), fleet)


def test_only_columns_that_say_something_are_written(tmp_path):
    path = tmp_path / "fleet.csv"
    write_fleet(path, Fleet(step_time_s=0.1, comm_time_s=2, count=1, device=[""]))
    assert path.read_bytes() == f"{FLEET}\n0.1,2.0,0.0,0.0\n".encode()
    write_fleet(path, Fleet(step_time_s=0.1, comm_time_s=2, count=3, device=["a,b"]))
    assert path.read_bytes() == f'device,{FLEET},count\n"a,b",0.1,2.0,0.0,0.0,3\n'.encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_a_fleet_stays_a_link(tmp_path):
    link, path = tmp_path / "link.csv", tmp_path / "fleet.csv"
    link.symlink_to(path)
    write_fleet(link, Fleet(step_time_s=1, comm_time_s=2))
    assert link.is_symlink() and len(read_fleet(path)) == 1


@pytest.mark.parametrize("name", [" a", "a\nb", "a\rb", "a\0b", "\ud800"])
def test_a_name_that_would_not_read_back_is_refused_and_the_old_file_kept(tmp_path, name):
    path = put(tmp_path / "fleet.csv", "old")
    with pytest.raises(InputError, match="column device: must be one line of text"):
        write_fleet(path, Fleet(step_time_s=[1, 1], comm_time_s=1, device=["a", name]))
    assert path.read_text() == "old"


def test_a_failed_write_is_refused_and_leaves_nothing_behind(tmp_path):
    fleet = Fleet(step_time_s=1, comm_time_s=1)
    (tmp_path / "taken.csv").mkdir()
    put(tmp_path / "plain", "")
    for path in ("taken.csv", "nowhere/fleet.csv", "plain/fleet.csv"):
        with pytest.raises(InputError, match="cannot be written"):
            write_fleet(tmp_path / path, fleet)
    assert {path.name for path in tmp_path.iterdir()} == {"taken.csv", "plain"}


def outcome(read, path):
    try:
        return read(path)
    except InputError as error:
        return error


lines = st.lists(st.text('0123456789.,,,,-+einfa_x" \t\0é\ufeff')).map("\n".join)


@settings(max_examples=500, deadline=None)
@given(
    head=st.sampled_from([FLEET, f"device,{FLEET},count", PILOTS, f"{PILOTS},seed", ""]),
    end=st.sampled_from(["\n", "\r\n", "\r", ""]),
    body=st.binary() | lines.map(str.encode),
)
def test_any_bytes_are_read_or_refused(file, head, end, body):
    put(file, (head + end).encode() + body)
    for read in (read_fleet, read_pilots):
        result = outcome(read, file)
        assert isinstance(result, Fleet | list) or str(result).encode()  # which can be printed


cell = (
    st.floats(0, 1e9).map(repr)
    | st.integers(0, 99).map(str)
    | st.sampled_from(["1_0", "0x1p3", "nan", "inf", "", "1e400", "1d3", "1 2", "\xa01", "\x1f1"])
    | st.text("0123456789.eE+-_xXnaif \t", max_size=6)
)


@settings(max_examples=500, deadline=None)
@given(
    rows=st.lists(st.tuples(cell, cell, cell, cell), min_size=1, max_size=4),
    device=st.none() | names.filter(lambda name: not {",", '"'} & set(name)),
)
def test_a_quote_anywhere_changes_nothing(file, rows, device):
    """Quotes take the careful way through the reader, numbers alone the fast one."""
    end = "" if device is None else f",{device}"
    plain = [FLEET + ",device" * (device is not None), *(",".join(row) + end for row in rows)]
    first, *others = rows[0]
    quoted = [plain[0], ",".join([f'"{first}"', *others]) + end, *plain[2:]]
    fast, careful = (
        outcome(read_fleet, put(file, "\n".join(content))) for content in (plain, quoted)
    )
    if isinstance(fast, Fleet) and isinstance(careful, Fleet):
        assert same(fast, careful)
    else:
        assert str(fast) == str(careful)


@pytest.fixture(scope="module")
def million_rows() -> str:
    values = np.random.default_rng(0).lognormal(size=(1000, 4)).tolist()
    return "".join(",".join(map(repr, row)) + "\n" for row in values) * 1000


@pytest.mark.slow  # a limit in seconds, for a machine that does nothing else
def test_a_million_devices_are_read_in_seconds(file, million_rows):
    put(file, f"{FLEET}\n{million_rows}")
    start = time.perf_counter()
    fleet = read_fleet(file)
    assert time.perf_counter() - start < 6
    assert len(fleet) == 1_000_000
    assert fleet.step_time_s[-1] == fleet.step_time_s[999]


def test_a_wrong_cell_deep_in_a_long_file_is_found_at_its_line(file, million_rows):
    rows = million_rows[: len(million_rows) // 5].splitlines()[:200_000]
    rows[150_000] = "1,1,1,oops"
    rows[170_000] = '"1",1,1'
    problems = refused(read_fleet, put(file, f"{FLEET}\n" + "\n".join(rows)))
    assert [problem.line for problem in problems] == [150_002, 170_002]


@pytest.mark.parametrize("head", ["a,b,c,d", FLEET])
def test_a_huge_file_of_the_wrong_shape_is_refused_at_once(file, head):
    put(file, f"{head}\n" + "0.1,0.2,0.3\n" * 10**6)
    tracemalloc.start()
    start = time.process_time()  # other work may be going on
    refused(read_fleet, file)
    assert time.process_time() - start < 3
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "'=1", "''@x", "'plain", "a=b"])
def test_no_name_is_a_formula_to_a_spreadsheet(file, name):
    fleet = Fleet(step_time_s=[1.0, 2.0], comm_time_s=1.0, device=[name, "phone"])
    write_fleet(file, fleet)
    cell = file.read_text().splitlines()[1].split(",")[0]
    assert cell[0] not in "=+-@" and read_fleet(file).device == fleet.device
