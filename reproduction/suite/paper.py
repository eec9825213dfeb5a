"""The paper's course: pilots of seven pairs, its Algorithm 2, then one (K, E) to the target."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property

from fedplan import Problem, uniform
from fedplan.core.records import RunRecord, Stop
from fedplan.studies import choose_setting
from fedplan.studies.keys import PlanningTable
from suite.trainings import Trainings

# Shares of the clients, and local steps: the pairs of Table I for Setups 2 and 3.
PAIRS = ((0.1, 10), (0.2, 20), (0.3, 30), (0.4, 40), (0.5, 50), (0.6, 60), (0.8, 80))
# Where the two losses are between the target and the first loss. The paper gives no rule; these are
# its losses of Setup 3, the earliest of its three setups, with which pilots are shortest.
UPPER, LOWER = 0.36, 0.2
PILOT_SEED = 1000  # above the seed of the training


class PaperProcedure:
    """The paper's procedure with one seed: its pilots serve every fleet and weight."""

    def __init__(self, trainings: Trainings, seed: int, stop: Stop) -> None:
        self._simulator, self._seed, self._stop = trainings.simulator, seed, stop
        self._train = cache(self._trained)
        self._pilots: list[RunRecord] = []

    def runs(self, problem: Problem) -> list[RunRecord]:
        """The pilots, and the training where they led to a setting."""
        for clients, steps in self._table.pairs or ():
            if choose_setting(problem, self._table, self._pilots).status != "unfinished":
                break
            stop = replace(self._stop, target_loss=self._table.lower_loss)
            seed = self._table.pilot_seed
            self._pilots.append(self._simulator.run(uniform(clients, steps), stop, seed=seed))
        chosen = choose_setting(problem, self._table, self._pilots).setting
        return [*self._pilots, *([] if chosen is None else [self._train(chosen)])]

    @cached_property
    def _table(self) -> PlanningTable:
        target, clients = self._stop.target_loss or 0.0, self._simulator.num_clients
        first = self._simulator.run(uniform(1, 1), Stop(max_rounds=1), seed=self._seed).losses[0]
        way = (first or target) - target
        return PlanningTable.model_validate(
            {
                "pairs": [[max(1, round(share * clients)), steps] for share, steps in PAIRS],
                "upper-loss": target + UPPER * way,
                "lower-loss": target + LOWER * way,
                "pilot-seed": PILOT_SEED + self._seed,
            }
        )

    def _trained(self, setting: tuple[int, int]) -> RunRecord:
        return self._simulator.run(uniform(*setting), self._stop, seed=self._seed)
