"""Fleet: what a local step and a model exchange cost on every device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedplan.errors import LARGEST, SMALLEST, InputError, InputProblem, refuse, require, unmet
from fedplan.frames import make_frame
from fedplan.notebook import table_html
from fedplan.words import in_words

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

QUANTITIES = ("step_time_s", "comm_time_s", "step_energy_j", "comm_energy_j")
MAX_CLIENTS = 10**12  # counts stay exact in a float64 with room to multiply
_FEW = 4096  # below this a plain sort is as quick


def requirement_of(column: str) -> str:
    """State what a value of this column must satisfy; the single wording used in every error."""
    if column == "count":
        return "must be a positive integer (at most 10^12)"
    return f"must be a finite number {'>' if column == 'step_time_s' else '>='} 0"


def invalid(column: str, values: FloatArray, *, slack: float = 1.0) -> NDArray[np.bool_]:
    """Mask of the values that break `requirement_of` (NaN and infinity included).

    slack : the factor by which computed numbers may exceed the range of those that users state.
    """
    if column == "count":
        fits = (values >= 1) & (values == np.floor(values)) & (values <= MAX_CLIENTS)
    else:
        fits = (values >= SMALLEST / slack) & (values <= LARGEST * slack)
        if column != "step_time_s":
            fits |= values == 0
    return np.asarray(~fits)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fleet:
    """The devices of a federation; entry j stands for `count[j]` identical devices.

    step_time_s, comm_time_s : seconds of one local SGD step (t_k,p) and of one download plus
        upload of the model (t_k,m).
    step_energy_j, comm_energy_j : joules of the same (e_k,p and e_k,m); 0 where unknown.
    samples : training samples of each device of an entry (default: equally many on all).
    count : how many identical devices each entry stands for (default 1).
    device : optional names, one per entry.

    >>> fleet = Fleet(step_time_s=[0.1, 0.3], comm_time_s=[2.0, 1.0], count=[3, 1])
    >>> len(fleet), round(fleet.mean("step_time_s"), 3)
    (4, 0.15)
    """

    step_time_s: FloatArray
    comm_time_s: FloatArray
    step_energy_j: FloatArray
    comm_energy_j: FloatArray
    samples: FloatArray
    count: IntArray
    device: tuple[str, ...] | None
    # The rankings that `rankings.with_cache` keeps; None for any other fleet.
    cache: Any = field(init=False)
    # Every formula needs these, and computing them for a million devices takes a while.
    _num_clients: int = field(init=False)
    _means: dict[str, float] = field(init=False)

    def __init__(
        self,
        *,
        step_time_s: ArrayLike,
        comm_time_s: ArrayLike,
        step_energy_j: ArrayLike = 0.0,
        comm_energy_j: ArrayLike = 0.0,
        samples: ArrayLike = 1.0,
        count: ArrayLike = 1,
        device: Sequence[str] | None = None,
    ) -> None:
        columns = {
            "step_time_s": step_time_s,
            "comm_time_s": comm_time_s,
            "step_energy_j": step_energy_j,
            "comm_energy_j": comm_energy_j,
            "samples": samples,
            "count": count,
        }
        arrays = _broadcast(columns)
        problems = _problems(arrays, device)
        refuse(problems)
        for name, values in arrays.items():
            owned = values.astype(np.int64 if name == "count" else np.float64)
            owned.flags.writeable = False
            object.__setattr__(self, name, owned)
        object.__setattr__(self, "device", None if device is None else tuple(device))
        object.__setattr__(self, "cache", None)
        object.__setattr__(self, "_num_clients", int(self.count.sum()))
        weights = None if self.is_ungrouped else self.count
        means = {
            name: float(np.average(getattr(self, name), weights=weights)) for name in QUANTITIES
        }
        object.__setattr__(self, "_means", means)

    def __len__(self) -> int:
        """Number of devices N, counts included."""
        return self._num_clients

    @property
    def is_ungrouped(self) -> bool:
        """Whether every entry is a single device."""
        return self.count.size == len(self)

    def mean(self, quantity: str) -> float:
        """Average over the devices: t_p, t_m, e_p or e_m of the paper."""
        return self._means[quantity]

    @property
    def has_samples(self) -> bool:
        """Whether devices are known to hold different amounts of data."""
        return bool((self.samples != self.samples[0]).any())

    def with_samples(self, samples: FloatArray) -> Fleet:
        """The same devices with these numbers of samples, one per device.

        >>> Fleet(step_time_s=[1.0, 2.0], comm_time_s=0.5).with_samples(np.array([3, 1])).samples
        array([3., 1.])
        """
        if samples.shape != (len(self),):
            raise InputError(
                f"`len(samples) == num_clients` must hold, but got {samples.size} numbers for "
                f"{len(self):,} devices. Give one number per device."
            )
        columns = {name: self.per_device(getattr(self, name)) for name in QUANTITIES}
        device = None if self.device is None else np.repeat(self.device, self.count).tolist()
        return Fleet(**columns, samples=samples, device=device)

    def per_device(self, values: FloatArray) -> FloatArray:
        """One value per entry, written out to one per device."""
        return np.repeat(values, self.count)

    def round_energy_j(self, local_steps: float) -> FloatArray:
        """Joules each entry needs for one round: e_k = e_k,p E + e_k,m."""
        return self.step_energy_j * local_steps + self.comm_energy_j

    def round_times_s(self, local_steps: float) -> FloatArray:
        """Seconds each entry needs for one round (Eq. 3): t_k = t_k,p E + t_k,m."""
        return self.step_time_s * local_steps + self.comm_time_s

    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, standard deviation, minimum, median, 95th percentile and maximum of each quantity.

        >>> fleet = Fleet(step_time_s=[1.0, 2.0], comm_time_s=0.5, count=[1, 3])
        >>> fleet.summary()["step_time_s"]["median"]
        2.0
        """
        return {quantity: self._summary_of(quantity) for quantity in QUANTITIES}

    def _summary_of(self, quantity: str) -> dict[str, float]:
        values: FloatArray = getattr(self, quantity)
        order = rising_order(values)
        ranked, reached = values[order], np.cumsum(self.count[order])
        mean = self.mean(quantity)
        total = float(reached[-1])

        def quantile(q: float) -> float:
            return float(ranked[np.searchsorted(reached, q * total)])

        return {
            "mean": mean,
            "sd": float(np.sqrt(np.average((values - mean) ** 2, weights=self.count))),
            "min": float(ranked[0]),
            "median": quantile(0.5),
            "p95": quantile(0.95),
            "max": float(ranked[-1]),
        }

    def to_frame(self) -> Any:
        """A data frame with one row per entry: of polars if installed, else of pandas.

        >>> Fleet(step_time_s=[1.0, 2.0], comm_time_s=0.5, count=[1, 3]).to_frame().shape
        (2, 5)
        """
        columns: dict[str, Any] = {} if self.device is None else {"device": list(self.device)}
        return make_frame(columns | {name: getattr(self, name) for name in (*QUANTITIES, "count")})

    def _repr_html_(self) -> str:
        found = self.summary()
        head = ("", *found[QUANTITIES[0]])
        rows = [(name, *map(in_words, values.values())) for name, values in found.items()]
        return table_html(f"Fleet of {len(self):,} devices", head, rows)

    def __repr__(self) -> str:
        shown = ", ".join(f"mean {name}={self.mean(name):.4g}" for name in QUANTITIES)
        return f"<Fleet of {len(self):,} devices: {shown}>"


