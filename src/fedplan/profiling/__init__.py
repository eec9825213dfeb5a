"""Measuring devices: seconds and joules of a local step and of a model exchange."""

from fedplan.profiling.regression import DeviceCosts, Measured, Observation, observed_costs

__all__ = ["DeviceCosts", "Measured", "Observation", "observed_costs"]
