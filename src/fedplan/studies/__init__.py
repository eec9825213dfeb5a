"""Studies: what to learn, how and on which devices, from a TOML file; and their outcomes."""

from fedplan.studies.archive import Archive, Progress
from fedplan.studies.cells import Cell, RunSummary, empirical_optimum, make_cells
from fedplan.studies.courses import make_course
from fedplan.studies.experiment import Experiment, build_experiment, make_jobs
from fedplan.studies.outcome import Outcome
from fedplan.studies.paper_pilots import choose_setting, run_pilots
from fedplan.studies.study import Study
from fedplan.studies.study_file import builtin_studies, read_study
from fedplan.studies.workflow import Report, planned_problem, run_study

__all__ = [
    "Archive",
    "Cell",
    "Experiment",
    "Outcome",
    "Progress",
    "Report",
    "RunSummary",
    "Study",
    "build_experiment",
    "builtin_studies",
    "choose_setting",
    "empirical_optimum",
    "make_cells",
    "make_course",
    "make_jobs",
    "planned_problem",
    "read_study",
    "run_pilots",
    "run_study",
]
