"""Saving: three kinds of file, whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedplan.atomic import check_target
from fedplan.errors import InputError
from fedplan.figures import SUFFIXES, Figure, save_figure

STARTS = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".html": b"<"}


@pytest.mark.parametrize("suffix", STARTS)
def test_each_suffix_is_a_file_of_its_kind(tmp_path: Path, plan_data: Figure, suffix: str) -> None:
    path = tmp_path / f"plan{suffix}"
    save_figure(plan_data, path)
    assert path.read_bytes().startswith(STARTS[suffix])
    assert list(tmp_path.iterdir()) == [path]


def test_frontier_and_fit_are_saved_too(
    tmp_path: Path, frontier_data: Figure, fit_data: Figure
) -> None:
    save_figure(frontier_data, str(tmp_path / "frontier.SVG"))
    save_figure(fit_data, tmp_path / "fit.svg")
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("suffix", STARTS)
def test_the_same_data_is_the_same_file(tmp_path: Path, frontier_data: Figure, suffix: str) -> None:
    one, other = tmp_path / f"one{suffix}", tmp_path / f"other{suffix}"
    save_figure(frontier_data, one)
    save_figure(frontier_data, other)
    assert one.read_bytes() == other.read_bytes()


def test_a_png_is_wide_enough_for_print(tmp_path: Path, frontier_data: Figure) -> None:
    save_figure(frontier_data, tmp_path / "frontier.png")
    header = (tmp_path / "frontier.png").read_bytes()[16:24]
    assert (int.from_bytes(header[:4]), int.from_bytes(header[4:])) == (1184, 736)


def test_a_page_needs_no_network(tmp_path: Path, plan_data: Figure) -> None:
    save_figure(plan_data, tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page)
    assert not [tag for tag in tags if "http" in tag or "src=" in tag]
    assert f"<title>fedplan: {plan_data.title}</title>" in page


@pytest.mark.parametrize("name", ["plan.pdf", "plan", "plan.png.gz", ".png", "", "."])
def test_another_suffix_names_the_three(tmp_path: Path, plan_data: Figure, name: str) -> None:
    with pytest.raises(InputError, match=r"must end in \.png, \.svg or \.html"):
        save_figure(plan_data, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path, plan_data: Figure) -> None:
    with pytest.raises(InputError, match=r"does not exist: .*nowhere.*in a folder you can write"):
        save_figure(plan_data, tmp_path / "nowhere" / "plan.png")


def test_a_folder_is_no_file(tmp_path: Path, plan_data: Figure) -> None:
    folder = tmp_path / "plan.png"
    folder.mkdir()
    with pytest.raises(InputError, match=r"plan\.png: is a folder"):
        save_figure(plan_data, folder)


@pytest.mark.parametrize("name", ["\0.png", "x" * 300 + ".png"])
def test_impossible_names_are_input_errors(
    tmp_path: Path, frontier_data: Figure, name: str
) -> None:
    with pytest.raises(InputError, match="Give the path of"):
        save_figure(frontier_data, tmp_path / name)


def test_a_loop_of_links_is_an_input_error(tmp_path: Path, frontier_data: Figure) -> None:
    loop = tmp_path / "loop.png"
    loop.symlink_to(loop)
    with pytest.raises(InputError, match="Give the path of"):
        save_figure(frontier_data, loop)


def test_a_folder_that_may_not_be_written_is_an_input_error(
    tmp_path: Path, frontier_data: Figure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, mode: str) -> None:  # a folder without permission does not stop root
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(
        InputError, match=r"cannot be written \(Permission denied\)\. Give the path"
    ):
        save_figure(frontier_data, tmp_path / "frontier.html")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_input_error_and_leaves_nothing(
    tmp_path: Path, frontier_data: Figure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(self: Path, content: bytes) -> None:
        with self.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)\. Give"):
        save_figure(frontier_data, tmp_path / "frontier.html")
    assert list(tmp_path.iterdir()) == []


def test_a_path_can_be_checked_before_any_work(tmp_path: Path) -> None:
    check_target(tmp_path / "plan.html", SUFFIXES)
    with pytest.raises(InputError, match="must end in"):
        check_target(tmp_path / "plan.pdf", SUFFIXES)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_file_alone(
    tmp_path: Path, frontier_data: Figure, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "frontier.svg"
    path.write_text("old")

    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(InputError, match=r"cannot be written \(Permission denied\)"):
        save_figure(frontier_data, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_keeps_pointing_where_it_did(tmp_path: Path, frontier_data: Figure) -> None:
    target = tmp_path / "real.dat"  # the name asked for says what to draw
    link = tmp_path / "link.svg"
    link.symlink_to(target)
    save_figure(frontier_data, link)
    assert link.is_symlink() and target.read_bytes().startswith(b"<?xml")
