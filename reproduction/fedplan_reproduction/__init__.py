"""Reproduction: the paper's experiments, measured beside what it has published.

`command.py` is `fedplan reproduce`; nothing else is imported before it is run.
"""
