"""A saved audit whose rules somebody changed is refused when it is read, not where rows are placed by them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import errata
from errata.core import InputError
from support.small_audits import image_evaluation, quick_audit

FIELDS = {
    "no mapping": ("the rule of a slice must be a mapping", lambda rule: "x"),
    "scope of text": ("the scope of a slice must map", lambda rule: {**rule, "scope": ["label"]}),
    "condition of a number": ("must name a column", lambda rule: {**rule, "kind": "conditions", "conditions": [3]}),
    "bound of a list": (
        "compares with texts and numbers",
        lambda rule: {**rule, "kind": "conditions", "conditions": [{"column": "size", "low": [1]}]},
    ),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "audit"
    errata.save(quick_audit(image_evaluation(600), method="rules"), folder)
    (folder / "checksums.json").unlink()
    return folder


def change(folder: Path, name: str, edit: Callable[[Any], None]) -> None:
    path = folder / name
    facts = json.loads(path.read_text())
    edit(facts)
    path.write_text(json.dumps(facts))


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "audit"))


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("where", ["audit.json", "slicers/rules.json"])
def test_a_changed_rule_is_refused(field: str, where: str, folder: Path) -> None:
    words, damaged = FIELDS[field]

    def edit(facts: Any) -> None:
        if where == "audit.json":
            facts["slices"][0]["rule"] = damaged(facts["slices"][0]["rule"])
        else:
            facts["rules"][0] = damaged(facts["rules"][0])

    errata.load(folder)
    change(folder, where, edit)
    with pytest.raises(InputError, match=words):
        errata.load(folder)


def test_a_slice_that_its_slicer_has_not_is_refused(folder: Path) -> None:
    change(folder, "audit.json", lambda facts: facts["slices"][0].update(column=99))
    with pytest.raises(InputError, match="is slice 99 of `rules`, which has no such slice"):
        errata.load(folder)
