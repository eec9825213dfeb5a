"""Reproduction: the paper's experiments, measured beside what it has published."""

from fedplan.studies.reproduction.design import DESIGNS, SETUPS, Design
from fedplan.studies.reproduction.folder import write_folder
from fedplan.studies.reproduction.published import published_pilots
from fedplan.studies.reproduction.reproduce import (
    Prepared,
    Reproduction,
    prepare,
    reproduce,
    study_of,
)

__all__ = [
    "DESIGNS",
    "SETUPS",
    "Design",
    "Prepared",
    "Reproduction",
    "prepare",
    "published_pilots",
    "reproduce",
    "study_of",
    "write_folder",
]
