"""Device measurements: seconds and joules of a local step and of a model exchange."""

from fedplan.profiling.meters import Meter, find_meter, metered
from fedplan.profiling.observed import DeviceCosts, ObservedCosts, fleet_of, observed_costs
from fedplan.profiling.profile import Profile, profile_device, read_row, write_row
from fedplan.profiling.regression import Measured
from fedplan.profiling.timing import StepTiming, time_steps
from fedplan.profiling.transfer import ExchangeTiming, open_listener, serve, time_exchanges

__all__ = [
    "DeviceCosts",
    "ExchangeTiming",
    "Measured",
    "Meter",
    "ObservedCosts",
    "Profile",
    "StepTiming",
    "find_meter",
    "fleet_of",
    "metered",
    "observed_costs",
    "open_listener",
    "profile_device",
    "read_row",
    "serve",
    "time_exchanges",
    "time_steps",
    "write_row",
]
