"""What learns: models bound to the clients' data, with compiled local training.

A model is imported when it is first used, since compilers take a second to import.
"""

from typing import TYPE_CHECKING, NamedTuple

from fedplan.lazy import lazy_names

if TYPE_CHECKING:
    from fedplan.models.learner import Learner as Learner
    from fedplan.models.lenet import LeNet5 as LeNet5
    from fedplan.models.logistic import Logistic as Logistic


class Model(NamedTuple):
    """A model that study files can name: its class here, and a summary."""

    learner: str
    summary: str


MODELS = {
    "logistic": Model("Logistic", "regression, on any data"),
    "lenet5": Model("LeNet5", "images of 28 x 28 pixels"),
}

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"learner": "Learner", "lenet": "LeNet5", "logistic": "Logistic"}
)
