"""Audits that search for another metric than error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import errata
from errata.core import Evaluation, InputError, Source
from errata.core.split import discover_mask
from support.command import run as run_command

FOREIGN = Source(from_model=False)


def planted(seed: int = 0, n: int = 3000, first: int = 0, hard: float = 0.6, **changes: Any) -> Evaluation:
    """Class 1 is missed more often among the old, class 0 taken for it where x is large."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    labels = rng.integers(0, 2, n)
    old = rng.random(n) < 0.25
    x[:, 0] += 5 * old
    missed = (labels == 1) & (rng.random(n) < np.where(old, hard, 0.1))
    taken = (labels == 0) & (rng.random(n) < np.where(x[:, 1] > 1, 0.5, 0.03))
    arguments: dict[str, Any] = {
        "ids": np.arange(n) + first,
        "labels": labels,
        "predictions": np.where(missed | taken, 1 - labels, labels),
        "class_names": ("no", "yes"),
        "representations": {"x": x},
        "metadata": {"old": np.where(old, "yes", "no")},
        "sources": {"x": FOREIGN},
    }
    return Evaluation(**{**arguments, **changes})


@pytest.fixture(scope="module")
def misses() -> errata.Audit:
    return errata.audit(planted(), metric="fnr", methods=["gmm"], slices={"old": "old = yes"})


def test_false_negatives_are_searched_among_the_positive(misses: errata.Audit) -> None:
    rows = planted()
    assert misses.evaluation.row_ids.tolist() == rows.row_ids[rows.labels == 1].tolist()
    old = next(slice_ for slice_ in misses if slice_.name == "old")
    assert old.verdict == "confirmed"
    held_out = ~discover_mask(rows) & (rows.labels == 1)
    inside = held_out & (rows.metadata["old"] == "yes")
    assert old.confirm is not None
    assert (old.confirm.n, old.confirm.errors) == (inside.sum(), (rows.predictions[inside] == 0).sum())  # type: ignore
    assert old.confirm.rest_n == held_out.sum() - inside.sum()
    assert repr(misses).splitlines()[0].endswith("slices confirmed, by fnr")
    for page in (misses._repr_html_(), errata.report.to_html(misses)):
        assert "of this model’s false negatives." in page
        assert "all rows have the label “yes”, and their errors are all false negatives" in page


def test_rows_are_split_as_for_every_error(misses: errata.Audit) -> None:
    """Else what one audit searched would be what another confirms on."""
    rows = planted()
    assert np.array_equal(misses.discover, discover_mask(rows)[rows.labels == 1])


def test_false_positives_have_another_cause() -> None:
    rows = planted()
    mask = rows.representations["x"][:, 1] > 1
    audit = errata.audit(rows, metric="fpr", methods=[], slices={"large": mask, "old": "old = yes"})
    verdicts = {slice_.name: slice_.verdict for slice_ in audit}
    assert verdicts["large"] == "confirmed"
    assert verdicts["old"] != "confirmed"
    assert audit["s1"].rows().tolist() == np.flatnonzero(np.asarray(mask)[rows.labels == 0]).tolist()


def test_what_the_model_itself_knows_is_not_tested_within_one_label() -> None:
    """Its last layer tells the prediction, which among rows of one label is the outcome: 100% by construction."""
    rows = planted()
    layer = np.c_[8.0 * rows.predictions, rows.representations["x"]]
    own = planted(representations={"layer": layer}, sources={"layer": Source(from_model=True)})
    for methods in (["gmm"], ["consensus"]):
        audit = errata.audit(own, metric="fnr", methods=methods)
        assert audit.slices == ()
        assert any("tells the outcome" in note for note in audit.settings["notes"])
    # The same arrays, said to be foreign: this is what is prevented.
    told = errata.audit(planted(representations={"layer": layer}, sources={"layer": FOREIGN}), metric="fnr")
    assert told["s1"].confirm.rate > 0.95  # type: ignore[union-attr]


def test_a_prediction_is_the_outcome_within_one_label() -> None:
    """A method that reads it is measured through its approximation, in a representation of another model."""
    audit = errata.audit(planted(), metric="fnr", methods=["confusion"])
    assert audit.confirmed
    assert audit.error_types
    assert all(slice_.fidelity is not None for slice_ in audit)


