"""Epochs: clients that count passes over their data instead of local steps.

Their update half-way is not known, so they make all of their steps and half of them alternately.
"""

from dataclasses import dataclass

from fedplan.errors import require


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client is asked for.

    half : whether it is half of what it usually is; None if it is never halved.
    """

    steps: int
    epochs: float = 0.0
    half: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """How to ask clients that count epochs. All make the same number, whatever data they have.

    steps : local steps of an epoch: the examples of an average client over its batch size.
    key : the name of the number of epochs in a message's config.
    whole : whether that must be a whole number, as for `range`.

    >>> Epochs(steps=47).ask(local_steps=200, half=False)
    Asked(steps=188, epochs=4, half=False)
    >>> Epochs(steps=47).ask(local_steps=200, half=True)
    Asked(steps=94, epochs=2, half=True)
    """

    steps: int
    key: str = "local-epochs"
    whole: bool = True

    def __post_init__(self) -> None:
        require({"steps >= 1": self.steps >= 1}, steps=self.steps)

    def ask(self, local_steps: int, *, half: bool) -> Asked:
        """What a client is to do for these steps, or for half of them.

        Whole epochs are an even number, so that half of them are whole, or one, which is not
        halved.
        """
        wanted = local_steps / self.steps
        if not self.whole:
            epochs = wanted / 2 if half else wanted
            return Asked(max(1, round(epochs * self.steps)), epochs, half)
        pairs = round(wanted / 2)
        whole = (pairs if half else 2 * pairs) or 1
        return Asked(whole * self.steps, whole, half if pairs else None)
