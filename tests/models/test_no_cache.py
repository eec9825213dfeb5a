"""Somebody without a home, of a package that is not theirs: there is no place for compiled code."""

from __future__ import annotations

import subprocess
import sys

NOWHERE = """
from numba.core import caching
(getattr(caching, "CacheImpl", None) or caching._CacheImpl)._locator_classes = []
from fedplan.models.draws import draw_batches
print(draw_batches.stats.cache_path, draw_batches(1, 2, 3, 10, 4, 2).shape)
"""


def test_it_is_compiled_anew():
    done = subprocess.run([sys.executable, "-c", NOWHERE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "None (2, 4)\n"), done.stderr
