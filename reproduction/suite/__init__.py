"""The suite: tasks of different kinds, and what the best fixed K and E cost on each."""
