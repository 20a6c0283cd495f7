"""Real data, where the data folder is at hand: census income, news with noisy labels, faces."""

import io
import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import errata
from errata.bench.tables import data_folder
from errata.report import to_html
from support.command import run

pandas = pytest.importorskip("pandas")


def table(name):
    path = data_folder() / name
    if not path.exists():
        pytest.skip(f"no {name} in the data folder {data_folder()} (set ERRATA_DATA)")
    return pandas.read_parquet(path)


def test_census_income():
    people = table("adult.parquet")
    y = people["income"].str.contains(">").to_numpy().astype(int)
    columns = pandas.get_dummies(people.drop(columns=["income", "split"]), dtype=float)
    X, train = StandardScaler().fit_transform(columns), (people["split"] == "train").to_numpy()
    model = LogisticRegression(max_iter=100).fit(X[train], y[train])
    ev = errata.collect(model, (X[~train], y[~train]))
    test = people[~train]
    ev = replace(ev, metadata={name: test[name].to_numpy() for name in ("age", "sex", "marital_status")})
    audit = errata.audit(ev, methods=["spotlight"], options={"spotlight": {"size": 0.05}})
    assert audit.confirmed
    assert all(found.confirm.interval[0] > 0 for found in audit.confirmed)
    assert "marital_status" in to_html(audit)


def test_rules_over_the_columns_of_census_income():
    """No embedding: the default is `rules`, whose first rule is wrong more than twice as often as all rows."""
    people = table("adult.parquet")
    y = people["income"].str.contains(">").to_numpy().astype(int)
    columns = people.drop(columns=["income", "split"])
    codes = columns.apply(lambda column: pandas.factorize(column, sort=True)[0])
    train = (people["split"] == "train").to_numpy()
    model = HistGradientBoostingClassifier(random_state=0).fit(codes[train], y[train])
    metadata = {name: columns[name][~train].to_numpy() for name in columns}
    audit = errata.audit(
        errata.Evaluation(labels=y[~train], probs=model.predict_proba(codes[~train]), metadata=metadata)
    )
    assert audit.settings["methods"] == ["rules"]
    first = audit.slices[0]
    assert first.verdict == "confirmed"
    assert first.confirm.error_rate > 2 * audit.overall[0][1].error_rate
    assert len(first.rule["conditions"]) <= 3


def test_news_in_words():
    news = table("agnews.parquet")
    train, test = news[news["split"] == "train"], news[news["split"] == "test"].head(4000)
    words = TfidfVectorizer(min_df=3, sublinear_tf=True)
    A, B = words.fit_transform(train["text"]), words.transform(test["text"])
    model = LogisticRegression(max_iter=200).fit(A, train["noisy_label"])
    ev = errata.Evaluation(
        labels=test["label"].to_numpy(),
        probs=model.predict_proba(B),
        representations={"svd": TruncatedSVD(32, random_state=0).fit(A).transform(B)},
        media=errata.inputs.Texts(test["text"].tolist()),
        class_names=("world", "sport", "business", "sci/tech"),
    )
    audit = errata.audit(ev, methods=["spotlight"], options={"spotlight": {"size": 0.05}})
    kinds = {e.kind: e.to_json() for e in audit.slices[0].explanations}
    assert kinds["tokens"]["rows"]
    assert kinds["tokens"]["length"]["slice"] > 0


def test_faces_lead_to_children():
    """As in the paper's FairFace figure: a gender model is worse on the young, whom no label names."""
    from PIL import Image

    faces = table("utkface64.parquet").sample(8000, random_state=0)
    pictures = [Image.open(io.BytesIO(b)).convert("RGB").resize((24, 24)) for b in faces["image"]]
    X = np.stack([np.asarray(p) for p in pictures]).reshape(len(faces), -1) / 255.0
    y = faces["gender"].astype("category").cat.codes.to_numpy()
    reduce = PCA(60, svd_solver="randomized", random_state=0).fit(X[:4000])
    F = StandardScaler().fit(reduce.transform(X[:4000])).transform(reduce.transform(X))
    model = MLPClassifier((64,), max_iter=20, random_state=0, alpha=1).fit(F[:4000], y[:4000])
    test = faces[4000:]
    ev = errata.collect(model, (F[4000:], y[4000:]))
    ev = replace(ev, metadata={"age": test["age"].to_numpy()}, media=errata.inputs.ImageBytes(test["image"].tolist()))
    audit = errata.audit(
        ev, methods=["spotlight"], options={"spotlight": {"representation": "penultimate", "size": 0.03}}
    )
    age = test["age"].to_numpy()
    confirm = ~audit.discover
    young = [float((age[s.members & confirm] < 18).mean()) for s in audit.confirmed]
    assert young
    assert max(young) > 2 * float((age[confirm] < 18).mean())


def test_a_gate_on_census_income(tmp_path):
    """Training rows with a capital gain are lost: the gate fails and says so; with all rows it passes."""
    script = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "ci" / "evaluate.py"))
    people = table("adult.parquet")
    for name, without in (("main", None), ("lost", "capital_gain > 0"), ("again", "fnlwgt % 50 == 0")):
        np.savez(tmp_path / f"{name}.npz", **script["evaluate"](people, "linear", without, 0))
    fails = run(
        "compare", tmp_path / "main.npz", tmp_path / "lost.npz", "--fail-on", "worse", "-o", tmp_path / "c.json"
    )
    assert fails.code == 1
    changes = json.loads((tmp_path / "c.json").read_text())["changes"]
    worst = max((change for change in changes if change["judgement"] == "worse"), key=lambda change: change["change"])
    assert worst["kind"] == "found"
    assert worst["change"] > 0.2
    assert "capital_gain" in worst["name"]
    assert run("compare", tmp_path / "main.npz", tmp_path / "again.npz", "--fail-on", "worse").code == 0
