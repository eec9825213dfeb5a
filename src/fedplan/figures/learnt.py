"""What histories tell: rounds to a common loss over local steps, and the curve they agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.axes import fit_axis
from fedplan.figures.spec import Figure, Line, Panel, Points
from fedplan.figures.style import BLUE, series_looks
from fedplan.words import NO_UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.convergence.histories import History, Learnt

_POINTS = 80


def learnt_figure_data(
    histories: Sequence[History], learnt: Learnt, note: str = ""
) -> Figure | None:
    """Data of the figure; None where no loss is common to any trainings.

    Each training is drawn at its mean local steps and clients.
    """
    found = [
        (round(float(one.clients.mean())), float(one.local_steps.mean()), float(reached[0]))
        for one in histories
        if learnt.loss is not None and (reached := one.rounds[one.losses <= learnt.loss]).size
    ]
    if not found:
        return None
    clients, steps, rounds = zip(*found, strict=True)
    grid = np.geomspace(min(steps) / 1.5, max(steps) * 1.5, _POINTS)
    middle = float(np.exp(np.log(steps).mean()))
    low, centre, high = (
        learnt.rounds_at(middle) * (1.0 + end / grid) / (1.0 + end / middle)
        for end in (learnt.interval[0], learnt.saturation, learnt.interval[1])
    )
    curve = Line(
        x=grid,
        y=centre,
        low=np.minimum(low, high),
        high=np.maximum(low, high),
        colour=BLUE,
        name="all clients",
        hover="E={x}: {y} rounds of all clients",
    )
    points = [
        Points(
            x=np.array([e for k, e, _ in found if k == group]),
            y=np.array([r for k, _, r in found if k == group]),
            look=look,
            name=f"K={group:,}",
            layer=3,
            hover=f"K={group:,}, E={{x}}: {{y}} rounds",
        )
        for group, look in series_looks(clients).items()
    ]
    panel = Panel(
        x=fit_axis("local steps E", NO_UNIT, grid.tolist(), log=True),
        y=fit_axis("rounds", NO_UNIT, [*centre.tolist(), *rounds], log=True),
        parts=(curve, *points),
    )
    title = f"Rounds to loss {learnt.loss:.4g}: {len(found)} runs, and what all clients would take"
    return Figure(title=title, rows=((panel,),), size=(7.5, 4.6), note=note)
