"""Explanations of a slice or an audit, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import Audit, Slice


def explanation(slice_: Slice, kind: str) -> Mapping[str, Any] | None:
    """The slice's explanation of a kind; None where it has none."""
    return next((e.to_json() for e in slice_.explanations if e.kind == kind), None)


def of_audit(audit: Audit, kind: str) -> list[Mapping[str, Any]]:
    """The audit's own explanations of a kind."""
    return [e.to_json() for e in audit.explanations if e.kind == kind]
