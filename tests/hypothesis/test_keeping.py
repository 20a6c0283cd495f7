"""A hypothesis that holds becomes a slice: counted with all others, explained, saved whole, applied."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import errata
from errata import store, workflow
from support.command import run

KIDS = "age < 9"


def rows(n: int = 4000, seed: int = 0) -> errata.Evaluation:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, n)
    x = rng.normal(size=(n, 3))
    labels = rng.integers(0, 2, n)
    bad = np.where(age < 9, 0.5, np.where(x[:, 0] > 1.5, 0.6, 0.1))
    predictions = labels ^ (rng.random(n) < bad)
    metadata = {"age": age, "site": rng.choice(["north", "south"], n)}
    return errata.Evaluation(labels=labels, predictions=predictions, representations={"x": x}, metadata=metadata)


@pytest.fixture(scope="module")
def audit() -> errata.Audit:
    return errata.audit(rows(), methods=["gmm"])


@pytest.fixture
def folder(audit: errata.Audit, tmp_path: Path) -> Path:
    return errata.save(audit, tmp_path / "audit")


def added(before: errata.Audit, after: errata.Audit) -> errata.Slice:
    (slice_,) = [slice_ for slice_ in after.slices if slice_.id not in {s.id for s in before.slices}]
    return slice_


def test_a_kept_hypothesis_is_a_slice_like_one_given_before(audit: errata.Audit) -> None:
    kept = workflow.keep(audit, KIDS)
    slice_ = added(audit, kept)
    given = errata.audit(rows(), methods=["gmm"], slices={KIDS: KIDS})
    same = next(other for other in given.slices if other.name == KIDS)
    assert kept.settings["tested"] == given.settings["tested"] == audit.settings["tested"] + 1
    assert (slice_.name, slice_.verdict, slice_.method) == (same.name, same.verdict, same.method)
    for name in ("n", "errors", "gap", "interval", "p_value", "power"):
        assert getattr(slice_.confirm, name) == getattr(same.confirm, name), name
    assert {explanation.kind for explanation in slice_.explanations} == {e.kind for e in same.explanations}
    assert [s.name for s in kept.slices] == [s.name for s in given.slices], "in the order of importance"


def test_the_others_are_judged_anew_as_in_an_audit_of_the_larger_family(audit: errata.Audit) -> None:
    kept = workflow.keep(audit, KIDS)
    given = {slice_.name: slice_ for slice_ in errata.audit(rows(), methods=["gmm"], slices={KIDS: KIDS}).slices}
    for slice_ in audit.slices:
        now = kept[slice_.id]
        assert now.name == slice_.name
        assert now.confirm.interval == given[slice_.name].confirm.interval
        assert now.verdict == given[slice_.name].verdict
    wider = workflow.keep(audit, KIDS, hypotheses=30)
    low, high = audit.slices[0].confirm.interval
    now_low, now_high = wider[audit.slices[0].id].confirm.interval
    assert now_low < low
    assert high < now_high


def test_it_takes_no_name_of_another_slice() -> None:
    rng = np.random.default_rng(0)
    site = rng.choice(["north", "south", "east", "west"], 2500)
    near = (site == "north") & (rng.random(2500) < 0.8)
    x = rng.normal(size=(2500, 3)) + 8 * near[:, None]
    labels = rng.integers(0, 2, 2500)
    predictions = labels ^ (rng.random(2500) < np.where(near, 0.6, 0.1))
    evaluation = errata.Evaluation(
        labels=labels, predictions=predictions, representations={"x": x}, metadata={"site": site}
    )
    audit = errata.audit(evaluation, methods=["gmm"], options={"gmm": {"components": 2}})
    assert [slice_.name for slice_ in audit] == ["site = north"], "most of them, but not all"
    kept = workflow.keep(audit, "site = north")
    names = {slice_.id: slice_.name for slice_ in kept}
    assert names == {"s1": "site = north", "s2": "site = north, your own slice"}
    assert kept["s2"].explanation(errata.explain.names.Name).text == names["s2"]


def test_all_hypotheses_count_and_each_once(audit: errata.Audit) -> None:
    tested = audit.settings["tested"]
    first = workflow.keep(audit, KIDS, hypotheses=5)
    assert first.settings["tested"] == tested + 5
    second = workflow.keep(first, "age >= 80", hypotheses=7)
    assert second.settings["tested"] == tested + 7
    assert len(second.slicers["own"].slices) == 2
    third = workflow.keep(second, "age < 4 and site = north")  # one that was counted before
    assert third.settings["tested"] == tested + 7


def test_chance_is_not_kept_as_confirmed_among_many(audit: errata.Audit) -> None:
    kept = workflow.keep(audit, "site = north", hypotheses=10)
    assert added(audit, kept).verdict != "confirmed"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (KIDS, "holds the same rows already"),
        ("label = 1 and prediction = 0", "reads"),
        ("age >= 0", "more than half"),
        ("agee < 9", "Did you mean “age”"),
    ],
)
def test_what_cannot_be_kept_says_why(audit: errata.Audit, text: str, words: str) -> None:
    with pytest.raises(errata.ErrataError, match=words):
        workflow.keep(workflow.keep(audit, KIDS), text)


def test_a_folder_has_it_everywhere(audit: errata.Audit, folder: Path) -> None:
    _, slice_ = workflow.keep_in_folder(folder, KIDS)
    loaded = errata.load(folder)
    assert loaded[slice_.id].name == KIDS
    assert slice_.id in pq.read_table(folder / "memberships.parquet").column_names
    assert "age &lt; 9" in (folder / "report.html").read_text()
    new = rows(seed=1)
    members = errata.apply(loaded, new)[slice_.id] >= loaded[slice_.id].threshold
    assert (members == (new.metadata["age"] < 9)).all()
    assert errata.compare(loaded, loaded, search=False)[slice_.id].n == slice_.confirm.n
    saved = errata.save(loaded, folder.with_name("again"))
    assert (saved / "audit.json").read_bytes() == (folder / "audit.json").read_bytes()


def test_a_failure_in_between_leaves_the_audit_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.audits, "_write_memberships", fail)
    with pytest.raises(errata.ErrataError, match="No space left"):
        workflow.keep_in_folder(folder, KIDS)
    after = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before


def test_a_reader_in_between_finds_a_whole_audit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each file took its name, the folder loads: with the old slices until audit.json is there, then with all."""
    counts = []
    publish = store.atomic._publish

    def published(*args: object) -> None:
        publish(*args)
        counts.append(len(errata.load(folder)))

    monkeypatch.setattr(store.atomic, "_publish", published)
    before = len(errata.load(folder))
    workflow.keep_in_folder(folder, KIDS)
    assert counts == [before] * 4 + [before + 1] * 2  # the last is that of the checksums


def test_two_at_once_are_both_kept(audit: errata.Audit, folder: Path) -> None:
    texts = [KIDS, "age >= 80", "site = north and age < 40"]
    threads = [threading.Thread(target=workflow.keep_in_folder, args=(folder, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [slice_.name for slice_ in errata.load(folder)]
    assert set(texts) <= set(names)
    assert len(names) == len(audit) + 3


def test_the_command_keeps_what_is_confirmed(folder: Path) -> None:
    got = run("test", str(folder), KIDS, "site = north", "--keep")
    assert got.code == 0, got.err
    assert "Kept as s" in got.out
    assert "Not kept: it is not confirmed." in got.out
    kept = errata.load(folder)
    assert KIDS in [slice_.name for slice_ in kept]
    assert "site = north" not in [slice_.name for slice_ in kept]
    assert kept.settings["hypotheses"] == {"counted": 2, "kept": [next(s.id for s in kept if s.name == KIDS)]}
    again = run("test", str(folder), KIDS, "--keep", "--json")
    (result,) = json.loads(again.out)
    assert result["kept"] is None
    assert "holds the same rows already" in result["not_kept"]
