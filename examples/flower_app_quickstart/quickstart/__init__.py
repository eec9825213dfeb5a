"""A small network in PyTorch, in the shape of Flower's quickstart."""
