"""Steering by the rounds: local steps, groups, limits, and when to give up.

Local steps. With saturation s and the costs of a step and of a round, (1 + s / E)(c_m + c_p E) is
least at E = sqrt(s c_m / c_p). Saturation grows as the rate shrinks, so s is multiplied by the rate
now over the mean rate to come. While the last model has no new best, steps do not rise, and later
become fewer; what rounds said before its best is forgotten.

Shares. A client with far more data than others slows down what all learn, so at first none counts
for more than a few average ones, until that gets no further or the end recedes.

Groups. If no model has been better than the best so far for two cycles, updates of single groups
undo each other, and half as many groups swing half as far. If saturation is unusually low, clients
differ so much that all have to be heard while the rate allows it. When the target is near, groups
are merged if the rounds left are too few for so many.

Limits. If a total is expected to exceed its limit, what is limited becomes dearer until it is not.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from fedplan.convergence.saturation import ROUNDS, Saturation, best_constant_steps
from fedplan.core.constraints import MAX_STEPS
from fedplan.core.course import Decision
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord, Stop
from fedplan.core.setting import RoundCost, Setting
from fedplan.course.elasticity import Window, believed
from fedplan.course.forecast import Forecast
from fedplan.course.pressure import Pressure
from fedplan.participation.grouping import Grouper, Grouping
from fedplan.participation.turns import Turns
from fedplan.planning.turns import choose_groups, most_turns

# `reproduction/suite.md` has what halving and doubling each does to the mean bill.
OFTEN = 0.25  # rounds from one look to the next, for each group that has trained
HEAVIEST = 4.0  # clients that one counts for at most, while the loss falls
MOVE = 2.0  # local steps change at most by this factor at a look
FEW = 5  # rounds: a window of fewer is noise, and no new best for fewer is luck
FIRST_LOOK = 3  # with fewer rounds, what clients undo of each other does not show
FEWEST_STEPS = 2  # half of a single step cannot be looked at
_ADVICE = "Raise target_loss, or allow more time or energy."


class OnlineSteering:
    """One training in progress, steered by its rounds."""

    def __init__(
        self,
        problem: Problem,
        grouping: Grouping,
        setting: Setting,
        *,
        known: Saturation | None = None,
        source: str = "a usual saturation",
        stop: Stop | None = None,
    ) -> None:
        if problem.target_loss is None:
            raise AssertionError("an online course has a target")
        self._problem, self._grouping, self._setting = problem, grouping, setting
        self._known, self._window = known, Window()
        self._heaviest: float | None = HEAVIEST
        self._forecast = Forecast(problem.target_loss, self._rate)
        self._pressure = Pressure(problem, stop)
        self._best = (math.inf, 0)  # the best loss so far, and its round
        self._singles: list[float] = []  # losses of the last model, one per round
        self._regrouped = self._pressed = 0  # rounds of the last change of groups, and of prices
        self._hope, self._lost = 0, False  # last round within reach; whether a limit was beyond it
        self._next_look = self._pause = FIRST_LOOK
        self._why: list[str] = []
        self.hopeless: str | None = None
        why = f"The devices make the groups, {source} the local steps."
        self.decisions = [Decision.of(setting, 1, saturation=known and known.saturation, why=why)]

    def ask(self) -> Setting:
        """How to train the next round."""
        return self._setting

    def tell(self, record: RoundRecord) -> None:
        """Report a completed round."""
        if record.loss is not None and record.loss < self._best[0]:
            self._best = (record.loss, record.round)
        if not record.round:
            return
        single = record.loss if record.model_loss is None else record.model_loss
        self._singles.append(math.inf if single is None else single)
        self._pressure.spend(record, lambda: self._coming(record.round))
        self._forecast.add(record.loss)
        if record.signal is not None:
            self._window.add(record.signal, self._setting.local_steps, max(FEW, self._groups))
        if record.round >= self._next_look and min(self._singles) < math.inf:  # some loss is known
            trained = min(self._groups, record.round)
            self._pause = max(2, int(OFTEN * trained))
            self._next_look = record.round + self._pause
            self._look(record.round)
        if (ended := self._pressure.exceeded(lambda: self._coming(record.round + 1))) is not None:
            self.hopeless = f"{ended}, and the loss is {self._best[0]:.3g}. {_ADVICE}"

    def learn_costs(
        self,
        fleet: Fleet,
        round_: int,
        *,
        why: str = "The devices' costs have changed.",
        groups: int | None = None,
        local_steps: int | None = None,
    ) -> None:
        """Go on with the measured costs of the devices; groups are made again.

        groups, local_steps : to go on with, if those so far were chosen for other costs.
        """
        before = self._setting
        self._problem = replace(self._problem, fleet=fleet)
        self._pressure.learn_costs()
        if local_steps is not None:
            self._setting = replace(self._setting, local_steps=local_steps)
        self._regroup(groups or self._groups, round_, why)
        if self._setting != before:
            found = Decision.of(self._setting, round_ + 1, why=" ".join(self._why))
            if (last := self.decisions[-1]).round == found.round:  # the rounds had their say, too
                self.decisions.pop()
                found = replace(last, groups=found.groups, local_steps=found.local_steps,
                                why=f"{last.why} {found.why}")  # fmt: skip
            self.decisions.append(found)
            self._why = []

    @property
    def _groups(self) -> int:
        return len(self._grouping.visits)

    def _coming(self, round_: int) -> RoundCost:
        """The expected cost of this round, for the group whose turn it is."""
        law, steps = self._setting.participation, self._setting.local_steps
        if isinstance(law, Turns):
            law = Turns(groups=(law.groups[law.turn(round_)],), visits=(1,))
        return law.round_cost(self._problem, steps)

    @property
    def _patience(self) -> int:
        """Rounds without progress taken for bad luck: a cycle of new models, and one to improve."""
        return 2 * self._groups

    @property
    def _stalled(self) -> int:
        """Rounds since the last model was at its best; what is long ago does not count."""
        recent = self._singles[-max(self._patience, 2 * self._stall + 1) :]
        return len(recent) - 1 - int(np.argmin(recent))

    @property
    def _stall(self) -> int:
        """Rounds without a new best of the last model that are more than luck."""
        return max(FEW, self._pause)

    def _is_open(self, round_: int) -> bool:
        """Whether losses say little yet: they stand still, and larger groups come next."""
        return self._groups > 1 and round_ - self._best[1] >= self._stall

    def _rate(self, round_: int) -> float:
        rate = self._problem.learning_rate
        return 1.0 if rate is None else rate.at(round_ - 1)

    def _look(self, round_: int) -> None:
        """Change what the rounds so far say should change."""
        before, saturation = self._setting, None
        arrival = self._forecast.arrival()
        cost = self._setting.participation.round_cost(self._problem, self._setting.local_steps)
        last = self._pressure.last_round(round_, cost)
        self._consider_limits(round_, last, cost)
        if last is None or self._forecast.within_reach(last):
            self._hope = round_
            # A higher price must have shown its effect before it rises again.
            shown = round_ - self._pressed >= max(self._patience, self._pressed / 2)
            if arrival and shown and self._pressure.rises(arrival.rounds, round_, cost):
                self._pressed = round_
                self._regroup(self._groups, round_, "A limit would be exceeded.")
        going_well = min(self._best[1], self._hope)  # until this round
        left_behind = self._forecast.recedes(self._patience) and self._is_uneven
        if left_behind or round_ - max(going_well, self._regrouped) >= self._patience:
            self._make_quieter(round_)
        if self._groups > 1 and math.isfinite(latest := self._forecast.latest()):
            self._finish(round_, latest)
        if len(self._window):
            stalled = self._stalled
            if stalled >= self._stall:  # what rounds said while the loss fell holds no longer
                self._window.keep(max(stalled, FEW))
            saturation = self._window.saturation()
            if saturation is not None:
                if saturation < believed(saturation):  # clients differ much
                    self._hear_everyone(round_)
                wanted = self._wanted_steps(saturation, round_)
                self._set_steps(self._held_back(wanted, stalled))
        self._consider_giving_up(round_, last)
        if self._setting != before:
            found = Decision.of(
                self._setting,
                round_ + 1,
                saturation=saturation if saturation and math.isfinite(saturation) else None,
                expected_rounds=arrival and arrival.rounds,
                interval=arrival and (arrival.low, arrival.high),
                why=" ".join(self._why) or "The rounds show this saturation.",
            )
            self.decisions.append(found)
            self._why = []

    def _wanted_steps(self, saturation: float, round_: int) -> float:
        """E where training to the end costs least, by what is known now."""
        per_step, per_round = self._grouping.line()
        per_round += self._pressure.per_round
        if not per_step:
            return math.inf if per_round else 1.0
        coming = range(round_ + 1, round_ + 1 + max(round_, round(ROUNDS)))
        mean = math.fsum(map(self._rate, coming)) / len(coming)
        falls = self._rate(round_) / mean if mean else 1.0  # a rate can fall to nothing
        wanted = math.sqrt(believed(saturation) * falls * per_round / per_step)
        if self._known is None or self._known.interval is None:
            return wanted
        low, high = (
            best_constant_steps(end, self._problem.learning_rate, per_step, per_round)
            for end in self._known.interval
        )
        return min(max(wanted, low), high)

    def _held_back(self, wanted: float, stalled: int) -> float:
        """The wanted steps, or fewer if the loss has had no new best for `stalled` rounds.

        Too many steps make groups undo each other's work, which the loss shows earlier than the
        signal. Steps do not rise then; after twice as long they halve, down to a quarter of
        `wanted`.
        """
        now = self._setting.local_steps
        if stalled >= 2 * self._stall:
            return min(wanted, max(now / MOVE, wanted / MOVE**2))
        return min(wanted, now) if stalled >= self._stall else wanted

    def _set_steps(self, wanted: float) -> None:
        now = self._setting.local_steps
        bounded = min(max(wanted, now / MOVE), now * MOVE, MAX_STEPS)
        steps = self._problem.limits.steps_within(max(FEWEST_STEPS, round(bounded)))
        self._setting = replace(self._setting, local_steps=steps)

    def _make_quieter(self, round_: int) -> None:
        """Give everyone's data its full weight, or halve the groups where it has that already."""
        law = self._setting.participation
        if isinstance(law, Turns) and law.heaviest is not None and self._problem.fleet.has_samples:
            self._heaviest, self._regrouped = None, round_
            self._regroup(self._groups, round_, "From now on every client counts by its data.")
        elif self._groups > 1:
            self._regroup(self._groups // 2, round_, "The loss falls too slowly: larger groups.")

    def _hear_everyone(self, round_: int) -> None:
        """Have so few groups that all train before a dying rate leaves little to learn."""
        if self._groups > (most := most_turns(self._problem.learning_rate, round_)):
            self._regroup(most, round_, "Clients differ, and the rate dies out: larger groups.")

    @property
    def _priced(self) -> Problem:
        """The problem with the prices that limits raised, no large shares, and a lasting rate."""
        priced = replace(self._problem, objective=self._pressure.objective, learning_rate=None)
        return priced if self._heaviest is None else priced.evened(self._heaviest)

    @property
    def _is_uneven(self) -> bool:
        """Whether some clients count for less than their data."""
        return bool((self._priced.fleet.samples < self._problem.fleet.samples).any())

    def _finish(self, round_: int, rounds: float) -> None:
        """Merge groups if a training that ends after so many rounds has no time for them."""
        number = len(choose_groups(self._priced, self._setting.local_steps, rounds).visits)
        if number < self._groups:
            self._regroup(number, round_, "The target is near: more clients train at once.")

    def _regroup(self, number: int, round_: int, why: str) -> None:
        """Cut the devices into at most so many groups; their credits stay with the clients."""
        grouper = Grouper(self._priced, self._setting.local_steps)
        fewest, most = grouper.range
        found = grouper.group(min(max(number, fewest), most))
        law = self._setting.participation
        if found is None or not isinstance(law, Turns) or number < self._groups <= fewest:
            return
        fleet = self._problem.fleet
        samples = np.repeat(fleet.samples, fleet.count)
        if len(found.visits) != self._groups:
            self._regrouped = round_
        self._grouping = found
        next_ = replace(found.whole(), heaviest=self._heaviest)
        self._setting = replace(self._setting, participation=law.continued(next_, samples, round_))
        self._why.append(why)

    def _consider_limits(self, round_: int, last: int | None, cost: RoundCost) -> None:
        """Give up where two looks in a row say that a limit on time or energy cannot be kept.

        Not even if no more rounds are needed than at the low end of the interval, by whatever
        setting costs least; and not if one lucky round would do.
        """
        arrival, before, self._lost = self._forecast.arrival(), self._lost, False
        if last is None or arrival is None or arrival.low <= round_ or self._is_open(round_):
            return
        least = partial(self._least, arrival.low - round_)
        lost = self._pressure.beyond(arrival.low, round_, cost, least)
        self._lost = lost is not None and not self._forecast.is_in_the_scatter(last)
        if before and self._lost and round_ >= self._patience:
            expected = self._forecast.loss_at(last) or self._best[0]
            self.hopeless = (
                f"The {lost} cannot be kept: the target loss takes {arrival.low:,.0f} rounds at "
                f"least. By round {last:,} the loss will be about {expected:.3g}. {_ADVICE}"
            )

    def _least(self, left: float, objective: Objective) -> float:
        """The least that the rest can cost by this objective, if it takes `left` rounds now."""
        steps, shown = self._setting.local_steps, self._window.saturation()
        saturation = believed(Saturation().saturation if shown is None else shown)
        alone = replace(self._priced, objective=objective)
        per_step, per_round = choose_groups(alone, steps, left).line()
        best = (math.sqrt(per_round) + math.sqrt(saturation * per_step)) ** 2  # at the best E
        return left / (1.0 + saturation / steps) * best

    def _consider_giving_up(self, round_: int, last: int | None) -> None:
        """Give up where the limits end the training before the target, whatever is done.

        After a tenth of the rounds and two whole cycles, if the target is far beyond the limits or
        no loss was below the first. Later only once all clients train together: if the target was
        out of reach for half as many rounds as came before, or the loss has had no new best for as
        many rounds as it took to its best.
        """
        since = round_ - max(self._hope, self._regrouped)
        all_train = self._groups == 1
        early = last is not None and round_ >= max(last / 10, self._patience)
        if last is not None and (
            (early and not self._is_open(round_) and self._forecast.is_far_beyond(last))
            or (all_train and since >= max(self._hope / 2, ROUNDS / 10))
        ):
            expected = self._forecast.loss_at(last) or self._best[0]
            self.hopeless = (
                f"The target loss {self._problem.target_loss:g} is out of reach within the limits: "
                f"by round {last:,} the loss will be about {expected:.3g}. "
                "Raise target_loss, allow more rounds, time or energy, or let the learning rate "
                "fall more slowly."
            )
        wait = max(self._best[1], ROUNDS if last is None else min(ROUNDS, last / 10))
        stalled = round_ - max(self._best[1], self._regrouped) >= wait
        if (early and not self._best[1]) or (all_train and stalled):
            self.hopeless = (
                f"The loss has not been below {self._best[0]:.3g} since round {self._best[1]:,}. "
                "Lower the learning rate, or raise target_loss."
            )
