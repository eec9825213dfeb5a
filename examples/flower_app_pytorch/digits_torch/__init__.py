"""A small federated network in PyTorch on digits."""
