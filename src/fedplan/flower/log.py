"""The log of a federation, written with Flower's own so that `flwr log` shows it."""

import logging

# A child of Flower's logger has its handlers and level; under a name of our own, nothing but
# warnings would ever be seen.
LOG = logging.getLogger("flwr.fedplan")
