"""The built-in example: the fleet of the paper's Setup 3, and a bound measured on it."""

from fedplan.convergence.bound import Bound
from fedplan.core.fleet import Fleet, draw_fleet

# FedAvg on Synthetic(1, 1) needs c0 of about 26 b0; a0 / b0 = 3,750 is the paper's estimate.
EXAMPLE_BOUND = Bound(a0=3750.0, b0=1.0, c0=26.0)


def example_fleet() -> Fleet:
    """100 devices; every quantity normal with a standard deviation of a third of its mean."""
    return draw_fleet(
        100,
        step_time_s=(0.1, 0.1 / 3),
        comm_time_s=(2.0, 2.0 / 3),
        step_energy_j=(1e-3, 1e-3 / 3),
        comm_energy_j=(2e-2, 2e-2 / 3),
        seed=1,
    )
