"""A small network in PyTorch, planned by fedplan."""