def test_an_audit_of_a_metric_is_saved_and_loaded(misses: errata.Audit, tmp_path: Path) -> None:
    again = errata.load(errata.save(misses, tmp_path / "audit"))
    assert again.evaluation.metric == "fnr"
    assert again.settings["metric"] == "fnr"
    assert again.settings["rows_of"] == planted().fingerprint
    assert repr(again) == repr(misses)


def test_slices_of_a_metric_are_applied_without_labels(misses: errata.Audit) -> None:
    new = planted(7, first=10_000, labels=None, predictions=None, class_names=None)
    weights = errata.apply(misses, new)
    assert set(weights) == {slice_.id for slice_ in misses}


def test_a_fix_is_measured_by_the_metric(misses: errata.Audit) -> None:
    before = planted(5, first=10_000)
    after = planted(5, first=10_000, hard=0.1)
    comparison = errata.recheck(misses, before, after)
    assert comparison["overall"].n == (before.labels == 1).sum()
    old = next(slice_ for slice_ in misses if slice_.name == "old")
    assert comparison[old.id].judgement == "better"


def test_over_prediction() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2000, 3))
    labels = rng.normal(size=2000)
    predictions = labels + rng.normal(0, 0.3, 2000) + np.where(x[:, 0] > 1, 1.0, 0) - np.where(x[:, 1] > 1, 1.0, 0)
    rows = Evaluation(labels=labels, predictions=predictions, representations={"x": x})
    slices = {"high": x[:, 0] > 1, "low": x[:, 1] > 1}
    over = errata.audit(rows, metric="over_prediction", methods=[], slices=slices)
    under = errata.audit(rows, metric="under_prediction", methods=[], slices=slices)
    assert {slice_.name for slice_ in over.confirmed} == {"high"}
    assert {slice_.name for slice_ in under.confirmed} == {"low"}
    assert "predictions too high by more than" in over.silence
    assert "a prediction too high by more than" in repr(over)
    assert "too high" in errata.report.to_html(over)
    worst = over.confirmed[0]
    amount = predictions - labels
    inside = worst.rows("held-out")
    tolerance = np.quantile(np.maximum(amount[over.discover], 0), 0.9)
    assert worst.confirm.errors == (amount[inside] > tolerance).sum()  # type: ignore[union-attr]


def test_too_few_rows_are_refused() -> None:
    labels = np.zeros(300, dtype=int)
    labels[:10] = 1
    rows = Evaluation(labels=labels, predictions=np.zeros(300, int), representations={"x": np.eye(300)[:, :3]})
    with pytest.raises(InputError, match="`fnr` counts 10 of 300 rows"):
        errata.audit(rows, metric="fnr")


def test_nothing_is_confirmed_where_there_is_nothing() -> None:
    """Forty null worlds: misses at random among the positive, though the two classes differ in x."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 1])
        labels = rng.integers(0, 2, 800)
        x = rng.normal(size=(800, 3)) + 2 * labels[:, None]
        predictions = np.where(rng.random(800) < np.where(labels == 1, 0.3, 0.05), 1 - labels, labels)
        rows = Evaluation(labels=labels, predictions=predictions, representations={"x": x}, sources={"x": FOREIGN})
        found += bool(errata.audit(rows, metric="fnr", methods=["gmm"]).confirmed)
    assert found <= 5  # at 5% each, more happen in 1.4% of such tests


def test_the_command(tmp_path: Path) -> None:
    rows = planted()
    arrays = {"labels": rows.labels, "predictions": rows.predictions, "embedding": rows.representations["x"]}
    np.savez(tmp_path / "x.npz", **arrays, **{"metadata:old": rows.metadata["old"]})
    common = ["audit", tmp_path / "x.npz", "--method", "gmm", "--foreign", "embedding", "--no-map"]
    first = run_command(*common, "-o", tmp_path / "a")
    second = run_command(*common, "-o", tmp_path / "b", "--metric", "fnr", "--slice", "old=old = yes")
    third = run_command(*common, "-o", tmp_path / "c", "--metric", "fpr")
    assert (first.code, second.code, third.code) == (0, 0, 0), second.err
    assert "Searched for false negatives" in second.out
    runs = [errata.load(tmp_path / name).settings["run"] for name in "abc"]
    assert runs == [1, 2, 3]  # other questions to the same held-out rows are further looks
    refused = run_command(*common, "-o", tmp_path / "d", "--metric", "fnr", "--reference")
    assert refused.code == 2
    assert "`--reference` keeps INPUT" in refused.err
