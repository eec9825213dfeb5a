"""The plot that CONTRIBUTING.md shows is drawn, for print and for the screen."""

from __future__ import annotations

import runpy

from docs.pages import BLOCKS

from fedplan import uniform
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.figures import draw_screen, save_figure

(FILE,) = (
    block.text
    for block in BLOCKS
    if block.page == "CONTRIBUTING.md" and "def round_times_data" in block.text
)


def test_the_page_draws_the_seconds_of_each_round(tmp_path):
    (tmp_path / "round_times.py").write_text(FILE)
    page = runpy.run_path(str(tmp_path / "round_times.py"))
    rounds = tuple(
        RoundRecord(round=number, loss=1.0, seconds=seconds)
        for number, seconds in enumerate((0.0, 9.0, 7.0))
    )
    run = RunRecord(setting=uniform(2, 5), seed=0, status="rounds", rounds=rounds)
    figure = page["round_times_data"](run)
    (trace,) = draw_screen(figure).data
    assert (list(trace.x), list(trace.y)) == ([1.0, 2.0], [9.0, 7.0])
    save_figure(figure, str(tmp_path / "times.png"))
    assert (tmp_path / "times.png").stat().st_size > 1000
