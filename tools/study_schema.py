"""Write the JSON Schema of study files anew, docs/reference/study.schema.json.

Run it after the keys have changed: python tools/study_schema.py.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from fedplan.atomic import draft_of
from fedplan.studies.keys import TABLES

PATH = Path(__file__).parents[1] / "docs" / "reference" / "study.schema.json"


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
            for choice in key.get("anyOf", []):
                if "const" in choice:
                    choice.pop("enum", None)  # of pydantic below 2.10, which says it twice
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "fedplan study",
        "type": "object",
        "additionalProperties": False,
        "required": ["task", "training"],
        "properties": tables,
    }


if __name__ == "__main__":
    with draft_of(PATH) as draft:
        draft.write_text(json.dumps(study_schema(), indent=2) + "\n", encoding="utf-8")
