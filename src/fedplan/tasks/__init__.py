"""What is learnt: data sets, and how clients share them; numpy only."""

from fedplan.tasks.dataset import FederatedData
from fedplan.tasks.files import read_data
from fedplan.tasks.mnist import Digits, load_mnist, mnist_mini
from fedplan.tasks.mnist_download import fetch_mnist
from fedplan.tasks.partition import Assignment, by_sizes, dirichlet, federate, iid, power_law_sizes
from fedplan.tasks.synthetic_data import synthetic
from fedplan.tasks.two_labels import two_labels_balanced, two_labels_shards

__all__ = [
    "Assignment",
    "Digits",
    "FederatedData",
    "by_sizes",
    "dirichlet",
    "federate",
    "fetch_mnist",
    "iid",
    "load_mnist",
    "mnist_mini",
    "power_law_sizes",
    "read_data",
    "synthetic",
    "two_labels_balanced",
    "two_labels_shards",
]
