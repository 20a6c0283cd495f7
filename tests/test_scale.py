"""Audits of more rows than one would hold at once: in parts, from disk, searched by a sample; the same verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import errata
from errata.core import InputError, scratch
from errata.engine import Local, parts
from errata.hypothesis import read_slices
from errata.inputs.media import Texts
from errata.workflow import place
from support.command import run

N = 6000


def world(n: int = N, seed: int = 0) -> dict[str, Any]:
    """Two classes, and a corner of the representation where the model fails."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    labels = rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where((x[:, 0] > 1) & (x[:, 1] > 0), 0.7, 0.08)
    positive = np.where(labels ^ wrong, 0.8, 0.2) + 0.1 * rng.random(n)
    return {"labels": labels, "probs": np.stack([1 - positive, positive], 1), "embedding": x, "metadata:age": x[:, 2]}


def as_evaluation(arrays: dict[str, Any]) -> Any:
    return errata.Evaluation(
        labels=arrays["labels"],
        probs=arrays["probs"],
        representations={"embedding": arrays["embedding"]},
        metadata={"age": arrays["metadata:age"]},
    )


def found(audit: Any) -> list[Any]:
    return [(s.method, s.verdict, s.confirm and s.confirm.n, s.confirm and s.confirm.errors) for s in audit.slices]


@pytest.fixture
def tiny_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has some hundred rows, and every array of all rows lies in a file."""
    monkeypatch.setattr(parts.parts_of, "__kwdefaults__", {"most": 1 << 15})
    monkeypatch.setattr(scratch, "BLOCK_ROWS", 700)
    monkeypatch.setattr(scratch.empty_array, "__defaults__", (1000, "C", False))


@pytest.mark.parametrize("methods", [["consensus"], ["rules"], ["domino"], ["spotlight"], ["gmm"], ["directions"]])
def test_parts_and_files_change_no_verdict(methods: list[str], request: pytest.FixtureRequest) -> None:
    whole = errata.audit(as_evaluation(world()), methods=methods)
    request.getfixturevalue("tiny_parts")
    rows = as_evaluation(world())
    assert isinstance(rows.losses, np.memmap)
    in_parts = errata.audit(rows, methods=methods, engine=Local(memory=1000, threads=2))
    assert isinstance(in_parts.slices[0].weights, np.memmap)
    assert found(in_parts) == found(whole)


def test_every_row_is_placed_as_it_would_be_alone(tiny_parts: None) -> None:
    rows = as_evaluation(world())
    audit = errata.audit(rows)
    new = as_evaluation(world(seed=1))
    at_once = errata.apply(audit, new)
    by_parts = errata.apply(audit, new, place=lambda slicer, some: place(slicer, some, Local(threads=3)))
    assert at_once.keys() == by_parts.keys()
    assert len(at_once) > 0
    for name, weights in at_once.items():
        assert np.allclose(weights, by_parts[name], atol=1e-9)


def test_ones_own_slices_hold_the_same_rows_in_parts(request: pytest.FixtureRequest) -> None:
    codes = np.array(["007"] * 4000 + ["A1"] * 2000)  # numbers, to whoever sees the first part alone
    texts = np.where(np.arange(N) % 3 == 0, "a red cat", "a dog")
    rows = errata.Evaluation(losses=world()["probs"][:, 0], metadata={"code": codes}, media=Texts(list(texts)))
    own = read_slices({"by code": "code = 007", "by words": "cat"}, rows)
    whole = own.membership(rows)
    assert whole.sum(axis=0).tolist() == [4000, 2000]
    request.getfixturevalue("tiny_parts")
    assert np.array_equal(place(own, rows, Local(threads=2)), whole)


class ByLength:
    """A method of somebody else, who reads texts."""

    def membership(self, evaluation: Any) -> Any:
        return np.array([[len(evaluation.media.text(i)) / 10] for i in range(len(evaluation))])


def test_a_method_of_others_has_the_texts_of_all_rows(tiny_parts: None) -> None:
    texts = ["a" * (i % 10) for i in range(N)]
    rows = errata.Evaluation(losses=world()["probs"][:, 0], media=Texts(texts))
    assert place(ByLength(), rows, Local(threads=2))[:, 0].tolist() == [i % 10 / 10 for i in range(N)]


def test_a_sample_is_searched_and_every_held_out_row_counts() -> None:
    audit = errata.audit(as_evaluation(world()), search_rows=1000)
    said = [note for note in audit.settings["notes"] if "drawn at random" in note]
    assert said == [
        "The search looked at 1,000 of 3,000 search rows, drawn at random; all 3,000 held-out rows were counted. "
        "A smaller slice may be found with more of them (--search-rows)."
    ]
    first = next(slice_ for slice_ in audit.slices if not slice_.rule.get("scope"))
    assert first.confirm is not None
    assert first.confirm.n + first.confirm.rest_n == 3000
    assert audit.slices[0].verdict == "confirmed"


def test_all_rows_are_searched_where_they_are_few() -> None:
    audit = errata.audit(as_evaluation(world()))
    assert not any("drawn" in note for note in audit.settings["notes"])


def test_a_sample_of_a_metric_is_one_of_its_own_rows() -> None:
    audit = errata.audit(as_evaluation(world()), methods=["rules"], metric="fnr", search_rows=2000)
    assert 1000 < audit.discover.sum() < 2000  # those of the positive class, which are all looked at
    assert not any("drawn" in note for note in audit.settings["notes"])


def test_a_sample_that_finds_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1,000; got 10"):
        errata.audit(as_evaluation(world()), search_rows=10)


def test_the_sample_does_not_depend_on_the_order_of_rows() -> None:
    arrays = world()
    order = np.random.default_rng(3).permutation(N)
    rows = as_evaluation(arrays)
    moved = errata.Evaluation(
        labels=arrays["labels"][order],
        probs=arrays["probs"][order],
        representations={"embedding": arrays["embedding"][order]},
        metadata={"age": arrays["metadata:age"][order]},
        ids=order,
    )
    assert found(errata.audit(rows, search_rows=1000)) == found(errata.audit(moved, search_rows=1000))


def test_a_folder_of_arrays_by_the_command(tmp_path: Path) -> None:
    for name, values in world().items():
        file = tmp_path / "rows" / f"{name.replace(':', '/')}.npy"
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, values)
    words = ["--search-rows", "2000", "--memory", "64MB", "--reference", "--no-map"]
    done = run("audit", "rows", "-o", "audit", *words, folder=tmp_path)
    assert done.code == 0, done.err
    audit = errata.load(tmp_path / "audit")
    assert audit.slices[0].verdict == "confirmed"
    done = run("apply", "audit", "rows", "-o", "new.parquet", "--memory", "64MB", folder=tmp_path)
    assert done.code == 0, done.err
    table = pq.read_table(tmp_path / "new.parquet")
    assert table.column("s1:in").to_numpy().sum() == audit.slices[0].members.sum()


def test_bad_words_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **world())
    for words in (["--engine", "spark"], ["--memory", "much"], ["--search-rows", "5"]):
        done = run("audit", "x.npz", "-o", "audit", *words, folder=tmp_path)
        assert done.code == 2
        assert words[1] in done.err
        assert not (tmp_path / "audit").exists()
