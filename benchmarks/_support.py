"""Puts tests/ on the path: a benchmark that imports this first may import `support`, which tests share with it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
