"""P, D and damping of an audit: in Python, on the command line, in its settings and its words."""

import json

import numpy as np
import pandas as pd
import pytest

import errata
from errata.core import InputError
from errata.explain.own_label import FITTED, OwnLabel
from errata.explain.training_opponents import Opponents
from errata.report import to_html
from errata.workflow import influence_options
from support.command import run


@pytest.fixture(scope="module")
def rows():
    """Test and training rows of a linear model that has learnt wrong labels in one group."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    n, centres = 800, 3 * np.eye(4, 6)

    def draw(flip, first):
        group = rng.integers(0, 4, n)
        truth = group % 2
        labels = np.where(flip & (group == 0) & (rng.random(n) < 0.8), 1 - truth, truth)
        return {"x": centres[group] + rng.normal(size=(n, 6)), "labels": labels, "ids": np.arange(n) + first}

    train, test = draw(True, 5000), draw(False, 0)
    model = LogisticRegression(max_iter=1000).fit(train["x"], train["labels"])
    return test, train, model


def evaluation(rows, model):
    P = model.predict_proba(rows["x"])
    return errata.Evaluation(labels=rows["labels"], probs=P, representations={"x": rows["x"]}, ids=rows["ids"])


def test_options_by_the_papers_names_and_by_ours():
    given = influence_options({"P": 20, "D": 5, "damping": 0.5, "rows": None})
    assert (given.steps, given.rank, given.damping, given.rows) == (20, 5, 0.5, None)
    assert influence_options({"rows": "all"}).rows is None
    assert influence_options(None) == influence_options({})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"Q": 1}, "unknown option of influence"),
        ({"P": "many"}, "must be a number"),
        ({"rows": "none"}, "`rows` must be a number, or `all`; got 'none'"),
        ({"D": 2.5}, "must be a whole number"),
        ({"damping": -1}, "must not be negative"),
        ({"P": 0}, "at least 1"),
    ],
)
def test_bad_options_are_refused_by_name(given, words):
    with pytest.raises(InputError, match=words):
        influence_options(given)


@pytest.mark.parametrize("with_train", [True, False])
def test_the_audit_says_whose_curvature_it_is(rows, with_train):
    test, train, model = rows
    training = evaluation(train, model) if with_train else None
    influence = {"P": 6, "D": 3, "damping": 0.01}
    audit = errata.audit(evaluation(test, model), train=training, methods=["infembed"], influence=influence)
    made = audit.settings["influence"]
    whose = "training rows" if with_train else "search rows"
    assert (made["curvature"], made["steps"], made["directions"], made["damping"]) == (whose, 6, 3, 0.01)
    assert made["rows"] == (800 if with_train else int(audit.discover.sum()))
    assert audit.evaluation.representations["influence"].shape[1] == 3
    assert f"{whose}; P = 6, D = 3, damping 0.01." in to_html(audit)


def test_the_command_line_reaches_them(rows, tmp_path):
    test, train, model = rows
    for name, part in (("test", test), ("train", train)):
        P = model.predict_proba(part["x"]).astype(np.float32)
        np.savez(tmp_path / f"{name}.npz", embedding=part["x"], probs=P, labels=part["labels"], ids=part["ids"])
    base = ["--train", tmp_path / "train.npz", "--method", "infembed", "--no-map", "--no-self-test"]
    options = ["--influence", "P=6", "--influence", "D=3", "--influence", "damping=0.01"]
    done = run("audit", tmp_path / "test.npz", "-o", tmp_path / "out", *base, *options)
    assert done.code == 0
    assert "curvature of 800 training rows; P = 6, D = 3, damping 0.01." in " ".join(done.out.split())
    settings = json.loads((tmp_path / "out" / "audit.json").read_text())["settings"]
    assert settings["influence"]["rank"] == 3
    refused = run("audit", tmp_path / "test.npz", "-o", tmp_path / "again", *base, "--influence", "R=6")
    assert refused.code == 2
    assert "option of influence" in refused.err
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(("methods", "embedded"), [(["gmm"], False), (["gmm"], True), (["infembed"], True)])
def test_options_that_nothing_reads_are_refused(rows, methods, embedded):
    """They were ignored: no method makes embeddings, or the rows come with theirs."""
    test, _, model = rows
    audited = evaluation(test, model)
    if embedded:
        E = np.random.default_rng(0).normal(size=(len(audited), 4))
        audited = audited.with_representation("influence", E, errata.core.Source(reads=frozenset({"label"})))
    words = "these rows come with the representation" if embedded else "nothing reads any; name the method `infembed`"
    with pytest.raises(InputError, match=words):
        errata.audit(audited, methods=methods, influence={"P": 7})


def test_the_command_refuses_options_that_nothing_reads(rows, tmp_path):
    test, _, model = rows
    np.savez(tmp_path / "test.npz", embedding=test["x"], probs=model.predict_proba(test["x"]), labels=test["labels"])
    base = ["audit", tmp_path / "test.npz", "--no-map", "--no-self-test", "--influence", "rows=all"]
    refused = run(*base, "--method", "gmm", "-o", tmp_path / "out")
    assert refused.code == 2
    assert "`influence` (rows) says how influence embeddings are made, and nothing reads any" in refused.err
    assert not (tmp_path / "out").exists()
    assert run(*base, "--method", "infembed", "-o", tmp_path / "out").code == 0


def test_what_cannot_be_ranked_is_said_and_the_audit_goes_on(rows):
    test, train, model = rows
    bare = errata.Evaluation(labels=train["labels"], representations={"x": train["x"]}, ids=train["ids"])
    audit = errata.audit(evaluation(test, model), train=bare, methods=["gmm"])
    assert audit.slices
    assert audit.settings["influence"] is None
    assert any(note.startswith("Training rows are not ranked by influence: ") for note in audit.settings["notes"])


@pytest.mark.parametrize("named", ["age", "all"])
def test_training_rows_of_a_table_have_the_columns_that_were_named(rows, tmp_path, named):
    """They were read without any: nothing but labels could tell opponents from helpers."""
    test, train, model = rows
    for name, part in (("test", test), ("train", train)):
        P = model.predict_proba(part["x"])
        columns = {"ids": part["ids"], "labels": part["labels"], "embedding": list(part["x"])}
        columns |= {f"prob:{j}": P[:, j] for j in range(P.shape[1])}
        columns |= {"age": 40 + 10 * part["x"][:, 0], "batch": np.arange(len(P)) % 3}
        pd.DataFrame(columns).to_parquet(tmp_path / f"{name}.parquet")
    base = ["--train", tmp_path / "train.parquet", "--method", "infembed", "--no-map", "--no-self-test"]
    done = run("audit", tmp_path / "test.parquet", "-o", tmp_path / "out", *base, "--metadata", named)
    assert done.code == 0, done.err
    (first, *_) = errata.load(tmp_path / "out").slices
    told = {row.column for row in first.explanation(OwnLabel).shares if row.column != FITTED}
    assert told == {"age"}
    profiled = {row.column for row in first.explanation(Opponents).profile}
    assert ("batch" in profiled) == (named == "all")
