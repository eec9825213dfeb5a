"""Parts of `reproduction/participation.py`: groups that take turns, held against K at random."""
