"""What the devices of a federation cost, before anything is planned."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Sequence

from fedplan.flower.runner import FlowerRunner
from fedplan.records import Observation
from fedplan.store import Store, StudyEntry
from fedplan.studies.devices import Devices, find_profile, save_profile

LOG = logging.getLogger(__name__)
# Two numbers of steps tell what a step takes from what a round does, unless the steps are too short
# to be seen beside it: then more of them.
STEPS = (2, 10, 100, 1000)
RISE = 2.0  # in the time of training, that shows


def profile_clients(runner: FlowerRunner, store: Store, study: StudyEntry) -> Devices:
    """Have every client train for two numbers of steps, or more, each from the first weights.

    Once a study: were it to change with who is there after a restart, so would the pilots, and
    those that were made would be for nothing.
    """
    if (known := find_profile(store, study)) is not None:
        return known
    LOG.info("Profile: %d clients", len(runner.names))
    runner.probe(STEPS[0])  # loads and compiles whatever a node does but once
    first = runner.probe(STEPS[0])
    seen = [*first]
    for steps in STEPS[1:]:
        more = runner.probe(steps)
        seen += more
        if _rise(first, more) >= RISE:
            break
    return save_profile(store, study, seen, runner.names)


def _rise(first: Sequence[Observation], more: Sequence[Observation]) -> float:
    """How much longer a typical client has trained; endless where nobody can say."""
    before = {one.client: one.train_seconds for one in first if one.train_seconds}
    ratios = [
        one.train_seconds / before[one.client]
        for one in more
        if one.train_seconds and one.client in before
    ]
    return statistics.median(ratios) if ratios else float("inf")
