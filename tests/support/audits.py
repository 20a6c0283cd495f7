"""Audits that many tests look at: computed once a session, and never changed, since audits are frozen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.core import Audit, Source
from support.small_audits import image_evaluation, quick_audit


@pytest.fixture(scope="session")
def audit() -> Audit:
    """Of 1,000 small images by one fast method; two planted groups are confirmed."""
    result = quick_audit(image_evaluation(1000))
    assert len(result.confirmed) >= 2
    return result


@pytest.fixture(scope="session")
def tree_audit() -> Audit:
    """Of the same images by Barlow, on a declared layer of the model: paths of a tree, approximated."""
    rows = image_evaluation(1000)
    declared = replace(rows, sources={name: Source(from_model=True) for name in rows.representations})
    return quick_audit(declared, method="barlow")
