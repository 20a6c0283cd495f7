"""Shared by all tests: one thread per worker, audits, databases, and the helpers of `tests/support`."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # several test processes share two cores

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["support.audits", "support.databases", "support.digits"]


@pytest.fixture(scope="session", autouse=True)
def untested_searches() -> Iterator[None]:
    """The command tests its search only where a test asks for it: that takes forty times as long as the audit."""
    from errata.workflow import self_test

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_test, "MOST_ROWS", 0)
        yield
