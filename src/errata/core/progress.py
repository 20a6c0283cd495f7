"""How long work reports its progress: one type everywhere."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]  # the stage, and the share of it that is done, from 0 to 1


def silent(stage: str, share: float) -> None:
    """Progress that nobody watches."""
