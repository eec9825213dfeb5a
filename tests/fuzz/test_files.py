"""Files that users bring, as no user would write them: each is read, or refused with its name."""

from __future__ import annotations

import io
import os
import zipfile
from contextlib import chdir, suppress
from pathlib import Path

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from invariant import bounded, folder, run, tries

from fedplan import InputError
from fedplan.studies import read_study
from fedplan.studies.keys import KEYS, TABLES
from fedplan.tasks import read_data

NUMBERS = st.sampled_from(
    ["0", "-0", "1", "2", "0.5", "1e-40", "1e40", "1e-41", "1e300", "5e-324", "1e999", "-1", "nan"]
    + ["inf", "9" * 20, "9" * 400, "0x10", "1_0", "", " 7 ", '"3"', "1,5", "=1+1", "3;4", "\x00"]
    + ["\u0663", "\ud800", "'", '"', "100", "3", "20"]
) | st.floats(1e-3, 1e3).map(repr)
FLEET = [
    "step_time_s",
    "comm_time_s",
    "step_energy_j",
    "comm_energy_j",
    "count",
    "samples",
    "device",
]
PILOTS = "clients_per_round local_steps upper_loss lower_loss rounds_to_upper rounds_to_lower seed"
RUNS = "round clients local_steps loss run learning_rate"


def tables(columns, fixed=()):
    """CSV: mostly the right header, rows of mostly the right width, and now and then any bytes."""
    good = st.floats(1e-2, 1e2).map(repr)
    row = st.lists(
        st.one_of(good, good, good, NUMBERS), min_size=len(columns) - 1, max_size=len(columns)
    )
    header = st.just(list(columns)) | st.lists(st.sampled_from([*columns, "other"]), max_size=9)
    text = st.tuples(header, st.lists(row, max_size=6)).map(
        lambda drawn: "\n".join(",".join(line) for line in [drawn[0], *drawn[1]])
    )
    return text.map(lambda each: each.encode(errors="surrogatepass")) | st.binary(max_size=200)


@st.composite
def trainings(draw):
    """Runs as they are, but for a cell here and there."""
    lines = ["round,clients,local_steps,loss,run"]
    for name in "abc"[: draw(st.integers(1, 3))]:
        steps = draw(st.sampled_from([1, 5, 50]))
        for number in range(1, draw(st.integers(2, 12))):
            loss = draw(st.floats(0.1, 1.0)) / number
            cells = [str(number), "10", str(steps), repr(loss), name]
            if draw(st.integers(0, 30)) == 0:
                cells[draw(st.integers(0, 4))] = draw(NUMBERS)
            lines.append(",".join(cells))
    return "\n".join(lines).encode(errors="surrogatepass")


def in_a_folder(name, content, *words):
    with folder() as where, chdir(where):
        Path(name).write_bytes(content)
        code, said = run(*words)
        assert os.listdir() == [name], "nothing is left behind"  # noqa: PTH208
    return code, said


@tries
@given(tables(FLEET[:4]) | tables(FLEET))
@example(b"step_time_s,comm_time_s,step_energy_j,comm_energy_j,count\n1,2,3,4,inf\n")
@example(b"step_time_s,comm_time_s,step_energy_j,comm_energy_j\n1e40,1e40,1e40,1e40\n1e-40,0,0,0\n")
@example(b"step_time_s,comm_time_s,step_energy_j,comm_energy_j\n1,1,1,1\n1,1e40,1,1")
def test_fleets(content):
    code, said = in_a_folder("fleet.csv", content, "plan", "--fleet", "fleet.csv")
    assert code != 2 or "fleet.csv" in said, said


@tries
@given(tables(PILOTS.split()) | tables(PILOTS.split()[:6]))
def test_pilots(content):
    words = ("estimate", "--pilots", "pilots.csv", "--num-clients", "100")
    code, said = in_a_folder("pilots.csv", content, *words)
    assert code != 2 or "pilots" in said, said


@tries
@given(tables(RUNS.split()) | tables(RUNS.split()[:4]) | trainings())
@example(b"round,clients,local_steps,loss,learning_rate\n1,2,3,1,1e-300\n2,2,3,0.9,1e300\n")
@example(b"round,clients,local_steps,loss\n1,1e308,1,1e308\n2,1,1e308,-1e308\n")
def test_runs(content):
    code, said = in_a_folder("runs.csv", content, "learn", "runs.csv")
    assert code != 2 or "runs.csv" in said, said


