"""An app with records of its own, asked without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from errata.core import Audit
from errata.people.records import Records
from support.asking import Ask, opened, other_audit


@pytest.fixture(scope="module")
def better(audit: Audit) -> Audit:
    """The same rows under a model that is right on all of them."""
    kept = audit.evaluation
    return replace(audit, evaluation=replace(kept, predictions=kept.labels, probs=None, losses=None))


@pytest.fixture
def both(audit: Audit, better: Audit, tmp_path: Path) -> Iterator[tuple[Records, Ask]]:
    records, ask = opened(audit, tmp_path, others=(other_audit("better", better),))
    with records:
        yield records, ask


@pytest.fixture
def ask(both: tuple[Records, Ask]) -> Ask:
    return both[1]


@pytest.fixture
def records(both: tuple[Records, Ask]) -> Records:
    return both[0]
