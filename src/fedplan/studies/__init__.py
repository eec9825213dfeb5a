"""Studies: what to learn, how and on which devices, from a TOML file.

`fedplan.studies.building` makes data, simulator and runs of one; it is imported apart, for it
brings the compiled kernels with it.
"""

from fedplan.studies.config import Study
from fedplan.studies.reading import builtin_studies, read_study

__all__ = ["Study", "builtin_studies", "read_study"]