VALUES = st.one_of(
    st.integers(-5, 10**25).map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["true", "'a'", "'demo'", "[]", "{}", "[1, 2]", "[[1, 2]]", "'/dev/null'", "1979-05-27"]
        + ["'a\\u0000b'", '"a\\u0000b"', "[" * 3000 + "]" * 3000, "9" * 5000, "''", "nonsense"]
    ),
)


@st.composite
def studies(draw):
    lines = []
    for table in draw(st.lists(st.sampled_from([*TABLES, "other"]), max_size=6)):
        lines.append(f"[{table}]")
        own = [key for key, one in KEYS.items() if one.table == table]
        for key in draw(
            st.lists(st.sampled_from([*own, "file", "nosuch"]), max_size=6, unique=True)
        ):
            lines.append(f"{key} = {draw(VALUES)}")
    return "\n".join(lines)


@tries
@given(
    studies() | st.text(max_size=60),
    st.lists(st.tuples(st.sampled_from([*KEYS]), VALUES), max_size=3),
)
@example("[task]\ndata = " + "[" * 3000 + "]" * 3000, [])
@example("[training]\nrounds = " + "9" * 5000, [])
@example('[fleet]\nfile = "a\\u0000b"', [])
@example("", [("rounds", "[" * 2000 + "]" * 2000)])
@example("", [("file", "[" * 3000 + "]" * 3000)])  # a name that no file system takes
@example('[fleet]\nfile = "/dev/zero"', [("data", "'/dev/zero'")])
def test_studies(text, overrides):
    with folder() as where, bounded(), suppress(InputError):
        path = Path(where) / "study.toml"
        path.write_bytes(text.encode(errors="surrogatepass"))
        read_study(str(path), [f"{key}={value}" for key, value in overrides])


def npy(shape, kind, size):
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(size)


def _saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


SIZES = st.sampled_from([0, 1, 2, 10, 10, 10, 10**9, 2**31, 2**63 - 1, 2**64, -1])
MEMBERS = st.one_of(
    st.builds(
        npy,
        st.lists(SIZES, max_size=4).map(tuple) | st.just("[" * 3000),
        st.sampled_from(
            ["<f4", "<f8", "<i8", "|u1", "|b1", "|O", "<U5", "<U99999999", "<c8", "<M8[s]"]
        ),
        st.integers(0, 1000),
    ),
    st.builds(lambda *shape: npy(shape, "<f4", 10**5), st.just(10), SIZES),
    st.binary(max_size=60),
    st.sampled_from([np.arange(10), np.ones((10, 2)), np.full(10, 2**63 - 1)]).map(_saved),
)


@tries
@given(
    st.dictionaries(st.sampled_from(["x", "y", "client", "test_x", "test_y"]), MEMBERS, max_size=5),
    st.sampled_from(
        [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2]
    ),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4),
)
@example({"x": npy((10, 10**8), "|u1", 10**7)}, zipfile.ZIP_DEFLATED, [])
@example({"x": npy((2**64, 2), "<f4", 80)}, zipfile.ZIP_STORED, [])
@example({"x": b"no array"}, zipfile.ZIP_STORED, [])
@example({"y": _saved(np.full(10, 2**63 - 1))}, zipfile.ZIP_STORED, [])
@example({"y": _saved(np.full(10, 10**9))}, zipfile.ZIP_STORED, [])
@example({}, zipfile.ZIP_LZMA, [(60, 255), (70, 0), (80, 255)])
@example({}, zipfile.ZIP_DEFLATED, [(60, 255), (70, 0), (80, 255)])
def test_arrays(members, method, flips):
    sound = {
        "x": _saved(np.ones((10, 2))),
        "y": _saved(np.arange(10) % 2),
        "client": _saved(np.arange(10)),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in (sound | members).items():
            archive.writestr(f"{name}.npy", content)
    content = bytearray(file.getvalue())
    for place, value in flips:
        content[place % len(content)] = value
    with folder() as where, bounded(), suppress(InputError):
        path = Path(where) / "mine.npz"
        path.write_bytes(content)
        read_data(path)
