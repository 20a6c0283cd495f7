"""A correction that the folder has: it is not made twice, and not shown when its labels no longer stand."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is generated")


import digits
from errata.core.labelled import NONE
from errata.defusing import correction
from errata.region_pages import load_run
from errata.tensors import state_fingerprint


def sources(pictures: np.ndarray) -> np.ndarray:
    """An oracle that knows the small digits: the nearest of all of them."""
    images, labels = digits.pictures()
    known, asked = (part.reshape(len(part), -1).astype(float) for part in (images, pictures))
    return labels[np.square(asked[:, None] - known).sum(axis=2).argmin(axis=1)]


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    found = digits.go_on(tmp_path_factory.mktemp("defuse") / "run", oracle=sources)
    assert found.stage == "corrected"
    return found


def never(*given, **more):
    raise AssertionError("this was done before")


def test_a_correction_is_not_made_twice(ended, tmp_path, monkeypatch):
    """The same labels and rows: what the folder has of it, and the same model. Other rows are another question."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    monkeypatch.setattr(correction, "sweep", never)
    again = digits.go_on(folder, oracle=sources)
    assert again.comparison == ended.comparison
    assert state_fingerprint(again.model) == state_fingerprint(ended.model)
    learnt, held, _ = digits.parts()
    monkeypatch.setattr(digits, "parts", lambda: (learnt, held, held))
    with pytest.raises(AssertionError, match="done before"):
        digits.go_on(folder, oracle=sources)


def test_a_correction_by_labels_that_no_longer_stand_is_not_shown(ended, tmp_path):
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    assert load_run(folder).comparison is not None
    (folder / "votes.json").unlink()
    found = digits.go_on(folder, oracle=lambda pictures: np.full(len(pictures), NONE))
    assert found.stage == "nothing to correct"
    assert load_run(folder).comparison is None
