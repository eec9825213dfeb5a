"""Flower's own strategies, planned: each is called as Flower would, for whom fedplan has chosen."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from contracts.runner import RunnerContract
from flower.conftest import CLIENTS, make_federation
from flwr.app import ConfigRecord, Message, MetricRecord
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedTrimmedAvg,
    FedYogi,
    Strategy,
)

from fedplan import FedplanError, InputError
from fedplan.flower import Planned, PlannedFedAvg
from fedplan.flower.app import unpack
from fedplan.flower.wrapped import Wrapped
from fedplan.simulation import LearningRate
from fedplan.store import Store

RATE = 0.02


def private(**options):
    inner = FedAvg(fraction_evaluate=0.0)
    return DifferentialPrivacyServerSideFixedClipping(inner, 0.001, 10.0, 5, **options)


def adaptive():
    inner = FedAvg(fraction_evaluate=0.0)
    return DifferentialPrivacyServerSideAdaptiveClipping(inner, 0.001, 5, 1.0)


QUIET = {"fraction_evaluate": 0.0}
STRATEGIES = {
    "FedAvg": partial(FedAvg, **QUIET),
    "FedProx": partial(FedProx, proximal_mu=0.1, **QUIET),
    "FedAdam": partial(FedAdam, eta=0.03, **QUIET),
    "FedYogi": partial(FedYogi, eta=0.03, **QUIET),
    "FedAvgM": partial(FedAvgM, server_momentum=0.5, **QUIET),
    "FedMedian": partial(FedMedian, **QUIET),
    "FedTrimmedAvg": partial(FedTrimmedAvg, **QUIET),
    "fixed clipping": private,
    "adaptive clipping": adaptive,
}


class TestContract(RunnerContract):
    # Noise of differential privacy is drawn anew in every run, so that no two are the same.
    @pytest.fixture(params=[name for name in STRATEGIES if "clipping" not in name])
    def runner(self, federation, request):
        strategy = Wrapped(STRATEGIES[request.param]())
        return federation.runner(strategy=strategy, learning_rate=LearningRate(initial=RATE))


class Killed(BaseException):
    """What ends a server at once."""


def train(federation, folder, strategy, *, rounds=25, kill_at=None, start=None, **options):
    """Train with a strategy; the server is killed when it evaluates for the `kill_at`-th time."""
    evaluated = []

    def evaluate_fn(round_, arrays):
        evaluated.append(round_)
        if len(evaluated) == kill_at:
            raise Killed
        loss, accuracy = federation.evaluate(round_, arrays)
        return MetricRecord({"loss": loss, "accuracy": accuracy})

    known = {"target_loss": 0.05, "learning_rate": RATE, "clock": federation.clock}
    planned = Planned(strategy, store=f"sqlite:///{folder}/fedplan.db", **(known | options))
    result = planned.start(
        federation.grid, federation.initial, num_rounds=rounds, evaluate_fn=evaluate_fn,
        **(start or {}),
    )  # fmt: skip
    return planned, result


def losses(result):
    return [one["loss"] for one in result.evaluate_metrics_serverapp.values()]


def stored(folder):
    with Store(f"sqlite:///{folder}/fedplan.db", readonly=True) as store:
        return [run for one in store.experiments() for run in store.find_runs(one.settings)]


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_trains_by_turns(federation, tmp_path, name):
    planned, result = train(federation, tmp_path, STRATEGIES[name]())
    assert isinstance(planned, Strategy) and planned.status == "rounds"
    found = losses(result)
    assert min(found) < 0.75 * found[0] and math.isfinite(found[-1])
    (run,) = stored(tmp_path)
    assert len({record.cohort for record in run.rounds[1:]}) > 2  # groups take turns
    assert all(record.signal is not None for record in run.rounds[1:])
    assert result.arrays["weights"].numpy().dtype == np.float32


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_killed_server_goes_on_with_what_the_strategy_remembers(logistic, tmp_path, name):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    make = partial(train, rounds=8)
    np.random.seed(1)  # noqa: NPY002 - of the noise of Flower's differential privacy
    _, result = make(make_federation(logistic), whole, STRATEGIES[name]())
    for kill_at in (5, 3):
        with pytest.raises(Killed):
            make(make_federation(logistic), parts, STRATEGIES[name](), kill_at=kill_at)
    _, resumed = make(make_federation(logistic), parts, STRATEGIES[name]())
    if "clipping" not in name:  # noise is drawn anew
        assert losses(resumed) == losses(result)
        one, other = (unpack(each.arrays) for each in (resumed, result))
        np.testing.assert_array_equal(one, other)
    assert len(losses(resumed)) == len(losses(result)) == 9


def flowers_own(federation, strategy, rounds, steps):
    """The losses of Flower's own loop, which waits on a clock of its own."""

    def send_and_receive(messages, *, timeout=None):
        ids = federation.grid.push_messages(list(messages))
        federation.clock.sleep(60)
        return list(federation.grid.pull_messages(ids))

    federation.grid.send_and_receive = send_and_receive
    result = strategy.start(
        federation.grid,
        federation.initial,
        num_rounds=rounds,
        train_config=ConfigRecord({"local-steps": steps, "learning-rate": RATE, "seed": 0}),
        evaluate_fn=lambda *one: MetricRecord({"loss": federation.evaluate(*one)[0]}),
    )
    return losses(result)


