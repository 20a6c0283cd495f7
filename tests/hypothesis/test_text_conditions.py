"""Conditions on the rows' own texts, in the page's grammar and in ours; and that the names of slices are such."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import errata
from errata import hypothesis
from errata.core import Evaluation, InputError
from errata.explain.names import Name
from errata.inputs.media import Texts
from errata.report.script_data import held_out_data
from support.command import run

HERE = Path(__file__).parent
FILE = HERE / "text_cases.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))
GRAMMAR = HERE.parents[1] / "src" / "errata" / "report" / "static" / "hypothesis_grammar.js"
RUNNER = """
import { readFileSync } from "node:fs";
const [, grammar, file] = process.argv;
const { parse } = await import(grammar);
const { columns, cases } = JSON.parse(readFileSync(file, "utf8"));
const { text, ...without } = columns;
const bare = ["free", "text contains free"].map((text) => {
  try { return parse(text, without, "text"); } catch (error) { return error.message; }
});
console.log(JSON.stringify([...bare, ...cases.map(({ text }) => {
  try {
    return { rows: parse(text, columns).mask().flatMap((inside, i) => (inside ? [i] : [])) };
  } catch (error) {
    return { error: error.message };
  }
})]));
"""


@pytest.fixture(scope="module")
def table() -> Evaluation:
    values = {name: column["values"] for name, column in CASES["columns"].items()}
    return Evaluation(
        losses=np.zeros(6),
        labels=np.array(values["label"]),
        ids=np.array(values["id"]),
        metadata={"site": np.array(values["site"], dtype=object)},
        media=Texts(np.array([text or " …" for text in values["text"]], dtype=object)),
    )


def test_the_page_gets_the_texts(table):
    assert hypothesis.to_columns(table) == CASES["columns"]


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["text"])
def test_a_condition_on_texts(table, case):
    if "error" in case:
        with pytest.raises(InputError) as raised:
            hypothesis.parse(case["text"], table)
        assert str(raised.value) == case["error"]
        return
    assert np.flatnonzero(hypothesis.parse(case["text"], table).mask(table)).tolist() == case["rows"]


def test_the_page_reads_every_case_the_same():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed, so the page's grammar is not run")
    command = [node, "--input-type=module", "-e", RUNNER, GRAMMAR.as_uri(), str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    words, condition, *answers = json.loads(done.stdout)
    assert words.startswith(condition)  # of a page without the texts
    assert "“errata serve” can" in condition
    expected = [{key: case[key] for key in ("rows", "error") if key in case} for case in CASES["cases"]]
    texts = [case["text"] for case in CASES["cases"]]
    assert dict(zip(texts, answers, strict=True)) == dict(zip(texts, expected, strict=True))


def test_text_is_no_column_where_rows_have_none():
    rows = Evaluation(losses=np.zeros(3), metadata={"age": np.arange(3)})
    with pytest.raises(InputError, match="Unknown column “text”"):
        hypothesis.parse("text contains free", rows)
    own = Evaluation(losses=np.zeros(3), metadata={"text": np.array(["free", "art", "free ship"])})
    assert hypothesis.parse("text = free", own).mask(own).tolist() == [True, False, False]  # the user's own column


def _shop(n: int = 1200) -> Evaluation:
    """Texts of which those with “free shipping” or “refund” lie in one corner, where the model is wrong."""
    rng = np.random.default_rng(0)
    corner = np.arange(n) % 6 == 0
    offers = np.where(rng.random(n) < 0.5, "with free shipping today", "a refund was asked")
    plain = rng.choice(["shipping was not free", "great shop", "arrived late", "lovely colour"], size=n)
    X = rng.normal(size=(n, 3)) + np.where(corner, 6, 0)[:, None]
    labels = rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where(corner, 0.7, 0.05)
    texts = [f"Order {i}: {offers[i] if corner[i] else plain[i]}" for i in range(n)]
    return Evaluation(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        representations={"x": X},
        media=Texts(np.array(texts, dtype=object)),
    )


@pytest.fixture(scope="module")
def audit():
    return errata.audit(_shop(), methods=["gmm"], options={"gmm": {"components": 2}})


def test_the_name_of_a_slice_of_texts_is_a_hypothesis(audit):
    found = next(slice_ for slice_ in audit.confirmed if slice_.name.startswith("text contains"))
    assert "“free shipping" in found.name
    assert "refund" in found.name
    name = found.explanation(Name)
    result = errata.test(audit, found.name)
    assert (result.n, result.errors) == (name.match.outcome.n, name.match.outcome.errors)
    assert result.verdict == "confirmed"


def test_the_command_takes_a_vocabulary_and_tests_the_name(tmp_path):
    rows = _shop()
    texts = np.array([rows.media.text(i) for i in range(len(rows))])
    arrays = {"labels": rows.labels, "predictions": rows.predictions, "embedding": rows.representations["x"]}
    np.savez(tmp_path / "x.npz", **arrays, text=texts)
    (tmp_path / "words.txt").write_text("Free shipping\nrefund\n\nmissing word\n")
    options = ["--vocabulary", "words.txt", "--method", "gmm", "--set", "gmm.components=2", "--no-map"]
    done = run("audit", "x.npz", "-o", "out", *options, "--no-self-test", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    name = "text contains “refund” or “free shipping”"
    assert name in done.out
    tested = run("test", "out", name, folder=tmp_path)
    assert (tested.code, tested.err) == (0, "")
    assert tested.out.startswith(f"{name}: confirmed")


def test_such_a_slice_can_be_given_saved_and_applied(audit, tmp_path):
    own = errata.audit(_shop(), slices={"offers": 'text contains "free shipping" or "refund"'}, methods=[])
    again = errata.load(errata.save(own, tmp_path / "audit"))
    rows = _shop()
    weights = errata.apply(again, rows)
    inside = [("free shipping" in rows.media.text(i)) or ("refund" in rows.media.text(i)) for i in range(len(rows))]
    assert (weights["s1"] > 0.5).tolist() == inside
    assert own.slices[0].verdict == "confirmed"


def test_a_saved_page_can_test_texts_unless_they_are_too_long(audit, monkeypatch):
    from errata.report import script_data

    columns = held_out_data(audit)["columns"]
    assert columns["text"]["kind"] == "words"
    assert len(columns["text"]["values"]) == int((~audit.discover).sum())
    monkeypatch.setattr(script_data, "MOST_BYTES", 15_000)
    shorter = held_out_data(audit)["columns"]
    assert "text" not in shorter
    assert "label" in shorter
