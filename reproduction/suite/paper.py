"""The paper's course: pilots of seven pairs, its Algorithm 2, then one (K, E) to the target."""

from __future__ import annotations

from functools import cache

from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord, Stop
from fedplan.participation import uniform
from fedplan.studies import PaperPilots
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
        self._clients = self._simulator.num_clients
        self._train = cache(self._trained)
        self._pilots: PaperPilots | None = None

    def runs(self, problem: Problem) -> list[RunRecord]:
        """The pilots, and the training where they led to a setting."""
        if self._pilots is None:
            self._pilots = self._piloted(problem)
        setting = self._pilots.choice_for(problem).setting
        return [*self._pilots.runs, *([] if setting is None else [self._train(setting)])]

    def _piloted(self, problem: Problem) -> PaperPilots:
        target = self._stop.target_loss or 0.0
        first = self._simulator.run(uniform(1, 1), Stop(max_rounds=1), seed=self._seed).losses[0]
        way = (first or target) - target
        table = PlanningTable.model_validate(
            {
                "pairs": [[max(1, round(share * self._clients)), steps] for share, steps in PAIRS],
                "upper-loss": target + UPPER * way,
                "lower-loss": target + LOWER * way,
                "pilot-seed": PILOT_SEED + self._seed,
            }
        )
        pilots = PaperPilots(problem, table, self._stop.max_rounds)
        while (trial := pilots.ask()) is not None:
            pilots.tell(self._simulator.run(trial.job.course, trial.stop, seed=trial.job.seed))
        return pilots

    def _trained(self, setting: tuple[int, int]) -> RunRecord:
        return self._simulator.run(uniform(*setting), self._stop, seed=self._seed)
