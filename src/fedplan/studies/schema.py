"""JSON Schema of study files: docs/reference/study.schema.json is made by it."""

from __future__ import annotations

import math
from typing import Any

from fedplan.studies.keys import TABLES


def study_schema() -> dict[str, Any]:
    """JSON Schema of a study file, for editors that complete and check TOML."""
    tables = {
        name: model.model_json_schema(by_alias=True) | {"title": f"[{name}]"}
        for name, model in TABLES.items()
    }
    for table in tables.values():
        for key in table["properties"].values():
            key.pop("only", None)
            key.pop("title", None)
            if key.get("default") == math.inf:
                del key["default"]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "fedplan study",
        "type": "object",
        "additionalProperties": False,
        "required": ["task", "training"],
        "properties": tables,
    }
