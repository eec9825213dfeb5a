"""Replies: the names used in messages, and validation of what clients send.

A reply is used whole or not at all. What is wrong with it is a text for people; nothing a client
sends is ever executed, unpickled, or trusted to say how large it is.
"""

import io
import math
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord
from numpy.typing import NDArray

from fedplan.core.signal import SKETCH_SIZE
from fedplan.errors import FedplanError, InputError
from fedplan.flower.epochs import Asked
from fedplan.flower.log import LOG

# Names in messages, where possible those of Flower's own strategies.
LOCAL_STEPS, LEARNING_RATE = "local-steps", "learning-rate"
SERVER_ROUND, SEED = "server-round", "seed"
NUM_EXAMPLES = "num-examples"
STEPS_DONE, HALFWAY = "fedplan-local-steps", "fedplan-halfway"
TRAIN_SECONDS, JOULES = "fedplan-train-seconds", "fedplan-joules"
WAITED_SECONDS = "fedplan-waited-seconds"  # from when the message was made to the first step
SKETCH_SEED = "sketch-seed"  # where it is sent, clients are to sketch their update half-way
WHO, NAME = "query.fedplan", "name"

MAX_EXAMPLES = 10**12
MAX_RATIO = 1000.0  # of a client's examples to the median client's: more would be the whole average
MAX_POWER_W = 1e5  # of a client, on average over a round trip
TIMER_SLACK = 1.05  # clocks of two machines do not run equally fast
TIMER_SLACK_S = 0.1
MAX_REASON = 300  # characters of a client's own words that are kept
NOT_FINITE = "its weights are not finite"
Metric = int | float | list[int] | list[float]
_MAGIC = b"\x93NUMPY\x01\x00"


class Rejected(Exception):  # noqa: N818
    """Why a reply is not used."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """A reply that has passed."""

    reply: Message
    weights: dict[str, NDArray[Any]]
    examples: float
    asked: Asked
    train_seconds: float
    joules: float | None
    metrics: dict[str, Metric]  # the app's own
    halfway: NDArray[np.float64] | None = None  # the sketch of its update half-way
    waited_seconds: float = 0.0  # by its own clock, before it began


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A reply to an evaluation that has passed."""

    reply: Message
    examples: float
    metrics: dict[str, Metric]
    loss: float


class Layout:
    """Names, shapes and types of the model's arrays: what every reply must have."""

    def __init__(self, arrays: ArrayRecord) -> None:
        problems = []
        self.arrays: dict[str, NDArray[Any]] = {}
        for name, array in arrays.items():
            value = array.numpy()
            if value.dtype.kind not in "fiub":
                problems.append(f"array {name} must hold numbers, but has dtype {value.dtype}.")
            elif not np.isfinite(value).all():
                problems.append(f"array {name} must be finite, but has NaN or infinite values.")
            self.arrays[name] = value
        if not self.arrays:
            problems.append("initial_arrays must hold at least one array, but is empty.")
        if problems:
            raise InputError(problems)
        self._headers = {name: _headers(value) for name, value in self.arrays.items()}

    def read(self, record: Mapping[str, Array]) -> dict[str, NDArray[Any]]:
        """The arrays of a reply, in the model's order."""
        if record.keys() != self.arrays.keys():
            missing = sorted(self.arrays.keys() - record.keys())
            extra = sorted(record.keys() - self.arrays.keys())
            raise Rejected(
                f"its arrays are not the model's: missing {_shown(missing)}, "
                f"unknown {_shown(extra)}"
            )
        return {name: self._read(name, record[name]) for name in self.arrays}

    def cast(self, record: Mapping[str, Array], maker: str) -> dict[str, NDArray[Any]]:
        """What a strategy has made of the model, in the model's types.

        Strategies compute as numpy does: an adaptive rate makes float64 of float32, and a mean of
        counters is no whole number.
        """
        found = {name: array.numpy() for name, array in record.items()}
        if {name: one.shape for name, one in found.items()} != {
            name: one.shape for name, one in self.arrays.items()
        }:
            raise FedplanError(
                f"{maker} has made arrays of other names or shapes than the model's: "
                f"{sorted(found)} instead of {sorted(self.arrays)}."
            )
        return {
            name: (found[name] if own.dtype.kind == "f" else np.rint(found[name])).astype(own.dtype)
            for name, own in self.arrays.items()
        }

    def _read(self, name: str, array: Array) -> NDArray[Any]:
        expected = self.arrays[name]
        declared = (array.stype, array.dtype, tuple(array.shape))
        if declared != ("numpy.ndarray", str(expected.dtype), expected.shape):
            raise Rejected(
                f"array {name} must be {expected.dtype} of shape {expected.shape}, but is declared "
                f"as {_shown(declared)}"
            )
        # Not numpy.load: the size must be right before anything is allocated, and the header is
        # one of the two that numpy would write, or refused unread.
        data = array.data
        start = len(_MAGIC) + 2
        end = start + int.from_bytes(data[len(_MAGIC) : start], "little")
        header = data[start:end].rstrip(b" \n")
        if not data.startswith(_MAGIC) or header not in self._headers[name]:
            raise Rejected(f"the content of array {name} is not what it is declared as")
        if len(data) - end != expected.nbytes:
            raise Rejected(
                f"array {name} must have {expected.nbytes} bytes, but has {len(data) - end}"
            )
        order = "FC"[self._headers[name].index(header) == 0]
        value: NDArray[Any] = np.frombuffer(data, expected.dtype, offset=end).reshape(
            expected.shape,
            order=order,  # type: ignore[call-overload]
        )
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise Rejected(NOT_FINITE)
        return value


