"""A fitted slicer whose method is not installed here: its audit opens all the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import Array, Evaluation, InputError, State


class AbsentSlicer:
    """The saved state of a method that is not known.

    Parameters
    ----------
    state
        As it was saved; it is saved again as it is.
    """

    reads: frozenset[str] = frozenset()

    def __init__(self, state: State):
        self.name = state.name
        self.state = state
        self.rules_: tuple[Mapping[str, Any], ...] = tuple(state.facts.get("rules", ()))

    def membership(self, evaluation: Evaluation) -> Array:
        """Raise InputError: an audit folder alone never imports code."""
        raise InputError(
            f"method `{self.name}` is not installed here, so its slices cannot be found in other rows; install the "
            "package that has it, or name its module with `--plugin MODULE`"
        )

    def to_state(self) -> State:
        """What was read."""
        return self.state
