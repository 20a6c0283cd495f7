"""Audits of every kind of rows, saved once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import errata
from errata import Audit
from support.kinds_of_rows import KINDS, METHODS


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Audit, Path]]:
    """An audit of each kind and its folder; made once."""
    made: dict[str, tuple[Audit, Path]] = {}

    def get(kind: str) -> tuple[Audit, Path]:
        if kind not in made:
            methods = METHODS if kind in ("plain", "texts") else ("spotlight", "high-loss")
            audit = errata.audit(KINDS[kind](), methods=methods, options={"spotlight": {"size": 0.1, "slices": 3}})
            made[kind] = audit, errata.save(audit, tmp_path_factory.mktemp(kind) / "audit")
        return made[kind]

    return get
