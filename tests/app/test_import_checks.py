"""`annotations import` takes what the app takes, and refuses what it refuses, in the same words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from errata import workflow
from errata.app.server import create_app
from errata.cli.serve import questionnaire, records_of_audit
from errata.core import Audit
from support.asking import ask
from support.command import run

GOOD = {"queue": "s1", "item": "row-1", "person": "Ada", "task": "class", "answer": 0}
ANSWERS: dict[str, dict[str, Any]] = {
    "good": {},
    "by name": {"answer": None},
    "another queue": {"queue": "of-something-else", "item": "x", "answer": 99},
    "no such row": {"item": "row-9999999"},
    "no such class": {"answer": 99},
    "no such class by name": {"answer": "unicorn"},
    "member": {"task": "member", "answer": "in"},
    "no member": {"task": "member", "answer": "maybe"},
    "unknown task": {"task": "dance"},
    "no question": {"task": "questionnaire", "answer": {"words": ["x"]}},
    "an empty name": {"person": " "},
    "a key that undoes": {"key": "undo:k1"},
}


@pytest.fixture(scope="module")
def folder(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workflow.save(audit, tmp_path_factory.mktemp("import") / "audit")


@pytest.mark.parametrize("name", ANSWERS)
def test_import_and_app_agree(name: str, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "audit")
    answer = {**GOOD, "key": "k1", **ANSWERS[name]}
    audit = workflow.load(tmp_path / "audit")
    database = tmp_path / "other.sqlite"
    with records_of_audit(audit, tmp_path / "audit", str(database)) as records:
        got = ask(create_app(audit, records, questionnaire=questionnaire()), "POST", "/api/annotations", json=answer)
        saved = [(entry.key, entry.answer) for entry in records.log()]
    whole = {
        "schema": "errata.annotations/1",
        "fingerprint": audit.evaluation.fingerprint,
        "annotations": [{**answer, "at": "2030-01-31T14:02:31Z"}],
    }
    (tmp_path / "a.json").write_text(json.dumps(whole))
    code, _, err = run("annotations", "import", tmp_path / "audit", tmp_path / "a.json")
    assert (code == 0) == (got.status_code == 200), (got.text, err)
    with records_of_audit(audit, tmp_path / "audit", None) as records:
        assert [(entry.key, entry.answer) for entry in records.log()] == saved
    if code:
        assert f"answer 1 of the file: {got.json()['detail']}; nothing was imported" in err
