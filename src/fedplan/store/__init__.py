"""The store: one SQLite file with all results of studies, which loses no finished work.

`database.py` opens the file and guards it, `schema.py` has its tables, `store.py` what goes in and
comes out, `export.py` the files other programs read.
"""

from fedplan.store.database import DEFAULT_URL
from fedplan.store.entries import Entry, ExperimentEntry, RunEntry, StudyEntry, Versions
from fedplan.store.export import check_export, describe, export_runs
from fedplan.store.salvage import in_words, salvage
from fedplan.store.store import Store

__all__ = [
    "DEFAULT_URL",
    "Entry",
    "ExperimentEntry",
    "RunEntry",
    "Store",
    "StudyEntry",
    "Versions",
    "check_export",
    "describe",
    "export_runs",
    "in_words",
    "salvage",
]
