"""What a study file may say, and that its reference says the same."""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Literal, get_args, get_origin

from study_schema import PATH, study_schema

import fedplan.studies
from fedplan.studies import builtin_studies
from fedplan.studies.keys import KEYS, TABLES

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "studies.md"


def test_every_key_stands_in_one_table_alone():
    names = [name for table in TABLES.values() for name in table.model_fields]
    assert len(names) == len(set(names)) == len(KEYS)
    assert not set(KEYS) & set(TABLES)


def written(value):
    if value is None:
        return ""
    return "no limit" if value == math.inf else f"`{value}`"


def test_the_reference_says_what_the_tables_say():
    rows = re.findall(
        r"^\| `([a-z0-9-]+)` \| (.*?) \| (.*) \|$", REFERENCE.read_text(), re.MULTILINE
    )
    expected = []
    for name, key in KEYS.items():
        goes_with = ""
        if key.only is not None and key.only[1] != (None,):
            values = " or ".join(f"`{value}`" for value in key.only[1] if value is not None)
            goes_with = f" (With {key.only[0]} = {values}.)"
        default = "required" if key.required else written(key.default)
        expected.append((name, default, key.text + goes_with))
    assert rows == expected


def test_every_choice_is_named_in_the_text_of_its_key():
    for table in TABLES.values():
        for field in table.model_fields.values():
            if get_origin(field.annotation) is Literal:
                for choice in get_args(field.annotation):
                    assert f"`{choice}`" in field.description


def test_the_reference_has_a_section_a_table():
    sections = re.findall(r"^## `\[(.*)\]`$", REFERENCE.read_text(), re.MULTILINE)
    assert sections == list(TABLES)


def test_the_schema_for_editors_is_up_to_date_and_knows_the_builtin_studies():
    written = json.loads(PATH.read_text())
    assert written == json.loads(json.dumps(study_schema()))
    folder = Path(fedplan.studies.__file__).parent / "builtin"
    for name in builtin_studies():
        study = tomllib.loads((folder / f"{name}.toml").read_text())
        for table, keys in study.items():
            assert keys.keys() <= written["properties"][table]["properties"].keys()