@pytest.mark.parametrize("name", ["FedAvg", "FedAdam", "FedMedian", "FedYogi"])
def test_with_all_clients_in_every_round_losses_are_those_of_flower(logistic, tmp_path, name):
    make = STRATEGIES[name]
    theirs = flowers_own(make_federation(logistic), make(), rounds=6, steps=5)
    _, result = train(make_federation(logistic), tmp_path, make(), rounds=6, plan=(CLIENTS, 5))
    np.testing.assert_allclose(losses(result), theirs, rtol=1e-5)


def test_shares_that_do_not_add_up_to_one_reach_the_strategy_as_longer_updates(
    federation, tmp_path
):
    class Watching(FedAvg):
        heard = ()

        def aggregate_train(self, server_round, replies):
            replies = list(replies)
            self.heard += (
                [float(next(iter(one.content.metric_records.values()))["num-examples"])
                 for one in replies],
            )  # fmt: skip
            return super().aggregate_train(server_round, replies)

    strategy = Watching(**QUIET)
    train(federation, tmp_path, strategy, rounds=12)
    (run,) = stored(tmp_path)
    assert any(abs(sum(record.shares) - 1) > 0.05 for record in run.rounds[1:])
    for record, weights in zip(run.rounds[1:], strategy.heard, strict=True):
        np.testing.assert_allclose(
            np.array(weights) / sum(weights), np.array(record.shares) / sum(record.shares)
        )


def test_fedprox_tells_the_clients_its_mu(federation, tmp_path):
    train(federation, tmp_path, STRATEGIES["FedProx"](), rounds=1)
    sent = [one for one in federation.grid.sent if one.metadata.message_type == "train"]
    assert len(sent) == CLIENTS
    for message in sent:
        config = message.content["config"]
        assert config["proximal-mu"] == 0.1 and config["local-steps"] == 10


def test_noise_of_differential_privacy_is_for_those_that_take_part(federation, tmp_path):
    strategy = private()
    train(federation, tmp_path, strategy, rounds=10)
    (run,) = stored(tmp_path)
    assert strategy.num_sampled_clients == len(run.rounds[-1].cohort) != CLIENTS


def test_a_strategy_evaluates_on_the_clients_it_wants(federation, tmp_path):
    _, result = train(federation, tmp_path, FedAvg(fraction_evaluate=0.5), rounds=2)
    evaluated = [one for one in federation.grid.sent if one.metadata.message_type == "evaluate"]
    assert len(evaluated) == 2 * CLIENTS // 2
    assert sorted(result.evaluate_metrics_clientapp) == [1, 2]
    assert result.evaluate_metrics_clientapp[2].keys() == {"eval_loss", "eval_acc"}


class Nostalgic(FedAvg):
    """Evaluates on a node that is not there, too."""

    def configure_evaluate(self, server_round, arrays, config, grid):
        asked = list(super().configure_evaluate(server_round, arrays, config, grid))
        return [*asked, Message(asked[0].content, 10**6, "evaluate")]


def test_a_node_that_is_not_there_evaluates_nothing(federation, tmp_path):
    _, result = train(federation, tmp_path, Nostalgic(), rounds=1)
    assert result.evaluate_metrics_clientapp.keys() == {1}


