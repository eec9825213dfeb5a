"""Reading a study: files, overrides, and every problem at once."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fedplan import InputError
from fedplan.store.database import path_of
from fedplan.studies import builtin_studies, read_study

SMALL = """# A comment
[task]
data = "synthetic"
num-clients = 8

[training]
learning-rate = 0.05
clients-per-round = 3
local-steps = 4
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "mine.toml"

    def write(text: str = SMALL) -> str:
        path.write_text(text)
        return str(path)

    return write


def problems(name, *overrides, required=()):
    with pytest.raises(InputError) as error:
        read_study(name, overrides, required=required)
    return error.value.problems


@pytest.mark.parametrize("pairs", ["5,20", "[[5,20]]", "[[5,20],[5,20]]", "[[5,20],[0,20]]"])
def test_pairs_of_the_paper_are_lists_of_different_k_and_e(pairs):
    said = problems("demo", "course=paper", f"pairs={pairs}", "upper-loss=2", "lower-loss=1")
    assert [one.message.split(",")[0] for one in said] in (
        ["pairs must be a list"], ["pairs must be two or more different [K"],
    )  # fmt: skip


def test_a_tilde_is_the_home_folder_where_there_is_one(tmp_path, monkeypatch):
    study = tmp_path / "study.toml"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_study("demo", ["file=~/fleet.csv"]).fleet.file == str(tmp_path / "fleet.csv")
    study.write_text('[task]\ndata = "~nobody-here/x.npz"\n[training]\nlearning-rate = 0.1\n')
    with pytest.raises(InputError, match=r"there is no '.*~nobody-here/x.npz'"):
        read_study(str(study))
    assert path_of("sqlite:///~/runs.db") == tmp_path / "runs.db"


def test_a_study_has_the_files_values_and_the_defaults(study):
    read = read_study(study())
    assert read.name == "mine" and read.fleet is None
    assert (read.task.num_clients, read.task.model, read.task.alpha) == (8, "logistic", 1.0)
    assert (read.training.learning_rate, read.training.batch_size) == (0.05, 64)
    assert read.training.max_time_s == math.inf and read.training.evaluate_subset is None


def test_overrides_take_the_files_place_and_the_last_counts(study):
    words = [
        "num-clients=9",
        "training.rounds=7",
        "rounds = 8",
        "data=mnist-mini",
        "model='lenet5'",
    ]
    read = read_study(study(), words)
    assert (read.task.num_clients, read.training.rounds) == (9, 8)
    assert (read.task.data, read.task.model) == ("mnist-mini", "lenet5")


def test_an_override_can_bring_a_table_of_its_own(study):
    read = read_study(study(), ["step-time-s=0.1", "comm-time-s=2", "max-time-s=50"])
    assert read.fleet.step_time_s == 0.1 and read.fleet.distribution == "normal"


def test_nothing_of_a_study_can_be_changed(study):
    with pytest.raises(ValueError, match="frozen"):
        read_study(study()).training.rounds = 3


def test_every_problem_is_said_at_once_with_its_line(study):
    text = """[task]
data = "synthetic"
num-clients = 0
num-client = 3
rounds = 5
[training]
learning-rate = "fast"
schedule = "exponental"
local-steps = 2.5
target-loss = nan
[trainning]
seeds = 3
[fleet]
step-time-s = 0.1
"""
    found = problems(study(text), "seeds=0", "sedes=3", "what", "task.rounds=3", "decay=2")
    places = {(p.line, p.message.split(" ")[0].strip("`")) for p in found if p.line}
    assert places == {
        (3, "num-clients"), (4, "num-client"), (5, "rounds"), (7, "learning-rate"),
        (8, "schedule"), (9, "local-steps"), (10, "target-loss"), (11, "[trainning]"),
        (13, "comm-time-s"),
    }  # fmt: skip
    text = "\n".join(map(str, found))
    for words in (
        "num-client is no key of a study. Did you mean num-clients?",
        "rounds belongs in [training], not in [task].",
        "Did you mean exponential?",
        "[trainning] is no table of a study. Did you mean training?",
        "command line: `seeds >= 1` must hold, but got seeds=0.",
        "command line: sedes is no key of a study. Did you mean seeds?",
        "command line: 'what' must look like key=value.",
        "command line: `decay <= 1` must hold, but got decay=2.",
        "learning-rate must be a number, but got 'fast'.",
        "local-steps must be a whole number, but got 2.5.",
        "target-loss must be a finite number, but got nan.",
    ):
        assert words in text
    assert all(p.source in (study(), "command line") for p in found)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("clients-per-round=9", "clients-per-round=9, num-clients=8"),
        ("max-time-s=5", "max-time-s needs a [fleet]"),
        ("step-time-s=0.1", "comm-time-s is missing"),
        ("step-time-s=1 comm-time-s=0 comm-time-sd-s=1", "needs a mean above 0"),
        ("partition=iid", "goes with data = mnist or mnist-mini, not with data = synthetic"),
        ("data=mnist-mini alpha=2", "alpha goes with data = synthetic"),
        ("decay=0.9", "decay goes with schedule = exponential or step"),
        ("rates=[0.1]", "rates goes with schedule = list"),
        ("schedule=step", "decay-every is missing"),
        ("schedule=cosine", "decay-rounds is missing"),
        ("schedule=list", "rates is missing"),
        ("schedule=list rates=[]", "rates is missing"),
        ("schedule=list rates=[0.1,0]", "`rates > 0` must hold, but got rates=0."),
        ("schedule=cosine decay-rounds=0", "`decay-rounds >= 1` must hold"),
        ("data=minst", "Did you mean mnist?"),
        ("data=nowhere.npz", "there is no 'nowhere.npz'"),
        ("data=\0", "there is no"),
        ("data=7", "data must be a text, but got 7."),
        ("seeds=true", "seeds must be a whole number, but got True."),
        ("num_clients=3", "Did you mean num-clients?"),
        ("alpha=-1", "`alpha >= 0` must hold"),
        ("max-time-s=nan", "`max-time-s > 0` must hold"),
    ],
)
def test_what_cannot_be_is_refused(study, words, reason):
    found = problems(study(), *words.split(" "))
    assert len(found) == 1 and reason in str(found[0]), found
    assert found[0].source == "command line" or "missing" in reason