def _headers(value: NDArray[Any]) -> tuple[bytes, bytes]:
    """What numpy.save writes before the numbers, in C and in Fortran order."""

    def header(in_fortran_order: bool) -> bytes:
        file = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            file,
            {
                "descr": np.lib.format.dtype_to_descr(value.dtype),
                "fortran_order": in_fortran_order,
                "shape": value.shape,
            },
        )
        return file.getvalue()[len(_MAGIC) + 2 :].rstrip(b" \n")

    return header(False), header(True)


class ReplyChecks:
    """Checks replies; remembers how many examples clients have, to tell what is absurd."""

    def __init__(
        self, layout: Layout, weight_key: str = NUM_EXAMPLES, *, counts_epochs: bool = False
    ) -> None:
        self.layout, self._weight_key, self._counts_epochs = layout, weight_key, counts_epochs
        # By client; what it trains on and what it evaluates on are not the same samples.
        self._trained: dict[int, float] = {}
        self._evaluated: dict[int, float] = {}
        self.dropped: Counter[int] = Counter()  # sketches that were not used, by client

    def trained(
        self, client: int, reply: Message, asked: Asked, round_trip_seconds: float
    ) -> Contribution:
        """What a client has trained; a reply that cannot be used raises `Rejected`."""
        metrics = _metrics(reply)
        examples = self._examples(client, metrics, self._trained)
        done, seconds = _number(metrics, STEPS_DONE), _number(metrics, TRAIN_SECONDS)
        if done is None and self._counts_epochs:
            # It does not time its training, so its whole round trip counts as such; the part that
            # does not grow with the steps shows when they change.
            seconds = round_trip_seconds
        elif done is None:
            raise Rejected(
                "it does not say how many local steps it did: its training loop must take its "
                "batches from fedplan.flower.steps(message, ...), in a MeasuredClientApp; or give "
                "Planned how it counts epochs, epochs=Epochs(steps=...)"
            )
        elif done != asked.steps:
            raise Rejected(f"it did {done:g} local steps, and {asked.steps} were asked for")
        most = round_trip_seconds * TIMER_SLACK + TIMER_SLACK_S
        if seconds is None or not 0 <= seconds <= most:
            raise Rejected(
                f"it says that training took {seconds} s, and its round trip took "
                f"{round_trip_seconds:.3g} s"
            )
        joules = _number(metrics, JOULES)
        if joules is not None and not 0 <= joules <= MAX_POWER_W * most:
            raise Rejected(f"it says that training took {joules:g} J in {seconds:.3g} s")
        records = reply.content.array_records
        if len(records) != 1:
            raise Rejected(f"it must hold one ArrayRecord, but holds {len(records)}")
        weights = self.layout.read(next(iter(records.values())))
        self._trained[client] = examples
        ours = {self._weight_key, STEPS_DONE, TRAIN_SECONDS, WAITED_SECONDS, JOULES, HALFWAY}
        return Contribution(
            reply=reply,
            weights=weights,
            examples=examples,
            asked=asked,
            train_seconds=min(seconds, round_trip_seconds),  # the slack is the clocks'
            joules=joules,
            metrics={
                key: value
                for key, value in metrics.items()
                if key not in ours and _is_finite(value)
            },
            halfway=self._halfway(client, metrics.get(HALFWAY)),
            waited_seconds=max(_number(metrics, WAITED_SECONDS) or 0.0, 0.0),
        )

    def drop_sketch(self, client: int, why: str) -> None:
        """Count a sketch that is not used; the client's update still is."""
        self.dropped[client] += 1
        LOG.warning("Client %d's half-way sketch is not used: %s.", client, why)

    def _halfway(self, client: int, sent: object) -> NDArray[np.float64] | None:
        """The sketch that a client has sent, if it is one."""
        if sent is None:
            return None
        if not isinstance(sent, list) or len(sent) != SKETCH_SIZE:
            self.drop_sketch(client, f"it must be {SKETCH_SIZE} numbers")
            return None
        sketch = np.array([_as_float(value) for value in sent])
        if not np.isfinite(sketch).all():
            self.drop_sketch(client, "it is not finite")
            return None
        return sketch

    def evaluated(
        self, client: int, reply: Message, loss_metric: str, accuracy_metric: str
    ) -> Evaluated:
        """What a client has evaluated; its loss may be NaN, which is the model's doing."""
        metrics = _metrics(reply)
        examples = self._examples(client, metrics, self._evaluated)
        if not isinstance(loss := metrics.get(loss_metric), int | float):
            raise Rejected(f"its {loss_metric} must be a number, but is {_shown(loss)}")
        accuracy = _number(metrics, accuracy_metric)
        if accuracy is not None and not 0 <= accuracy <= 1:
            raise Rejected(f"its {accuracy_metric} must be from 0 to 1, but is {accuracy:g}")
        self._evaluated[client] = examples
        return Evaluated(
            reply=reply,
            examples=examples,
            metrics={key: value for key, value in metrics.items() if _is_finite(value)},
            loss=_as_float(loss),
        )

    def _examples(self, client: int, metrics: MetricRecord, known: Mapping[int, float]) -> float:
        """How many examples a client says it has, checked against what others have said."""
        key = self._weight_key
        if key not in metrics:
            raise Rejected(f"its MetricRecord must have {key}, but has {_shown(sorted(metrics))}")
        examples = _number(metrics, key)
        if examples is None or not 0 < examples <= MAX_EXAMPLES:
            raise Rejected(
                f"its {key} must be above 0 and at most {MAX_EXAMPLES:g}, but is {examples}"
            )
        others = [count for other, count in known.items() if other != client]
        if len(others) >= 3 and examples > MAX_RATIO * statistics.median(others):
            raise Rejected(
                f"it says that it has {examples:g} examples, over {MAX_RATIO:g} times the median "
                "client's, which would make it the whole average"
            )
        return examples


