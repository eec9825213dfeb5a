"""Who trains when: one file per law, registered here by name."""

from typing import Any

from fedplan.core.setting import Participation, Setting
from fedplan.errors import FedplanError
from fedplan.participation.chosen import Chosen
from fedplan.participation.shuffled import Shuffled
from fedplan.participation.turns import Turns
from fedplan.participation.uniform_sampling import Uniform
from fedplan.participation.weighted import Weighted

LAWS: dict[str, type[Participation]] = {
    law.law: law for law in (Uniform, Shuffled, Turns, Weighted)
}

__all__ = [
    "LAWS",
    "Chosen",
    "Shuffled",
    "Turns",
    "Uniform",
    "Weighted",
    "setting_from_dict",
    "uniform",
]


def uniform(clients_per_round: int, local_steps: int) -> Setting:
    """The paper's way to train: K clients at random, E local steps.

    >>> uniform(10, 20).clients_per_round
    10
    """
    return Setting(
        participation=Uniform(clients_per_round=clients_per_round), local_steps=local_steps
    )


def setting_from_dict(values: dict[str, Any]) -> Setting:
    """The setting that `Setting.to_dict` wrote down.

    >>> setting_from_dict({"law": "uniform", "clients_per_round": 10, "local_steps": 20})
    Setting(participation=Uniform(clients_per_round=10), local_steps=20)
    """
    rest = dict(values)
    law, local_steps = rest.pop("law"), rest.pop("local_steps")
    known = LAWS | {Chosen.law: Chosen}  # a course's own, which nobody asks for by name
    if law not in known:
        raise FedplanError(f"participation={law} is not registered. Import the package it is in.")
    return Setting(
        participation=known[law](**{name: _frozen(value) for name, value in rest.items()}),
        local_steps=local_steps,
    )


def _frozen(value: Any) -> Any:
    """Lists of JSON as the tuples that values are made of."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
