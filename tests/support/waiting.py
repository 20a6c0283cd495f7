"""Waiting for what a page has not done yet."""

from __future__ import annotations

import time
from typing import Any

PATIENCE = 20  # seconds


def wait_until(page: Any, holds: str, about: Any = None) -> None:
    """Wait until a function holds in a page. Playwright's own looks again by `eval`, which these pages forbid."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(holds, about):
        assert time.monotonic() < end, f"after {PATIENCE} s still not: {holds}"
        page.wait_for_timeout(50)
