"""Stragglers: the exact expected slowest of K clients out of N (Lemma 2).

With the devices ranked by time, the slowest of a uniform sample of K is the device of rank i with
probability C(i-1, K-1) / C(N, K). No binomial is ever formed: the chance that a sample avoids the
slowest devices shrinks by C(M-c, K) / C(M, K) at each group of c equal devices, where M devices
are as fast or faster, and that ratio is (M - K) / M for a single device.
"""

from collections.abc import Callable, Iterator

import numpy as np
import scipy  # its parts load when they are used
from numpy.typing import ArrayLike

from fedplan.core.fleet import Fleet, FloatArray, IntArray, rising_order
from fedplan.errors import InputError

# Ranks whose probability is below e^-42 are skipped: relative to the answer that is under 1e-18.
_NEGLIGIBLE = 42.0
_CHUNK = 1 << 18  # weights held at a time when many K are asked for: stays in cache


def chances_of_ranks(num_clients: int, clients_per_round: int) -> FloatArray:
    """Probability that each of N devices, slowest first, is the slowest of K; those that matter.

    >>> chances_of_ranks(3, 2).round(4).tolist()
    [0.6667, 0.3333]
    """
    slower = num_clients * -np.expm1(-_NEGLIGIBLE / clients_per_round)
    kept = int(min(slower, num_clients - clients_per_round)) + 1
    here = clients_per_round / np.arange(num_clients, num_clients - kept, -1.0)
    here[1:] *= np.cumprod(1.0 - here[:-1])
    return here


