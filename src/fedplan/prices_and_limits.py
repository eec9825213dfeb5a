"""Prices and limits, described once for flags, study keys and pages."""

from typing import NamedTuple


class Price(NamedTuple):
    """A number >= 0: its name in `Prices`, and its meaning."""

    field: str
    text: str


class Limit(NamedTuple):
    """A number > 0 of this kind, with its name in `Constraints`."""

    kind: type[float] | type[int]
    text: str


PRICES = {
    "price_hour": Price("per_hour", "Money per hour of training."),
    "price_kwh": Price("per_kwh", "Money per kWh the devices use."),
    "price_client_round": Price("per_client_round", "Money each time a client takes part."),
    "price_mb": Price("per_mb", "Money per megabyte moved, with mb-per-client-round."),
    "mb_per_client_round": Price("mb_per_client_round", "Megabytes a client moves in a round."),
    "co2_per_kwh": Price("co2_g_per_kwh", "Grams of CO2 per kWh; alone: minimise CO2."),
    "price_co2_kg": Price("per_kg_co2", "Money per kilogram of CO2, with co2-per-kwh."),
}
LIMITS = {
    "deadline_s": Limit(float, "Seconds allowed to reach the target."),
    "energy_budget_j": Limit(float, "Joules allowed to reach the target."),
    "min_clients_per_round": Limit(int, "Smallest K a plan may have."),
    "max_clients_per_round": Limit(int, "Largest K a plan may have."),
    "min_local_steps": Limit(int, "Smallest E a plan may have."),
    "max_local_steps": Limit(int, "Largest E a plan may have."),
    "max_rounds": Limit(int, "Rounds allowed to reach the target."),
}
# A study limits its rounds in [training] instead.
STUDY_LIMITS = {name: limit for name, limit in LIMITS.items() if name != "max_rounds"}


def kebab(name: str) -> str:
    """A name as flags and study files spell it."""
    return name.replace("_", "-")
