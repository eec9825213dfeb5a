"""`python -m fedplan.cli`."""

from fedplan.cli import main

main()
