"""Fast FedAvg: compiled kernels, one thread a run."""