def test_the_file_of_devices_is_looked_at_with_the_rest(study):
    ours, missing = problems(study(), "file=f.csv", "step-time-s=1")
    assert "not both" in str(ours) and str(missing).startswith("f.csv: no such file")


def test_an_override_retires_what_no_longer_applies():
    dirichlet = read_study("setup1", ["partition=dirichlet", "concentration=0.1"])
    assert dirichlet.task.concentration == 0.1
    synthetic = read_study("setup1", ["data=synthetic"])
    assert synthetic.task.partition == "iid"
    assert read_study("setup1", ["schedule=constant"]).training.schedule == "constant"
    assert read_study("setup3", ["file=fleet.csv"]).fleet.step_time_s is None
    assert "goes with partition" in str(problems("setup1", "partition=iid", "samples-per-client=9"))


def test_a_file_that_contradicts_itself_is_refused(study):
    found = problems(study(SMALL + "decay = 0.9\n"))
    assert len(found) == 1 and found[0].line == 10 and "decay goes with" in found[0].message


def test_what_a_command_needs_is_named(study):
    text = SMALL.replace("clients-per-round = 3\nlocal-steps = 4\n", "")
    assert read_study(study(text)).training.local_steps is None
    found = problems(study(text), required=("clients-per-round", "local-steps"))
    assert [p.message.split(":")[0] for p in found] == [
        "clients-per-round is missing",
        "local-steps is missing",
    ]
    assert "add clients-per-round=... to the command" in found[0].message
    assert found[0].line == 6


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("[task\n", "is not valid TOML", 1),
        ("[task]\ndata = 1\ndata = 2\n", "is not valid TOML", 3),
        ("task = 3\n[training]\nlearning-rate = 1\n", "[task] must be a table", 1),
        ("rounds = 3\n", "rounds stands outside of a table, but belongs in [training]", 1),
        ("task = {data = 'synthetic', num-clients = 0}\n", "num-clients >= 1", 1),
        ("task.data = 'synthetic'\ntask.num-clients = 0\n", "num-clients >= 1", 2),
        ("[ task ]\n'data'= 'synthetic'\n\"num-clients\" = 0\n", "num-clients >= 1", 3),
        ("", "data is missing from [task]", None),
    ],
)
def test_odd_files_are_refused_where_they_are_odd(study, text, reason, line):
    found = [p for p in problems(study(text)) if reason in p.message]
    assert len(found) == 1 and found[0].line == line


def test_files_that_cannot_be_read_are_input_errors(tmp_path):
    assert "Did you mean setup1?" in str(problems("setpu1")[0])
    assert "is a folder" in str(problems(str(tmp_path))[0])
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# caf\xe9\n")
    assert "not text in UTF-8" in str(problems(str(latin))[0])
    assert "cannot be read" in str(problems("\0")[0])
    found = problems("nowhere.toml", "seeds=0", "x=1")
    assert len(found) == 3  # no complaints about all that a missing file does not say


def test_paths_are_relative_to_their_file_and_overrides_to_the_current_folder(
    study, tmp_path, monkeypatch
):
    (tmp_path / "data").mkdir()
    text = SMALL.replace('"synthetic"', '"data"').replace("num-clients = 8", "")
    name = study(text + '[fleet]\nfile = "fleet.csv"\n')
    monkeypatch.chdir("/")
    read = read_study(name)
    assert Path(read.task.data) == tmp_path / "data"
    assert Path(read.fleet.file) == tmp_path / "fleet.csv"
    assert read_study(name, ["file=other.csv"]).fleet.file == "other.csv"


def test_the_built_in_studies_are_complete():
    assert builtin_studies() == ["demo", "setup1", "setup2", "setup3"]
    for name in builtin_studies():
        study = read_study(name, required=("clients-per-round", "local-steps"))
        assert study.name == name and study.fleet is not None and study.training.target_loss > 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[task]\ndata = " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        ("[training]\nrounds = " + "9" * 5000, "4300 digits"),
        ("#" * (1 << 20) + "\n[task]", "at most 1,048,576 bytes"),
        ('[fleet]\nfile = "a\\u0000b"', "null character"),
        ('[task]\ndata = "a\\u0000b"', "there is no"),
    ],
)
def test_a_study_that_cannot_be_one_is_refused(tmp_path, content, reason):
    path = tmp_path / "study.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=reason):
        read_study(str(path))


def test_a_device_that_never_ends_is_no_study():
    with pytest.raises(InputError, match="at most 1,048,576 bytes"):
        read_study("/dev/zero")


@pytest.mark.parametrize("value", ["[" * 2000 + "]" * 2000, "9" * 5000])
def test_an_override_beyond_toml_is_a_text(value):
    with pytest.raises(InputError, match="rounds"):
        read_study("demo", [f"rounds={value}"])
