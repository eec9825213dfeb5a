"""Clients that lie, alone or together: how far they can move local steps, groups and shares.

What a client says of itself is its seconds of training, its joules, its examples, and the sketch of
its update half-way. Bounds that hold whatever a third of the clients say:

- a look changes local steps by at most `MOVE` (`OnlineSteering._set_steps`);
- local steps are at least `FEWEST_STEPS`, and at most those that are best at the highest saturation
  that is believed, `DOUBT` times `RANGE[1]` (`OnlineSteering._wanted_steps`), for rounds as long as
  the server's own clock has seen and steps as the quickest honest device takes them: seconds of
  training are within the round trip (`ReplyChecks.trained`), so that no device can pass for slower
  than it is, and a lie only moves seconds between its steps and the rest of its round;
- every client is in exactly one group, and nobody counts for more than `RAREST` times the model
  (`Rounds._by_law`).
"""

from __future__ import annotations

import math
from itertools import pairwise
from tempfile import TemporaryDirectory

from flower.conftest import CLIENTS, make_federation
from flower.test_strategy import NODE_SECONDS, start, stored
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedplan.convergence.saturation import RANGE
from fedplan.course.elasticity import DOUBT
from fedplan.course.steering import FEWEST_STEPS, MOVE
from fedplan.participation.grouping import RAREST

ROUNDS = 24
LIES = st.fixed_dictionaries(
    {},
    optional={
        "trained": st.sampled_from([1e-9, 0.01, 0.3, 1.0]),  # of the seconds it took
        "more seconds": st.sampled_from([0.1, 0.45]),  # of those that messages took
        "joules": st.sampled_from([0.0, 1e3]),
        "examples": st.sampled_from([1, 100, 20_000]),
        "sketch": st.floats(-12.0, 12.0),  # times the one that it is
    },
)
LIARS = st.sets(st.integers(0, CLIENTS - 1), min_size=1, max_size=CLIENTS // 3)


def telling(lie):
    """What makes an honest reply this lie."""

    def tamper(_, reply):
        said = reply.content["metrics"]
        said["fedplan-train-seconds"] *= lie.get("trained", 1.0)
        said["fedplan-train-seconds"] += lie.get("more seconds", 0.0)
        said["fedplan-joules"] *= lie.get("joules", 1.0)
        said["num-examples"] = lie.get("examples", said["num-examples"])
        said["fedplan-halfway"] = [lie.get("sketch", 1.0) * one for one in said["fedplan-halfway"]]
        return reply

    return tamper


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(liars=LIARS, lie=LIES)
def test_a_third_of_liars_moves_steps_groups_and_shares_within_bounds(logistic, liars, lie):
    federation = make_federation(logistic)
    for client in liars:
        federation.node_of(client).tamper = telling(lie)
    with TemporaryDirectory() as folder:
        start(federation, folder, target_loss=0.3, num_rounds=ROUNDS)
        (run,) = stored(folder)
    assert run.status in ("rounds", "hopeless")  # the latter where lies ruin what is averaged
    steps = [record.setting.local_steps for record in run.rounds[3:]]
    assert min(steps) >= FEWEST_STEPS
    for before, after in pairwise(steps):
        assert before / MOVE - 1 <= after <= MOVE * before + 1
    honest = min(NODE_SECONDS[client] for client in set(range(CLIENTS)) - liars)
    longest = 0.0
    for record in run.rounds[1:]:
        if record.round > 3:
            most = math.sqrt(DOUBT * RANGE[1] * longest / honest)
            assert record.setting.local_steps <= most
        trips = [one.round_trip_seconds or 0.0 for one in record.observations]
        longest = max(longest, *trips)
        members = [one for group in record.setting.participation.groups for one in group]
        assert sorted(members) == list(range(CLIENTS))
        assert max(record.shares, default=0.0) <= RAREST
