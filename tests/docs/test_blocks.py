"""Every code block of the documentation runs, or says on the page why it does not."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from docs.pages import BLOCKS, CHANGES, ROOT, Block
from docs.shell import Command, commands_of, unlike
from stored_runs import save_live_study

from fedplan import read_fleet, read_pilots
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.tables import read_histories
from profiles import read_profile

DEMO = ROOT / "src" / "fedplan" / "studies" / "builtin" / "demo.toml"
EXAMPLES = ROOT / "examples"
RUN = [block for block in BLOCKS if block.not_run is None]
COMMAND_PAGES = sorted({block.page for block in RUN if block.language == "console"})
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def of_language(language: str) -> list[object]:
    return [pytest.param(block, id=str(block)) for block in RUN if block.language == language]


@pytest.mark.parametrize("block", [pytest.param(block, id=str(block)) for block in BLOCKS])
def test_a_block_is_run_somewhere(block):
    if block.not_run is not None:
        assert block.language == "console", f"{block}: only commands may stay untried"
        return
    match block.language:
        case "python":  # by doctest, whose places these are; programs by tests of their own pages
            assert not block.is_session or block.page.startswith(("README.md", "docs/"))
            assert "+SKIP" not in block.text
        case "sql":
            assert block.page == "docs/reference/store.md"  # tests/store/test_store.py
        case "text":  # output, formulas and lists of files: nothing to type
            assert not re.search(r"^(\$|#|pip|flwr|fedplan|make|python) ", block.text, re.MULTILINE)
        case "diff":  # tests/flower/test_examples.py, tests/docs/test_changes.py
            assert block.page in ("examples/flower_app_quickstart/README.md", CHANGES)
        case "{eval-rst}":  # tests/docs/test_site.py
            assert re.fullmatch(r"(\.\. auto.*\n|   :members:.*\n|\n)+", block.text)
        case _:  # in this module
            assert block.language in ("console", "csv", "toml")


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_commands_of_a_page_work_as_typed(page, fedplan, tmp_path, monkeypatch):
    """All of a page, one after the other in one folder, with the files it says to save."""
    monkeypatch.chdir(tmp_path)
    blocks = [block for block in RUN if block.page == page]
    if not any(block.file for block in blocks):
        lay_out_example_files(tmp_path)
    for block in blocks:
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text)
        elif block.language == "console":
            for command in commands_of(block.text):
                follow(command, fedplan)


def lay_out_example_files(folder):
    """The files that pages name without showing them: those of the examples, and a study."""
    (folder / "examples").mkdir()
    for path in EXAMPLES.glob("*.*"):
        shutil.copy(path, folder / "examples")
        shutil.copy(path, folder)
    shutil.copy(DEMO, folder / "study.toml")
    with Store(f"sqlite:///{folder}/fedplan.db") as store:
        save_live_study(store)


def test_the_files_of_the_reference_are_among_the_examples():
    shown = {
        block.text
        for block in RUN
        if block.page == "docs/reference/files.md" and block.language == "csv"
    }
    assert shown == {path.read_text() for path in EXAMPLES.glob("*.csv")}


def follow(command: Command, fedplan):
    match shlex.split(command.words):
        case ["fedplan", *words]:
            result = fedplan(*words)
            assert result.code == command.code, f"{command.words}: {result.err}"
            assert result.out
            assert not command.output or not unlike(command.output, result.out)
        case ["python", "tools/prototype" as tool, *words]:
            subprocess.run([sys.executable, ROOT / tool, *words], check=True, capture_output=True)
        case ["make", *words]:  # as far as it can be said without doing it
            subprocess.run(["make", "-n", *words], cwd=ROOT, check=True, capture_output=True)
        case ["pip", "install", package]:
            name, extra = re.fullmatch(r"(fedplan|\.)(?:\[(\w+)\])?", package).groups()
            assert name and (extra is None or extra in EXTRAS)
        case [".", activate]:
            folder = activate.removesuffix("/bin/activate")
            assert f"VENV := {folder}\n" in (ROOT / "Makefile").read_text()
        case ["mkdir", _]:
            pass
        case ["cd", _]:  # the folder of the test is the one that was entered
            assert not list(Path().iterdir())
        case _:
            pytest.fail(f"nobody knows how to try {command.words!r}")


@pytest.mark.parametrize("block", of_language("csv"))
def test_a_file_of_devices_pilots_or_runs_is_read(block, tmp_path):
    path = tmp_path / "file.csv"
    path.write_text(block.text)
    if block.text.startswith("device,"):
        assert len(read_fleet(path)) > 1
    elif block.text.startswith("run,"):
        assert len(read_histories([path])) > 1
    else:
        assert len(read_pilots(path)) > 1


@pytest.mark.parametrize("block", of_language("toml"))
def test_a_toml_file_is_read_by_what_it_is_for(block, tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    path.write_text(block.text)
    match sorted(tomllib.loads(block.text)):
        case ["device"]:
            assert [device.name for device in read_profile(str(path))] == ["camera", "gateway"]
        case ["superlink"]:
            from flwr.cli.flower_config import read_superlink_connection

            monkeypatch.setenv("FLWR_HOME", str(tmp_path))
            (name,) = tomllib.loads(block.text)["superlink"]
            assert read_superlink_connection(name).address == "127.0.0.1:8000"
        case _:
            assert read_study(str(path)).task.num_clients > 1


def test_commands_and_their_output_are_taken_apart():
    first, second = commands_of(
        "$ fedplan plan \\\n  --x 1  # why\nout\nput\n$ fedplan a#b\n$ echo $?\n3\n"
    )
    assert first == Command(words="fedplan plan    --x 1", output="out\nput\n")
    assert second == Command(words="fedplan a#b", output="", code=3)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("Use 8 of 100.", "Use  9 of 100.\n", True),
        ("Use 8 of 100.", "Use 20 of 100.", False),
        ("Use 8 of 100.", "Use 8 of 100. More.", False),
        ("... of 1,000 ...", "Use 8 of 1,100. More", True),
        ("... of 1,000 ...", "Use 8 of 2,000. More", False),
        ("Take ...", "Use 8", False),
    ],
)  # fmt: skip
def test_output_may_differ_in_spaces_and_a_little_in_numbers(shown, printed, same):
    assert (unlike(shown, printed) == "") is same


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("Here: *Not run by the tests: it is long.*", "it is long"),
        ("Not run by the tests: it is long.", None),
        ("*Not run by the tests: it is long.* But this?", None),
    ],
)
def test_a_block_is_left_out_only_for_a_reason_in_italics_before_it(before, reason):
    block = Block(page="x.md", line=1, language="console", text="", before=before)
    assert block.not_run == reason
