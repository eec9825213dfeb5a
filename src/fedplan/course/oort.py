"""Oort: clients with a high loss and a fast device, and a few unexplored ones.

Lai et al., "Oort: Efficient Federated Learning via Guided Participant Selection" (2021). A client
that has taken part is worth U = samples * loss. In round r it scores

    (min(U, 98th percentile) - min) / range + sqrt(0.1 ln r / r_last),

times (T / t)^2 where its round takes t > T seconds. T begins at the 10th percentile of all clients'
times; every 20 rounds it moves up by 5 points where the worth of those chosen has hardly changed,
and down where it has changed fivefold. A share 0.9 * 0.95^r of a cohort are clients never tried.

It is biased: updates are averaged by samples, though those with a high loss come more often.

What differs from the paper: the loss of a client is its mean before training, where Oort has the
root of the mean of squares of single samples' losses. Of those tried the best are taken, where Oort
draws among those with at least 95% of the last one's score. Times are known from the fleet. No
client is asked in vain (Oort asks for a tenth more and drops the slowest), and none is barred.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.core.records import RoundRecord
from fedplan.core.setting import Setting
from fedplan.course.published import Published, Turning
from fedplan.participation import Chosen

EXPLORE, DECAY = 0.9, 0.95  # share of a cohort that was never tried: the first times the second^r
CLIP = 0.98  # quantile above which worth counts no more
FIRST_PERCENTILE, PERCENTILE_STEP = 10.0, 5.0  # of times, for the T that is preferred
PACE = 20  # rounds from one move of T to the next
FLAT, SHARP = 0.1, 5.0  # changes of worth, of which T moves up and down
PENALTY = 2.0
# Untried clients are drawn among so many times as are wanted, the best by samples and speed. Oort
# leaves the number to its user; this one is ours.
WINDOW = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Oort(Published):
    """A tenth of the clients and 20 steps, unless given otherwise; only who they are changes."""

    name: ClassVar[str] = "oort"
    wants_clients: ClassVar[bool] = True

    @cached_property
    def setting(self) -> Setting:
        """The first round: unexplored clients, by samples and speed."""
        return self.begin().ask()

    def begin(self) -> OortSteering:
        """A new training."""
        return OortSteering(self)


class OortSteering(Turning):
    """Knows the utility of every client that has taken part, and since when."""

    def __init__(self, course: Oort) -> None:
        self._clients, self._steps = course.first_clients, course.first_steps
        fleet = course.problem.fleet
        self._times = fleet.per_device(fleet.round_times_s(self._steps))
        self._samples = fleet.per_device(fleet.samples)
        self._worth = np.full(course.num_clients, np.nan)
        self._last_round = np.zeros(course.num_clients)
        self._percentile = FIRST_PERCENTILE
        self._chosen_worth: list[float] = []
        super().__init__(self._choose(1), "Clients that were never tried come first.")

    def tell(self, record: RoundRecord) -> None:
        """Report a round, whose losses change its clients' utility and the next choice."""
        if record.reports is None or not record.round:
            return
        who, told = np.array(record.cohort, dtype=np.int64), record.reports.losses
        new = np.isfinite(told)
        self._worth[who[new]] = (self._samples[who] * told)[new]
        self._last_round[who] = record.round
        law = self._setting.participation
        best = [client for client in getattr(law, "clients", ()) if client in record.cohort]
        self._chosen_worth.append(float(np.mean(self._worth[best])) if best else 0.0)
        next_round = record.round + 1
        if next_round >= 2 * PACE and next_round % PACE == 0:
            self._pace()
        self.turn_to(self._choose(next_round), next_round, "Losses and times were compared.")

    def _pace(self) -> None:
        """Move T by how much the worth of those chosen has changed."""
        before = sum(self._chosen_worth[-2 * PACE : -PACE])
        change = abs(sum(self._chosen_worth[-PACE:]) - before)
        if change <= FLAT * before:
            self._percentile = min(100.0, self._percentile + PERCENTILE_STEP)
        elif change >= SHARP * before:
            self._percentile = max(PERCENTILE_STEP, self._percentile - PERCENTILE_STEP)

    def _slowness(self) -> FloatArray:
        """What each client's score is multiplied by: 1 for those that are quick enough."""
        place = int(self._times.size * self._percentile / 100.0)
        preferred = np.sort(self._times)[min(place, self._times.size - 1)]
        if self._percentile >= 100.0:
            return np.ones_like(self._times)
        return np.asarray(np.minimum(preferred / self._times, 1.0) ** PENALTY)

    def scores(self, round_: int) -> FloatArray:
        """The score in this round of every client that was tried; NaN for the others."""
        worth = self._worth
        tried = np.sort(worth[np.isfinite(worth)])
        if not tried.size:
            return np.full_like(worth, np.nan)
        clip = tried[min(int(CLIP * tried.size), tried.size - 1)]
        spread = (tried[-1] - tried[0]) or 1.0
        staleness = np.sqrt(0.1 * math.log(round_) / np.maximum(self._last_round, 1.0))
        by_worth = (np.minimum(worth, clip) - tried[0]) / spread
        return np.asarray((by_worth + staleness) * self._slowness())

    def _choose(self, round_: int) -> Setting:
        scores = self.scores(round_)
        tried = np.flatnonzero(np.isfinite(scores))
        untried = np.flatnonzero(~np.isfinite(scores))
        share = EXPLORE * DECAY**round_
        wanted = min(int(self._clients * (1.0 - share)), tried.size)
        drawn = min(self._clients - wanted, untried.size)
        best = tried[np.argsort(-scores[tried], kind="stable")][: self._clients - drawn]
        promise = (self._samples * self._slowness())[untried]
        pool = untried[np.argsort(-promise, kind="stable")][: WINDOW * drawn]
        law = Chosen(
            clients=tuple(sorted(best.tolist())), pool=tuple(sorted(pool.tolist())), drawn=drawn
        )
        return Setting(participation=law, local_steps=self._steps)
