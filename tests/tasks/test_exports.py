"""The data layer stands on numpy, errors and atomic alone, and exports what it says."""

from __future__ import annotations

import subprocess
import sys

import fedplan.tasks


def test_every_exported_name_is_there():
    assert fedplan.tasks.__all__ == sorted(fedplan.tasks.__all__)
    for name in fedplan.tasks.__all__:
        assert getattr(fedplan.tasks, name) is not None


def test_nothing_but_numpy_is_imported():
    code = """
import sys
before = set(sys.modules)
import fedplan.tasks
new = set(sys.modules) - before
print(*{name.split('.')[0] for name in new} - set(sys.stdlib_module_names))
print(*{name.split('.')[1] for name in new if name.startswith('fedplan.')})
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages, parts = run.stdout.splitlines()
    compiled = {"cython_runtime"}  # what modules of Cython bring along, as those of numpy 1.26
    found = {name for name in packages.split() if not name.startswith("_cython")}
    assert found - compiled == {"fedplan", "numpy"}
    assert set(parts.split()) == {"tasks", "errors", "atomic", "lazy"}
