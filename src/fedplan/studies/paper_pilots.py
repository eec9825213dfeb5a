"""The paper's own procedure: given pairs (K, E), two losses, and its Algorithm 2."""

from __future__ import annotations

from fedplan.convergence.estimation import estimate_bound
from fedplan.convergence.pilots import Pilot
from fedplan.core.records import RunRecord, Stop
from fedplan.errors import InputError
from fedplan.participation import uniform
from fedplan.planning.paper import solve_paper
from fedplan.planning.steps import steps_range
from fedplan.simulation import Job
from fedplan.studies.keys import PlanningTable
from fedplan.studies.pilots import Choice, Failure, PilotProblem, Trial, failed


class PaperPilots:
    """Runs every pair to the lower loss, averages the ratios of all pairs of pilots, solves P3."""

    def __init__(self, problem: PilotProblem, table: PlanningTable) -> None:
        if table.pairs is None or table.upper_loss is None or table.lower_loss is None:
            raise InputError("the paper's pilots need pairs, upper-loss and lower-loss.")
        self._problem = problem
        self._pairs = [(clients, steps) for clients, steps in table.pairs]
        self._losses = table.upper_loss, table.lower_loss
        self._runs: list[RunRecord] = []
        self._failure: Failure | None = None

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The pilots so far."""
        return tuple(self._runs)

    def ask(self) -> Trial | None:
        """The next pair; None after the last, or after one that led nowhere."""
        if self._failure is not None or len(self._runs) == len(self._pairs):
            return None
        clients, steps = self._pairs[len(self._runs)]
        return Trial(
            job=Job(course=uniform(clients, steps), seed=self._problem.seed),
            stop=Stop(max_rounds=self._problem.max_rounds, target_loss=self._losses[1]),
        )

    def tell(self, run: RunRecord) -> None:
        """What came of the pair that was asked for."""
        self._runs.append(run)
        if run.status != "target":
            self._failure = "diverged" if run.status == "diverged" else "out of reach"
        elif run.num_rounds == 0:
            self._failure = "nothing to learn"
        elif run.rounds_to(self._losses[0]) == run.num_rounds:
            self._failure = "losses too close"

    @property
    def choice(self) -> Choice:
        """The paper's (K, E)."""
        problem = self._problem
        if self._failure is not None:
            return failed(self._failure, problem, self.runs)
        upper, lower = self._losses
        pilots = [
            Pilot(
                clients_per_round=run.setting.pair[0],
                local_steps=run.local_steps,
                upper_loss=upper,
                lower_loss=lower,
                rounds_to_upper=run.rounds_to(upper) or 0,
                rounds_to_lower=run.num_rounds,
                seed=run.seed,
            )
            for run in self._runs
        ]
        estimate = estimate_bound(pilots, len(problem.fleet), method="pairwise")
        if estimate.bound is None:
            return Choice(status="out of reach", message=estimate.message)
        limits = estimate.within_reach(problem.constraints)
        setting = solve_paper(
            problem.fleet,
            estimate.bound,
            problem.objective,
            clients_range=problem.constraints.clients_range(len(problem.fleet)),
            steps_range=steps_range(limits, estimate.bound),
        )
        message = (
            f"The paper's Algorithm 2 says {setting[0]:,} clients per round and {setting[1]:,} "
            f"local steps, from a ratio a0 / b0 of {estimate.ratio:,.4g}."
        )
        return Choice(status="chosen", setting=setting, message=message)
