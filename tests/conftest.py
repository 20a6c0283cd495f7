"""Shared by all tests: one thread per worker, audits, databases, and the helpers of `tests/support`."""

import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # several test processes share two cores

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["support.audits", "support.databases", "support.digits"]