def _metrics(reply: Message) -> MetricRecord:
    if reply.has_error():
        error = reply.error
        raise Rejected(f"it failed with error {error.code}: {clean(error.reason or '')}")
    found = list(reply.content.metric_records.values())
    if len(found) != 1:
        raise Rejected(f"it must hold one MetricRecord, but holds {len(found)}")
    return found[0]


def _number(metrics: MetricRecord, key: str) -> float | None:
    """A finite number; None if there is none."""
    value = metrics.get(key)
    if value is None:
        return None
    number = _as_float(value)
    if not math.isfinite(number):
        raise Rejected(f"its {key} must be a finite number, but is {_shown(value)}")
    return number


def _is_finite(value: object) -> bool:
    """Whether this is a finite number, or a list of such."""
    numbers = value if isinstance(value, list) else [value]
    return all(math.isfinite(_as_float(number)) for number in numbers)


def _as_float(value: object) -> float:
    """A number as a float; NaN for anything else."""
    try:
        return float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:  # an int beyond all floats
        return math.inf


def clean(text: str) -> str:
    """A client's words, short and on one line, so that they cannot pass for a log's own."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[-4 * MAX_REASON :]).split())
    return line if len(line) <= MAX_REASON else f"... {line[-MAX_REASON:]}"


def _shown(value: object) -> str:
    return clean(repr(value)[: 2 * MAX_REASON])