class SlowestClient:
    """The slowest client of a round at one E, for any K.

    The expected round time is `step_s(K) * E + comm_s(K)`, where step_s and comm_s are the
    expected step and communication time of whoever is slowest. Both facts the optimiser needs
    follow: the line is a tangent of T(K, E) as a function of E (T is convex in E, a mean of
    maxima of lines), and at each E the time is concave in K.

    `min_clients_per_round` is the smallest K that will be asked for; the larger it is, the fewer
    of the fastest devices can ever be the slowest of a sample, and they are not even ranked.
    `chances` may be a cached `chances_of_ranks`, which does not depend on the devices.

    >>> fleet = Fleet(step_time_s=[1.0, 2.0, 3.0], comm_time_s=[0.0, 5.0, 1.0])
    >>> SlowestClient(fleet, local_steps=1).round_time_s([1, 2, 3]).round(4).tolist()
    [4.0, 6.0, 7.0]
    """

    def __init__(
        self,
        fleet: Fleet,
        local_steps: float,
        min_clients_per_round: int = 1,
        chances: Callable[[int, int], FloatArray] = chances_of_ranks,
    ) -> None:
        self.local_steps = local_steps
        self.num_clients = len(fleet)
        ranked = _slowest_first(fleet, local_steps, min_clients_per_round)
        is_whole = ranked.size == fleet.count.size
        self.min_clients_per_round = 1 if is_whole else min_clients_per_round
        self._lines = np.empty((2, ranked.size))
        for row, seconds in zip(self._lines, (fleet.step_time_s, fleet.comm_time_s), strict=True):
            np.take(seconds, ranked, out=row, mode="clip")  # the other modes copy twice
        self._chances = chances
        self._groups = None if fleet.is_ungrouped else _Groups(fleet.count[ranked], len(fleet))

    @property
    def num_bytes(self) -> int:
        """Bytes of memory."""
        return int(self._lines.nbytes) + (0 if self._groups is None else self._groups.num_bytes)

    def step_and_comm_s(self, clients_per_round: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Expected step and communication seconds of the slowest client, one entry per K."""
        ks = np.atleast_1d(np.asarray(clients_per_round, dtype=np.int64))
        if ks.size and (ks.min() < self.min_clients_per_round or ks.max() > self.num_clients):
            raise InputError(
                f"`{self.min_clients_per_round} <= clients_per_round <= num_clients` must hold, "
                f"but got clients_per_round={int(ks.min())}..{int(ks.max())}, "
                f"num_clients={self.num_clients}."
            )
        lines = np.empty((2, ks.size))
        if self._groups is not None:
            for places, chances in self._groups.chances(ks):
                lines[:, places] = self.weighed(chances.T)
        else:
            for place, k in enumerate(ks.tolist()):
                lines[:, place] = self.weighed(self._chances(self.num_clients, k))
        return lines[0], lines[1]

    def weighed(self, chances: FloatArray) -> FloatArray:
        """Expected step and communication seconds where these are the chances of the ranks."""
        return np.asarray(self._lines[:, : chances.shape[0]] @ chances)

    def round_time_s(self, clients_per_round: ArrayLike) -> FloatArray:
        """Expected seconds of a round at this E (Eq. 13), one entry per K."""
        step_s, comm_s = self.step_and_comm_s(clients_per_round)
        return step_s * self.local_steps + comm_s


class _Groups:
    """Equal devices ranked together, slowest first."""

    def __init__(self, count: IntArray, num_clients: int) -> None:
        self._num_clients = num_clients
        self._count = count.astype(np.float64)
        # Devices slower than each group, and devices at least as fast, itself included.
        self._slower = np.cumsum(count) - count
        self._as_fast = (num_clients - self._slower).astype(np.float64)

    @property
    def num_bytes(self) -> int:
        return int(self._count.nbytes + self._slower.nbytes + self._as_fast.nbytes)

    def chances(self, ks: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Places in `ks` and the probability that each group holds the slowest; K x group."""
        rising = np.argsort(ks, kind="stable")
        start = 0
        while start < ks.size:
            # The smallest K of a chunk reaches furthest down the ranking.
            kept = self._reach(int(ks[rising[start]]))
            places = rising[start : start + max(1, _CHUNK // kept)]
            k = ks[places, np.newaxis].astype(np.float64)
            as_fast, count = self._as_fast[np.newaxis, :kept], self._count[np.newaxis, :kept]
            log_avoided = log_choose_ratio(as_fast, count, k)
            here, avoided = -np.expm1(log_avoided), np.exp(log_avoided[:, :-1])
            here[:, 1:] *= np.cumprod(avoided, axis=1, out=avoided)
            yield places, here
            start += places.size

    def _reach(self, k: int) -> int:
        """How many of the slowest groups hold all but a negligible part of the probability."""
        slower = self._num_clients * -np.expm1(-_NEGLIGIBLE / k)
        return max(
            1, int(np.searchsorted(self._slower, min(slower, self._num_clients - k), "right"))
        )


def expected_slowest(
    times_s: ArrayLike, clients_per_round: ArrayLike, count: ArrayLike = 1
) -> FloatArray:
    """E[max] of K times drawn uniformly without replacement (Lemma 2, Eq. 13), one entry per K.

    >>> expected_slowest([1.0, 2.0, 4.0], [1, 2, 3]).round(4).tolist()
    [2.3333, 3.3333, 4.0]
    """
    # A fleet whose communication takes the given times and whose steps are not counted (E = 0).
    fleet = Fleet(step_time_s=1.0, comm_time_s=times_s, count=count)
    return SlowestClient(fleet, local_steps=0).round_time_s(clients_per_round)


def log_choose_ratio(total: FloatArray, removed: FloatArray, chosen: FloatArray) -> FloatArray:
    """log(C(M - c, K) / C(M, K)) for any size, so that its exponential is good to 1e-14.

    The second difference of log-gamma is taken term by term in Stirling's series, so that
    nothing large is ever subtracted. -inf where M - c < K.

    >>> m, c, k = np.array([10.0]), np.array([3.0]), np.array([2.0])
    >>> np.exp(log_choose_ratio(m, c, k)).round(6).tolist()
    [0.466667]
    """
    possible = total - removed >= chosen
    m = np.where(possible, total, removed + chosen) + 1.0
    u, v = removed / m, chosen / m
    rest = (m - removed - chosen) / m
    joint = np.log1p(u * v / rest)
    leading = m * (rest * joint + v * np.log1p(-u) + u * np.log1p(-v)) - 0.5 * joint
    correction = (
        _stirling_error(m - removed)
        + _stirling_error(m - chosen)
        - _stirling_error(m)
        - _stirling_error(m - removed - chosen)
    )
    return np.where(possible, leading + correction, -np.inf)


def _stirling_error(y: FloatArray) -> FloatArray:
    """log-gamma(y) less Stirling's leading terms, y >= 1."""
    small = np.minimum(y, 16.0)
    leading = (small - 0.5) * np.log(small) - small + 0.5 * np.log(2 * np.pi)
    exact = scipy.special.gammaln(small) - leading
    z = 1.0 / (y * y)
    series = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188)))) / y
    return np.where(y < 16.0, exact, series)


def _slowest_first(fleet: Fleet, local_steps: float, min_clients_per_round: int) -> IntArray:
    """Entries by falling round time; only those that can matter, where that saves the sort."""
    times = fleet.round_times_s(local_steps)
    # Every entry is at least one device, so this many entries cover at least as many devices.
    reach = int(len(fleet) * -np.expm1(-_NEGLIGIBLE / min_clients_per_round)) + 2
    if reach < times.size // 4:
        top = np.argpartition(times, times.size - reach)[times.size - reach :]
        return top[rising_order(times[top])[::-1]]
    return rising_order(times)[::-1]
