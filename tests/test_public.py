"""The public surface: exported names are documented, and what builds on fedplan uses no others.

Public is what `docs/reference/api*.md` names; modules that these pages do not name are private.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re

import pytest
from docs.pages import ROOT

import fedplan

TEXT = "".join(
    (ROOT / "docs" / "reference" / page).read_text() for page in ("api.md", "api-packages.md")
)
PACKAGES = [
    found.name
    for found in pkgutil.walk_packages(fedplan.__path__, "fedplan.")
    if found.ispkg and hasattr(importlib.import_module(found.name), "__all__")
]
# What the repository's own programs may use besides, and why.
PRIVATE = {
    "reproduction/participation/constants.py": "varies constants of private modules",
    "reproduction/suite/constants.py": "varies constants of private modules",
    "reproduction/suite/courses.py": "gives every course the batch size of its study",
    "reproduction/suite/paper.py": "builds the table of a study by hand",
    "tools/mnist_mini.py": "makes the file that fedplan.tasks reads",
    "tools/prototype/light_grid.py": "speaks the protocol of fedplan.flower without Flower",
    "tools/prototype/setup1.py": "speaks the protocol of fedplan.flower without Flower",
    "tools/study_schema.py": "writes the schema of the tables that fedplan.studies reads",
}
ALIASES = {"FloatArray", "IntArray"}  # of numpy's types, for annotations


def is_documented(module: str, name: str) -> bool:
    if f"automodule:: {module}\n   :members:\n" in TEXT:
        return True
    return bool(re.search(rf"{re.escape(module)}\b", TEXT) and re.search(rf"\b{name}\b", TEXT))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_of_a_package_is_there_and_documented(package):
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert is_documented(package, name), name


def imported(path):
    """Every name of fedplan that a file imports, with its module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and re.match(r"fedplan(\.|$)", node.module or ""):
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("folder", ["reproduction", "tools"])
def test_what_is_built_on_fedplan_imports_documented_names_alone(folder):
    files = [path for path in (ROOT / folder).rglob("*.py") if "tests" not in path.parts]
    assert len(files) > 10
    undocumented = {
        (str(path.relative_to(ROOT)), f"{module}.{name}")
        for path in files
        for module, name in imported(path)
        if not is_documented(module, name) and name not in ALIASES
    }
    assert {found for found in undocumented if found[0] not in PRIVATE} == set()
    excused = {path for path in PRIVATE if path.startswith(f"{folder}/")}
    assert {path for path, _ in undocumented} == excused  # no exception outlives its reason
