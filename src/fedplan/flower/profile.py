"""What the devices of a federation cost, before anything is planned."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from fedplan.core.records import Observation
from fedplan.flower.log import LOG
from fedplan.flower.runner import FlowerRunner
from fedplan.store import Store, StudyEntry
from fedplan.studies.devices import Devices, find_profile, save_profile

# Two numbers of steps tell what a step takes from what a round does. More are asked for until they
# take longer than the fewest by this share, and by so many seconds that no chance delay matters.
STEPS, LONGER, LONGER_S = (2, 10, 100, 1000), 0.5, 0.1


def profile_clients(runner: FlowerRunner, store: Store, study: StudyEntry) -> Devices:
    """Have every client train for different numbers of steps, each from the first weights.

    Once a study: were it to change with who is there after a restart, so would the pilots, and
    those that were made would be for nothing.
    """
    if (known := find_profile(store, study)) is not None:
        return known
    LOG.info("Profile: %d clients", len(runner.names))
    return save_profile(store, study, _probe(runner), runner.names)


def _probe(runner: FlowerRunner) -> list[Observation]:
    """Trainings of every client with more and more steps, until they tell what a step takes."""
    fewest, *more = STEPS
    first = runner.probe(fewest)
    rest: list[Observation] = []
    short = _typical_train_s(first)
    for steps in more:
        if steps / fewest * short < LONGER_S and steps != more[-1]:
            continue  # too quick to tell, even if all that time was steps
        longer = runner.probe(steps)
        rest += longer
        if _typical_train_s(longer) - short >= max(LONGER * short, LONGER_S):
            break
    if _were_starting(first, rest):
        first = runner.probe(fewest)
    return [*first, *rest]


def _typical_train_s(seen: Sequence[Observation]) -> float:
    """Seconds that the client in the middle has trained."""
    return statistics.median(
        [one.train_seconds for one in seen if one.train_seconds is not None] or [math.inf]
    )


def _were_starting(first: Sequence[Observation], later: Sequence[Observation]) -> bool:
    """Whether a client took longer for fewer steps, and so was loading its framework with them."""
    last = {one.client: one.train_seconds for one in later}
    return any((one.train_seconds or 0.0) > (last.get(one.client) or math.inf) for one in first)
