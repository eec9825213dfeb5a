"""Parts of every report: sections, figures with their stills, tables, and numbers for people."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fedplan.core.records import RunRecord
from fedplan.figures import Figure
from fedplan.figures.embed import screen_json, still_image
from fedplan.figures.units import energy_unit, number, quantity, time_unit
from fedplan.markup import Markup, join, table, tag
from fedplan.store import RunEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and what stands under it."""

    title: str
    content: Markup

    @property
    def anchor(self) -> str:
        """What links to it."""
        return re.sub(r"[^a-z]+", "-", self.title.lower()).strip("-")

    @property
    def html(self) -> Markup:
        """The whole section."""
        return tag("section", tag("h2", self.title), self.content, id=self.anchor)


def section(title: str, *content: str | Iterable[str]) -> Section:
    """A section of these parts."""
    return Section(title=title, content=join(content))


def figure(data: Figure, title: str, words: str) -> Markup:
    """A figure: interactive where scripts run, else, and on paper, a drawing.

    words : what there is to see, for those who cannot, too.
    """
    spec = Markup(f'<script type="application/json">{screen_json(data)}</script>')
    return tag(
        "figure",
        tag("img", src=still_image(data), alt=f"{title}. {words}"),
        spec,
        tag("figcaption", tag("b", f"{title}."), f" {words}"),
        data_plot="",
    )


def wide_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A table that scrolls by itself where the page is narrow."""
    shown = table(caption, head, rows)
    return tag("div", shown, class_="scroll", tabindex="0", role="region", aria_label=caption)


def run_table(
    caption: str,
    runs: Iterable[RunRecord | RunEntry],
    endings: Mapping[str, str] = MappingProxyType({}),
) -> Markup:
    """A row a run; `endings` are words for a status."""
    head = ("setting", "seed", "rounds", "loss at the end", "time", "energy", "ended by")
    rows = [
        (
            f"{run.identity.partition('/')[0]} {run.setting.label}".lstrip(),
            f"{run.seed}",
            f"{run.num_rounds:,}",
            "-" if run.final_loss is None else f"{run.final_loss:.4g}",
            seconds(run.time_s),
            joules(run.energy_j),
            endings.get(run.status, run.status),
        )
        for run in runs
    ]
    return wide_table(caption, head, rows)


def facts(pairs: Iterable[tuple[str, str | Markup]]) -> Markup:
    """Names and what they are."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", text)) for name, text in pairs])


def seconds(value: float) -> str:
    """A duration."""
    return _or_words(value, lambda v: quantity(v, time_unit(v)))


def joules(value: float) -> str:
    """An energy."""
    return _or_words(value, lambda v: quantity(v, energy_unit(v)))


def amount(value: float | None) -> str:
    """A number.

    >>> amount(13166.9), amount(None), amount(math.inf)
    ('13,167', '-', 'never')
    """
    return "-" if value is None else _or_words(value, number)


def whole(value: float) -> str:
    """A number of rounds.

    >>> whole(14.2), whole(2.5e9), whole(math.inf)
    ('14', '2.5e+09', 'never')
    """
    return _or_words(value, lambda v: f"{v:,.0f}" if v < 1e6 else number(v))


def count(value: float) -> str:
    """A whole number, or an average of some."""
    return f"{value:,.0f}" if value == round(value) else amount(value)


def share(value: float | None) -> str:
    """A share of a cost.

    >>> share(0.1184), share(5.6), share(None)
    ('11.8%', '560%', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.0%}" if value >= 1 else f"{value:.1%}"


def _or_words(value: float, shown: Callable[[float], str]) -> str:
    if math.isnan(value):
        return "-"
    return "never" if math.isinf(value) else shown(value)
