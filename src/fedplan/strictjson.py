"""JSON that every program can read: values that are not finite become null."""

import json
import math
from typing import Any


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Write a value as JSON.

    >>> to_json({"loss": float("nan"), "cohort": (1, 2)})
    '{"loss": null, "cohort": [1, 2]}'
    """
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except ValueError:  # rare: nothing is copied until something is not finite
        return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
