"""Objective: the value of a second, a joule and a participation, by weight or by prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedplan.core.fleet import Fleet, FloatArray
from fedplan.errors import LARGEST, InputError, amount_problems, refuse
from fedplan.words import JOULES_PER_KWH, SECONDS_PER_HOUR

WEIGHTED = "weighted s and J"  # the unit of costs that weigh both


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What to minimise: a rate per second, per joule and per client that takes part in a round."""

    per_second: float
    per_joule: float
    per_client_round: float = 0.0
    unit: str = WEIGHTED

    def __post_init__(self) -> None:
        rates = (self.per_second, self.per_joule, self.per_client_round)
        most = LARGEST**2  # a product of two amounts, such as per_mb * mb_per_client_round
        if not all(0 <= rate <= most for rate in rates):
            raise InputError(f"every rate must be from 0 to {most:g}, but got {rates}.")

    @classmethod
    def weighted(cls, energy_weight: float) -> Objective:
        """The paper's (1 - gamma) seconds + gamma joules, Eq. 8.

        >>> Objective.weighted(0.25)
        Objective(per_second=0.75, per_joule=0.25, per_client_round=0.0, unit='weighted s and J')
        >>> Objective.weighted(0.0).unit, Objective.weighted(1.0).unit
        ('s', 'J')
        """
        if not 0 <= energy_weight <= 1:
            raise InputError(
                f"`0 <= energy_weight <= 1` must hold, but got energy_weight={energy_weight}. "
                "0 minimises time alone, 1 energy alone."
            )
        unit = {0.0: "s", 1.0: "J"}.get(float(energy_weight), WEIGHTED)
        return cls(per_second=1.0 - energy_weight, per_joule=float(energy_weight), unit=unit)

    @property
    def energy_weight(self) -> float | None:
        """Gamma if the objective is the paper's weighted sum; None for prices."""
        weighs = self.unit in ("s", "J", WEIGHTED) and not self.per_client_round
        return self.per_joule if weighs else None

    def of_round(self, time_s: ArrayLike, energy_j: ArrayLike, clients: ArrayLike) -> FloatArray:
        """The cost of a round of this length, energy and number of clients; arrays broadcast."""
        return np.asarray(
            self.per_second * np.asarray(time_s, dtype=np.float64)
            + self.per_joule * np.asarray(energy_j, dtype=np.float64)
            + self.per_client_round * np.asarray(clients, dtype=np.float64)
        )


def costs_nothing(fleet: Fleet, objective: Objective) -> bool:
    """Whether no setting costs anything: only energy matters, and no device reports any."""
    return objective.per_second == objective.per_client_round == 0 and (
        objective.per_joule == 0 or fleet.mean("step_energy_j") == fleet.mean("comm_energy_j") == 0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices instead of a weight: money for time, energy, participation, traffic and carbon.

    per_hour : money per hour of training (the cost of waiting, or of the server).
    per_kwh : money per kilowatt-hour that the devices use.
    per_client_round : money each time a client takes part in a round.
    per_mb, mb_per_client_round : money per megabyte, and megabytes per client and round.
    co2_g_per_kwh, per_kg_co2 : carbon intensity of the electricity, and money per kilogram of CO2.

    With a carbon intensity and no money, the cost is grams of CO2.

    >>> Prices(per_hour=3.6, per_kwh=0.36).objective().per_second
    0.001
    """

    per_hour: float = 0.0
    per_kwh: float = 0.0
    per_client_round: float = 0.0
    per_mb: float = 0.0
    mb_per_client_round: float = 0.0
    co2_g_per_kwh: float = 0.0
    per_kg_co2: float = 0.0

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.__slots__}
        problems = amount_problems(**given, or_zero=True)
        pairs = {"per_mb": "mb_per_client_round", "per_kg_co2": "co2_g_per_kwh"}
        costs = given.keys() - {"mb_per_client_round", "per_kg_co2"}  # cost nothing by themselves
        if not problems and not any(given[name] for name in costs):
            problems.append("at least one price must be > 0. Give, say, per_hour and per_kwh.")
        problems += [
            f"{price}={given[price]} has nothing to multiply. Give {amount} too."
            for price, amount in pairs.items()
            if given[price] and not given[amount]
        ]
        refuse(problems)

    def co2_g(self, energy_j: float) -> float:
        """Grams of CO2 of this much energy."""
        return energy_j / JOULES_PER_KWH * self.co2_g_per_kwh

    def objective(self) -> Objective:
        """The rates these prices amount to."""
        money_per_kwh = self.per_kwh
        money_per_kwh += self.per_kg_co2 * self.co2_g_per_kwh / 1000.0
        money = Objective(
            per_second=self.per_hour / SECONDS_PER_HOUR,
            per_joule=money_per_kwh / JOULES_PER_KWH,
            per_client_round=self.per_client_round + self.per_mb * self.mb_per_client_round,
            unit="money",
        )
        if money.per_second or money.per_joule or money.per_client_round:
            return money
        return Objective(
            per_second=0.0, per_joule=self.co2_g_per_kwh / JOULES_PER_KWH, unit="g CO2"
        )
