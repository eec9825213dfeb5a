"""What to do next: one file per course, registered here by name."""

from collections.abc import Callable

from fedplan.core.course import Course
from fedplan.course.adacomm import AdaComm
from fedplan.course.adaptive_tau import AdaptiveTau
from fedplan.course.fedtune import FedTune
from fedplan.course.infocom22 import Infocom22
from fedplan.course.online import Online
from fedplan.course.oort import Oort
from fedplan.course.published import fixed

# Each is called with `problem`, whose fleet has the samples of every client, and with numbers of
# its own, all of them optional.
COURSES: dict[str, Callable[..., Course]] = {
    "fixed": fixed,
    "online": Online,
    FedTune.name: FedTune,
    AdaComm.name: AdaComm,
    AdaptiveTau.name: AdaptiveTau,
    Oort.name: Oort,
    Infocom22.name: Infocom22,
}

__all__ = ["COURSES", "AdaComm", "AdaptiveTau", "FedTune", "Infocom22", "Online", "Oort", "fixed"]