def test_hooks_of_ones_own_are_called(federation, tmp_path):
    called = []

    class Own(FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            called.append(("configure_train", server_round, len(list(grid.get_node_ids()))))
            return super().configure_train(server_round, arrays, config, grid)

        def aggregate_train(self, server_round, replies):
            called.append(("aggregate_train", server_round, len(replies)))
            return super().aggregate_train(server_round, replies)

        def summary(self):
            called.append("summary")

    def metrics(records, _key):
        return MetricRecord({"records": len(records)})

    strategy = Own(train_metrics_aggr_fn=metrics, **QUIET)
    _, result = train(federation, tmp_path, strategy, rounds=1)
    assert called == ["summary", ("configure_train", 1, 20), ("aggregate_train", 1, 20)]
    assert result.train_metrics_clientapp == {1: {"records": 20}}


def test_weights_by_another_key_are_the_clients_own(federation, tmp_path):
    def alike(_, reply):
        reply.content["metrics"]["ones"] = 1
        return reply

    for node in federation.grid.nodes.values():
        node.tamper = alike
    train(federation, tmp_path, FedAvg(weighted_by_key="ones", **QUIET), rounds=1, plan=(5, 3))
    (run,) = stored(tmp_path)
    assert run.rounds[1].shares == (0.2,) * 5


class OwnLoop(FedAvg):
    def start(self, *words, **options):
        return super().start(*words, **options)


REFUSED = [
    (partial(FedAvg, fraction_train=0.5), r"fraction_train=0.5\) cannot be honoured.*max_clients"),
    (partial(FedAvg, min_train_nodes=4), r"min_train_nodes=4\).*min_clients_per_round=4"),
    (partial(FedAvg, min_available_nodes=9), r"min_available_nodes=9\).*min_clients=9"),
    (OwnLoop, r"OwnLoop.start cannot be honoured.*evaluate_fn"),
    (lambda: "FedAvg", "must be one of Flower's Message API"),
    (lambda: PlannedFedAvg(target_loss=1.0), "must be one of Flower's Message API"),
    (lambda: DifferentialPrivacyServerSideFixedClipping(OwnLoop(), 1.0, 1.0, 5), r"OwnLoop\.start"),
]


@pytest.mark.parametrize(("make", "reason"), REFUSED)
def test_what_cannot_be_honoured_is_refused_by_name(make, reason):
    with pytest.raises(InputError, match=reason):
        Planned(make(), target_loss=1.0)


def test_all_that_cannot_be_honoured_is_said_at_once():
    with pytest.raises(InputError) as refused:
        PlannedFedAvg(target_loss=1.0, fraction_train=0.5, min_train_nodes=7)
    assert "fraction_train=0.5" in str(refused.value) and "min_train_nodes=7" in str(refused.value)


def test_planned_within_another_strategy_says_to_turn_them_round(federation):
    outer = DifferentialPrivacyServerSideFixedClipping(
        PlannedFedAvg(target_loss=1.0), 1.0, 1.0, num_sampled_clients=5
    )
    with pytest.raises(FedplanError, match="Turn them round"):
        outer.start(federation.grid, federation.initial)


class Deaf(FedAvg):
    """Sends clients a config of its own."""

    def configure_train(self, server_round, arrays, config, grid):  # noqa: ARG002
        return super().configure_train(server_round, arrays, ConfigRecord({"own": 1}), grid)


class Picky(FedAvg):
    """Asks one node alone."""

    def configure_train(self, server_round, arrays, config, grid):
        return list(super().configure_train(server_round, arrays, config, grid))[:1]


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [(Deaf, "Deaf.configure_train has messages without local-steps=10"),
     (Picky, "Picky.configure_train has messages for 1 nodes, and 20 are to train")],
)  # fmt: skip
def test_a_hook_that_goes_its_own_way_is_told_so(federation, tmp_path, strategy, reason):
    with pytest.raises(FedplanError, match=reason):
        train(federation, tmp_path, strategy(**QUIET))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"learning_rate": 0.5}, "learning_rate was .*0.02.* and is now .*0.5"),
        ({"strategy": FedAdam(eta=0.5, **QUIET)}, "strategy was .*FedAvg.* and is now .*FedAdam"),
        ({"start": {"train_config": ConfigRecord({"lr": 3.0})}}, "train_config was {} and is now"),
    ],
)
def test_a_study_begun_otherwise_is_refused_and_nothing_is_overwritten(
    logistic, tmp_path, change, said
):
    federation = make_federation(logistic)
    train(federation, tmp_path, FedAvg(**QUIET), rounds=3)
    before = stored(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.npz")}
    changed = {"strategy": FedAvg(**QUIET)} | change
    with pytest.raises(InputError, match=said):
        train(federation, tmp_path, changed.pop("strategy"), rounds=6, **changed)
    assert stored(tmp_path) == before
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.npz")} == files
    _, result = train(federation, tmp_path, FedAvg(**QUIET), rounds=6)
    assert len(losses(result)) == 7
