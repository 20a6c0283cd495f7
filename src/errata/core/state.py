"""A fitted method as plain JSON and arrays: what is saved, and enough to be used on new rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .blocks import Array


@dataclass(frozen=True, eq=False)
class State:
    """A fitted method.

    Attributes
    ----------
    name : str
        Of the method.
    facts : mapping
        Plain JSON.
    arrays : mapping of str to array
        What is too large for JSON.
    """

    name: str
    facts: Mapping[str, Any]
    arrays: Mapping[str, Array] = field(default_factory=dict)
