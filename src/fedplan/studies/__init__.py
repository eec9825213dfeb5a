"""Studies: what to learn, how and on which devices, from a TOML file; and their outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedplan.lazy import lazy_names

if TYPE_CHECKING:
    from fedplan.studies.archive import Archive as Archive
    from fedplan.studies.archive import Progress as Progress
    from fedplan.studies.cells import Cell as Cell
    from fedplan.studies.cells import RunSummary as RunSummary
    from fedplan.studies.cells import empirical_optimum as empirical_optimum
    from fedplan.studies.cells import make_cells as make_cells
    from fedplan.studies.courses import make_course as make_course
    from fedplan.studies.experiment import Experiment as Experiment
    from fedplan.studies.experiment import build_experiment as build_experiment
    from fedplan.studies.experiment import make_jobs as make_jobs
    from fedplan.studies.outcome import Outcome as Outcome
    from fedplan.studies.paper_pilots import choose_setting as choose_setting
    from fedplan.studies.paper_pilots import run_pilots as run_pilots
    from fedplan.studies.study import Study as Study
    from fedplan.studies.study_file import builtin_studies as builtin_studies
    from fedplan.studies.study_file import read_study as read_study
    from fedplan.studies.workflow import Report as Report
    from fedplan.studies.workflow import planned_problem as planned_problem
    from fedplan.studies.workflow import run_study as run_study

# On first use, for an experiment brings the compiled kernels with it, and reading a study does not.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "archive": "Archive Progress",
        "cells": "Cell RunSummary empirical_optimum make_cells",
        "courses": "make_course",
        "experiment": "Experiment build_experiment make_jobs",
        "outcome": "Outcome",
        "paper_pilots": "choose_setting run_pilots",
        "study": "Study",
        "study_file": "builtin_studies read_study",
        "workflow": "Report planned_problem run_study",
    },
)
