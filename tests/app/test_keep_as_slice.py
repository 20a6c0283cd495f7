"""A hypothesis that holds is kept as a slice from the page: in the folder, in the records, and on the pages at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import errata
from errata.app.access import Access
from errata.cli.serve import AuditSite
from support.asking import PAGE, opened, sentence
from support.command import run
from support.small_audits import image_evaluation, quick_audit

TEXT = "light = night and size > 3"
DECISION = {"slice": "s1", "decision": "accepted", "person": "Ada"}


@pytest.fixture(scope="module")
def audit() -> errata.Audit:
    return quick_audit(image_evaluation(2000))


@pytest.fixture
def folder(audit: errata.Audit, tmp_path: Path) -> Path:
    return errata.save(audit, tmp_path / "audit")


@pytest.fixture
def ask(folder: Path) -> Iterator[Any]:
    with AuditSite().open_app(folder, None, [], access=Access(("127.0.0.1",))) as app:
        yield partial(ask_app, app)


def ask_app(app: Any, method: str, path: str, **given: Any) -> httpx.Response:
    async def go() -> httpx.Response:
        way = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=way, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, **given)

    return asyncio.run(go())


def guess(ask: Any, text: str) -> Any:
    return ask("POST", "/api/hypotheses", json={"text": text, "person": "Ada"}).json()


def test_what_holds_can_be_kept_and_is_a_slice_everywhere(ask: Any, folder: Path, audit: errata.Audit) -> None:
    tested = guess(ask, TEXT)
    assert tested["verdict"] == "confirmed"
    assert (tested["can_keep"], tested["kept"]) == (True, None)
    kept = ask("POST", "/api/slices", json={"text": TEXT}).json()
    assert (kept["name"], kept["verdict"]) == (TEXT, "confirmed")
    assert errata.load(folder)[kept["id"]].name == TEXT
    page = ask("GET", f"/slice/{kept['id']}", headers=PAGE)
    assert page.status_code == 200
    assert "light = night and size &gt; 3" in page.text
    assert "light = night and size &gt; 3" in ask("GET", "/", headers=PAGE).text
    decision = {"slice": kept["id"], "decision": "accepted", "person": "Ada"}
    assert ask("POST", "/api/decisions", json={"given": decision, "seen": 0}).status_code == 200
    assert guess(ask, TEXT)["kept"] == kept["id"]
    assert len(errata.load(folder)) == len(audit) + 1


def test_a_slice_that_another_command_keeps_is_on_the_pages_at_once(ask: Any, folder: Path) -> None:
    assert ask("GET", "/slice/s99", headers=PAGE).status_code == 404
    assert ask("POST", "/api/decisions", json={"given": DECISION, "seen": 0}).status_code == 200
    code, _, err = run("test", folder, TEXT, "--keep")
    assert code == 0, err
    (added,) = [slice_ for slice_ in errata.load(folder) if slice_.name == TEXT]
    assert ask("GET", f"/slice/{added.id}", headers=PAGE).status_code == 200
    decided = ask("POST", "/api/decisions", json={"given": {**DECISION, "slice": added.id}, "seen": 0})
    assert decided.status_code == 200
    assert "Accepted" in ask("GET", "/curate", headers=PAGE).text


@pytest.mark.parametrize("damage", ["{", None])
def test_an_audit_that_is_damaged_or_gone_is_shown_as_it_was(ask: Any, folder: Path, damage: str | None) -> None:
    whole = (folder / "audit.json").read_bytes()
    (folder / "audit.json").unlink()
    if damage is not None:
        (folder / "audit.json").write_text(damage)
    assert ask("GET", "/", headers=PAGE).status_code == 200
    (folder / "audit.json").write_bytes(whole)
    assert ask("GET", "/", headers=PAGE).status_code == 200


def test_all_hypotheses_of_the_app_count(ask: Any, folder: Path, audit: errata.Audit) -> None:
    for size in (3, 4, 5):
        guess(ask, f"size > {size}")
    guess(ask, TEXT)
    assert ask("POST", "/api/slices", json={"text": TEXT}).status_code == 200
    assert errata.load(folder).settings["tested"] == audit.settings["tested"] + 4


def test_what_does_not_hold_is_refused_and_nothing_changes(ask: Any, folder: Path) -> None:
    before = (folder / "audit.json").read_bytes()
    assert guess(ask, "light = day")["can_keep"] is False
    refused = ask("POST", "/api/slices", json={"text": "light = day"})
    assert refused.status_code == 422
    assert "Only what is confirmed can be kept" in sentence(refused)
    assert "Unknown column" in sentence(ask("POST", "/api/slices", json={"text": "lite = day"}))
    assert (folder / "audit.json").read_bytes() == before


def test_a_multi_label_audit_says_where_a_slice_of_one_label_is_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (400, 2))
    site = rng.choice(["a", "b"], 400)
    predictions = labels ^ (rng.random((400, 2)) < np.where(site == "a", 0.5, 0.1)[:, None])
    evaluation = errata.Evaluation(labels=labels, predictions=predictions, metadata={"site": site}, task="multilabel")
    audit = errata.audit(evaluation, methods=["rules"])
    folder = errata.save(audit, tmp_path / "audit")
    with AuditSite().open_app(folder, None, [], access=Access(("127.0.0.1",))) as app:
        refused = ask_app(app, "POST", "/api/slices", json={"text": "site = a"})
    assert refused.status_code == 422
    assert "--task LABEL --keep" in sentence(refused)


def test_an_audit_without_a_folder_offers_nothing(audit: errata.Audit, tmp_path: Path) -> None:
    records, ask = opened(audit, tmp_path)
    with records:
        assert guess(ask, TEXT)["can_keep"] is False
        assert ask("POST", "/api/slices", json={"text": TEXT}).status_code == 409
