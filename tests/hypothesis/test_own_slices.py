"""Slices of the user's own: read, tested with those that are found, saved, applied; and slicers of the user's own."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import errata
from errata.slicers import AbsentSlicer, BaseSlicer
from support.command import run


class FirstColumn(BaseSlicer):
    """Rows whose first column is beyond a cut."""

    name = "first-column"
    needs = frozenset({"representations"})

    def __init__(self, cut: float = 1.0, representation: str | None = None):
        self.cut = cut
        self.representation = representation

    def _fit(self, evaluation, train):
        self.rules_ = ({"kind": "cut", "representation": self.representation_},)

    def membership(self, evaluation):
        return (np.asarray(self.matrix(evaluation))[:, :1] > self.cut).astype(float)


def rows(n: int = 2000, seed: int = 0, **more) -> errata.Evaluation:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, n)
    x = rng.normal(size=(n, 3))
    labels = rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where(age < 9, 0.5, 0.1)
    site = rng.choice(["north", "south"], n)
    return errata.Evaluation(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        representations={"x": x},
        metadata={"age": age, "site": site},
        **more,
    )


def by_name(audit: errata.Audit) -> dict[str, errata.Slice]:
    return {slice_.name: slice_ for slice_ in audit.slices}


def test_a_condition_a_mask_and_a_clustering_are_tested_beside_what_is_found() -> None:
    evaluation = rows()
    mask = evaluation.representations["x"][:, 0] > 1.2
    clusters = np.arange(len(evaluation)) % 4 - 1
    given = {"kids": "age < 9", "mine": mask, "part": clusters}
    audit = errata.audit(evaluation, methods=["gmm"], slices=given)
    slices = by_name(audit)
    assert {"kids", "mine", "part 0", "part 1", "part 2"} <= set(slices)
    assert slices["kids"].verdict == "confirmed"
    assert slices["mine"].verdict != "confirmed"
    np.testing.assert_array_equal(slices["mine"].members, mask)
    np.testing.assert_array_equal(slices["part 2"].members, clusters == 2)
    found = errata.audit(evaluation, methods=["gmm"])
    assert audit.settings["tested"] == found.settings["tested"] + 5


def test_the_level_allows_for_slices_of_ones_own() -> None:
    evaluation = rows()
    alone = by_name(errata.audit(evaluation, methods=[], slices={"kids": "age < 9"}))["kids"]
    others = {f"site {i}": f"age >= {i} and age < {i + 9}" for i in range(9, 81, 9)}
    among = by_name(errata.audit(evaluation, methods=[], slices={"kids": "age < 9", **others}))["kids"]
    assert among.confirm.p_value == alone.confirm.p_value
    assert among.confirm.interval[0] < alone.confirm.interval[0]


def test_a_slice_that_search_rows_speak_against_is_told_all_the_same() -> None:
    audit = errata.audit(rows(), methods=[], slices={"adults": "age > 60"})
    assert [slice_.name for slice_ in audit.slices] == ["adults"]
    assert audit.slices[0].discover.gap < 0


def test_what_cannot_be_tested_is_noted() -> None:
    evaluation = rows()
    first = np.arange(len(evaluation)) == 0
    audit = errata.audit(evaluation, methods=[], slices={"all": "age >= 0", "one": first, "kids": "age < 9"})
    assert [slice_.name for slice_ in audit.slices] == ["kids"]
    assert any("“all” was not tested: it holds more than half" in note for note in audit.settings["notes"])


def test_own_slices_are_saved_and_applied(tmp_path: Path) -> None:
    evaluation = rows(ids=np.array([f"row {i}" for i in range(2000)]))
    mask = evaluation.representations["x"][:, 0] > 1.2
    audit = errata.audit(evaluation, methods=[], slices={"kids": "not age >= 9", "mine": mask})
    loaded = errata.load(errata.save(audit, tmp_path / "audit"))
    ids = {slice_.name: slice_.id for slice_ in loaded.slices}
    same = errata.apply(loaded, evaluation)
    np.testing.assert_array_equal(same[ids["mine"]] >= 0.5, mask)
    new = rows(seed=1, ids=np.arange(2000))
    weights = errata.apply(loaded, new)
    np.testing.assert_array_equal(weights[ids["kids"]] >= 0.5, new.metadata["age"] < 9)
    assert ids["mine"] not in weights  # a list of rows says nothing of others


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": "agee < 3"}, "slice `a`: Unknown column"),
        ({"a": "label = 1 and prediction = 0"}, "slice `a`: "),
        ({"a": np.ones(3, bool)}, "must be a condition, or one true or false"),
        ({"a": np.ones(2000)}, "must be a condition, or one true or false"),
        ({"a": np.arange(2000)}, "2,000 clusters"),
        ({}, "must map names"),
    ],
)
def test_mistakes_are_one_sentence(given, words: str) -> None:
    with pytest.raises(errata.ErrataError, match=words):
        errata.audit(rows(), methods=[], slices=given)


def test_a_hypothesis_may_be_a_text_or_rows() -> None:
    evaluation = rows()
    audit = errata.audit(evaluation, methods=["gmm"])
    by_text = errata.test(audit, "age < 9")
    by_mask = errata.test(audit, evaluation.metadata["age"] < 9)
    assert by_text.verdict == by_mask.verdict == "confirmed"
    assert by_text.p_value == by_mask.p_value
    assert json.dumps(by_mask.to_json())
    with pytest.raises(errata.ErrataError, match="one true or false a row"):
        errata.test(audit, np.ones(3))


def test_words_say_where_they_were_looked_for() -> None:
    images = errata.inputs.ImageArrays(np.zeros((2000, 2, 2), np.uint8))
    audit = errata.audit(rows(media=images), methods=["gmm"])
    said = errata.test(audit, "blond hair").sentence
    assert said.endswith("Words were looked for in “site”; to find them in images takes a text encoder.")
    bare = errata.Evaluation(losses=np.zeros(2000), media=images)
    with pytest.raises(errata.ErrataError, match="to find words in images takes a text encoder"):
        errata.hypothesis.parse("blond hair", bare).mask(bare)
    without = errata.audit(rows(), methods=["gmm"])
    assert errata.test(without, "blond hair").sentence.endswith("Words were looked for in “site”.")


def test_a_slicer_of_ones_own_is_a_method(tmp_path: Path) -> None:
    evaluation = rows()
    audit = errata.audit(evaluation, methods=[FirstColumn(cut=-3.0), "gmm"], slices={"kids": "age < 9"})
    assert audit.settings["methods"] == ["first-column", "gmm"]
    folder = errata.save(audit, tmp_path / "audit")
    opened = errata.load(folder)
    assert isinstance(opened.slicers["first-column"], AbsentSlicer)
    again = errata.load(errata.save(opened, tmp_path / "again"), methods=[FirstColumn])
    assert again.slicers["first-column"].cut == -3.0


def test_an_absent_method_says_what_it_lacks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2))
    wrong = rng.random(1000) < np.where(x[:, 0] > 1, 0.8, 0.05)
    evaluation = errata.Evaluation(labels=np.zeros(1000, int), predictions=wrong.astype(int), representations={"x": x})
    audit = errata.audit(evaluation, methods=[FirstColumn()])
    folder = errata.save(audit, tmp_path / "audit")
    with pytest.raises(errata.ErrataError, match="`first-column` is not installed here"):
        errata.apply(errata.load(folder), evaluation)
    weights = errata.apply(errata.load(folder, methods=[FirstColumn]), evaluation)
    np.testing.assert_array_equal(weights["s1"] >= 0.5, x[:, 0] > 1)


def test_what_is_no_slicer_is_refused() -> None:
    with pytest.raises(errata.ErrataError, match=r"got the class FirstColumn; write FirstColumn\(\)"):
        errata.audit(rows(), methods=[FirstColumn])
    with pytest.raises(errata.ErrataError, match="object is no slicer: it has no `name`"):
        errata.audit(rows(), methods=[object()])


MODULE = "import numpy as np\nfrom errata.slicers import BaseSlicer\n\n\n" + inspect.getsource(FirstColumn)


def test_the_command_takes_slices_and_methods_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    age = rng.integers(0, 90, 2000)
    wrong = rng.random(2000) < np.where((x[:, 0] > 1) | (age < 9), 0.6, 0.05)
    arrays = {"labels": np.zeros(2000, int), "predictions": wrong.astype(int), "embedding": x, "metadata:age": age}
    np.savez(tmp_path / "in.npz", **arrays)
    np.savez(tmp_path / "new.npz", **{**arrays, "embedding": x[::-1] + 0.01}, ids=np.arange(5000, 7000))
    (tmp_path / "my_methods.py").write_text(MODULE)
    environment = {**os.environ, "PYTHONPATH": str(Path(errata.__file__).parents[1])}

    def errata_command(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "errata", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    own = ("--plugin", "my_methods", "--method", "first-column", "--set", "first-column.cut=0.9")
    done = errata_command("audit", "in.npz", "-o", "out", "--no-map", "--no-self-test", *own, "--slice", "kids=age < 9")
    assert done.returncode == 0, done.stderr
    assert "kids: confirmed" in done.stdout
    facts = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert {slice_["method"] for slice_ in facts["slices"]} == {"first-column", "own"}
    for words in (("apply", "out", "in.npz", "-o", "w.parquet"), ("recheck", "out", "new.npz", "new.npz")):
        without = errata_command(*words)
        assert without.returncode == 2
        assert "`--plugin MODULE`" in without.stderr
        assert errata_command(*words, "--plugin", "my_methods").returncode == 0
    missing = errata_command("audit", "in.npz", "-o", "no", "--plugin", "not_there")
    assert missing.returncode == 2
    assert "`--plugin not_there` cannot be imported" in missing.stderr
    assert not (tmp_path / "no").exists()


def test_the_command_says_which_slices_are_lists_of_other_rows(tmp_path: Path) -> None:
    evaluation = rows()
    audit = errata.audit(evaluation, methods=[], slices={"mine": evaluation.representations["x"][:, 0] > 1.2})
    folder = errata.save(audit, tmp_path / "audit")
    np.savez(tmp_path / "new.npz", ids=np.arange(5000, 5010), embedding=np.zeros((10, 3)))
    done = run("apply", folder, tmp_path / "new.npz", "-o", tmp_path / "w.parquet")
    assert (done.code, done.err) == (0, "")
    assert "mine: not placed, since it is a list of other rows" in done.out


def test_a_name_of_ones_own_is_not_called_made_by_machine(tmp_path: Path) -> None:
    audit = errata.audit(rows(), methods=[], slices={"kids": "age < 9"})
    html = errata.report.to_html(audit)
    assert "kids" in html
    assert '<span class="made">made by machine</span>' not in html


def test_the_command_counts_hypotheses(tmp_path: Path) -> None:
    audit = errata.audit(rows(), methods=["gmm"])
    folder = str(errata.save(audit, tmp_path / "audit"))
    first = run("test", folder, "age < 9")
    assert first.code == 0, first.err
    assert "age < 9: confirmed" in first.out
    second = run("test", folder, "age < 9", "site = north")
    assert "Judged as 2 hypotheses" in second.out
    third = run("test", folder, "age > 70", "--json")
    assert json.loads(third.out)[0]["hypotheses"] == 3
    bad = run("test", folder, "agee < 9")
    assert bad.code == 2
    assert "Did you mean" in bad.err