def rising_order(values: FloatArray) -> IntArray:
    """The positions of numbers >= 0 from the smallest to the largest.

    >>> rising_order(np.array([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    if values.size < _FEW:
        return np.argsort(values, kind="stable")
    # The bits of floats >= 0 rank as integers do. Radix sort takes 16 bits at a time: two passes
    # give nearly the whole order, and a merge sort, which is quick on sorted runs, the rest.
    bits = np.ascontiguousarray(values).view(np.uint64)
    bits = bits - bits.min()
    bits >>= np.uint64(max(int(bits.max()).bit_length() - 32, 0))
    order = np.argsort(bits.astype(np.uint16), kind="stable")
    order = order[np.argsort((bits >> np.uint64(16)).astype(np.uint16)[order], kind="stable")]
    return order[np.argsort(values[order], kind="stable")]


def draw_fleet(
    num_clients: int,
    *,
    step_time_s: tuple[float, float],
    comm_time_s: tuple[float, float],
    step_energy_j: tuple[float, float] = (0.0, 0.0),
    comm_energy_j: tuple[float, float] = (0.0, 0.0),
    law: Literal["normal", "lognormal"] = "normal",
    seed: int = 0,
) -> Fleet:
    """Draw a fleet; each quantity is a (mean, standard deviation), drawn independently.

    `normal` is the paper's simulation: normal, drawn again until positive. `lognormal` has the
    mean and standard deviation asked for, and the heavy tail of real stragglers.

    >>> fleet = draw_fleet(100, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.6), seed=1)
    >>> len(fleet), bool(fleet.step_time_s.min() > 0)
    (100, True)
    """
    spreads = {
        "step_time_s": step_time_s,
        "comm_time_s": comm_time_s,
        "step_energy_j": step_energy_j,
        "comm_energy_j": comm_energy_j,
    }
    problems = [
        f"`mean > 0 and sd >= 0` (or both 0) must hold for {name}, but got (mean, sd)={spread}."
        for name, spread in spreads.items()
        if not (all(0 <= each <= LARGEST for each in spread) and (spread[0] or not spread[1]))
    ]
    problems += unmet({"num_clients >= 1": num_clients >= 1}, num_clients=num_clients)
    if law not in ("normal", "lognormal"):
        problems.append(f"law must be 'normal' or 'lognormal', but got {law!r}.")
    refuse(problems)
    columns = {
        name: _draw(num_clients, *spread, law, np.random.default_rng([seed, position]))
        for position, (name, spread) in enumerate(spreads.items())
    }
    return Fleet(**columns, device=None)


def with_stragglers(fleet: Fleet, share: float, slowdown: float) -> Fleet:
    """The fleet with a share of its entries slower by a factor, both in steps and in exchanges.

    They are the first entries, which are as good as any in a drawn fleet. Energy is unchanged.

    >>> fleet = with_stragglers(Fleet(step_time_s=[1.0] * 4, comm_time_s=2.0), 0.25, 10.0)
    >>> fleet.step_time_s.tolist(), fleet.comm_time_s.tolist()
    ([10.0, 1.0, 1.0, 1.0], [20.0, 2.0, 2.0, 2.0])
    """
    rules = {"0 <= share <= 1": 0 <= share <= 1}
    rules |= {"slowdown >= 1 and finite": 1 <= slowdown < np.inf}
    require(rules, share=share, slowdown=slowdown)
    factor = np.where(np.arange(fleet.count.size) < round(share * fleet.count.size), slowdown, 1.0)
    slower = {name: getattr(fleet, name) * factor for name in ("step_time_s", "comm_time_s")}
    return replace(fleet, **slower)


def _draw(size: int, mean: float, sd: float, law: str, random: np.random.Generator) -> FloatArray:
    if mean == 0 or sd == 0:
        return np.full(size, float(mean))
    if law == "lognormal":
        variance = np.log1p((sd / mean) ** 2)
        return random.lognormal(np.log(mean) - variance / 2, np.sqrt(variance), size)
    values = random.normal(mean, sd, size)
    while (again := np.flatnonzero(values <= 0)).size:
        values[again] = random.normal(mean, sd, again.size)
    return values


def _broadcast(columns: dict[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
    arrays, problems = {}, []
    for name, values in columns.items():
        try:
            arrays[name] = np.atleast_1d(np.asarray(values, dtype=np.float64))
        except (TypeError, ValueError):
            problems.append(InputProblem(column=name, message="must be numbers."))
    refuse(problems)
    sizes = {name: array.shape for name, array in arrays.items() if array.shape != (1,)}
    if len(set(sizes.values())) > 1 or any(len(shape) != 1 for shape in sizes.values()):
        raise InputError(
            f"every column must have the same length, but got shapes {sizes}. "
            "Give one value per device, or one number for all of them."
        )
    size = max(array.size for array in arrays.values()) if sizes else 1
    if min(array.size for array in arrays.values()) == 0:
        raise InputError("a fleet needs at least one device, but got none.")
    return {name: np.broadcast_to(array, size) for name, array in arrays.items()}


def _problems(arrays: dict[str, FloatArray], device: Sequence[str] | None) -> list[InputProblem]:
    messages = {}
    for name, values in arrays.items():
        wrong = np.flatnonzero(invalid(name, values, slack=1e6))
        if wrong.size:
            messages[name] = (
                f"{requirement_of(name)}, but entry {wrong[0]} is {values[wrong[0]]} "
                f"({wrong.size} such entries)."
            )
    count = arrays["count"]
    if not arrays["samples"].any():
        messages["samples"] = "must be > 0 on at least one device."
    if "count" not in messages and count.sum() > MAX_CLIENTS:
        messages["count"] = f"adds up to over {MAX_CLIENTS:,} devices."
    if device is not None and len(device) != count.size:
        messages["device"] = (
            f"must have one name per entry, but got {len(device)} names for {count.size} entries."
        )
    return [InputProblem(column=name, message=message) for name, message in messages.items()]
