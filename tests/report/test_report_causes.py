"""The page's part on training rows: opponents, helpers, coherence, labels to look at again."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import errata
from errata.explain.coherence import Coherence
from errata.explain.own_label import OwnLabel
from errata.explain.training_opponents import Opponents
from errata.report import to_html
from errata.report.parts.training_rows import coherence, influence, own_label_sentence, relabel_table
from errata.report.terminal import to_terminal
from support.reports import view_of


@pytest.fixture(scope="module")
def audited():
    """Texts; group 0 of four is mostly mislabelled in training, and one training text is an attack on the page."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    n, centres = 800, 4 * np.eye(4, 5)

    def rows(flip):
        group = rng.integers(0, 4, n)
        truth = group % 2
        labels = np.where(flip & (group == 0) & (rng.random(n) < 0.8), 1 - truth, truth)
        return centres[group] + rng.normal(size=(n, 5)), truth, labels, group

    X, truth, labels, group = rows(True)
    model = LogisticRegression(max_iter=1000).fit(X, labels)
    texts = [f"<script>alert({i})</script> of group {g}" for i, g in enumerate(group)]
    train = errata.Evaluation(
        labels=labels, probs=model.predict_proba(X), representations={"penultimate": X}, ids=np.arange(n) + n,
        metadata={"flipped": np.where(labels != truth, "<b>yes</b>", "no")}, media=errata.inputs.Texts(texts),
    )  # fmt: skip
    Z, clean, _, _ = rows(False)
    test = errata.Evaluation(labels=clean, probs=model.predict_proba(Z), representations={"penultimate": Z})
    return errata.audit(test, train=train, methods=["infembed"])


def test_the_page_shows_opponents_with_their_profile_and_escapes_them(audited):
    html = to_html(audited)
    assert "Opponents" in html
    assert "Helpers" in html
    assert "Training labels to look at again" in html
    assert "&lt;script&gt;alert(" in html
    assert "<script>" not in html
    assert "flipped is &lt;b&gt;yes&lt;/b&gt;" in html


def test_the_parts_say_what_was_chosen_where_and_counted_where(audited):
    part = influence(view_of(audited), audited.slices[0])
    data = next(e.to_json() for e in audited.slices[0].explanations if e.kind == "opponents")
    assert f"{data['held'][0]} of {data['held'][1]}" in part["held"]
    top = part["profile"][0]
    assert (top["column"], top["value"]) == ("flipped", "<b>yes</b>")
    assert part["profiled"] == 50
    assert [group["title"] for group in part["groups"]] == ["Opponents", "Helpers"]
    rows = part["central"]["rows"]
    assert 0 < len(rows) <= 4
    assert all(row["wrong"] for row in rows)


def test_the_part_lists_values_that_differ_beyond_chance_alone(audited):
    first = audited.slices[0]
    told = first.explanation(Opponents)
    shares = (
        replace(told.profile[0], value="noise", p_value=0.2),
        replace(told.profile[0], value="sure", p_value=1e-6),
    )
    others = tuple(explanation for explanation in first.explanations if explanation is not told)
    part = influence(view_of(audited), replace(first, explanations=(*others, replace(told, profile=shares))))
    assert [row["value"] for row in part["profile"]] == ["sure"]


SURE = {"rows": "wrong", "cosine": 0.5, "random": 0.1, "p_value": 0.005, "n": 20}
GROUP = {"n": 31, "cosine": 0.8, "random": 0.1, "p_value": 0.005, "spread": 1.0}
PURE = {
    "label": "cat",
    "labels": [18, 20],
    "prediction": "dog",
    "predictions": [20, 20],
    "margins": 1.5,
    "random": 0.2,
}


def test_where_no_value_is_more_frequent_the_part_says_so(audited):
    """The table went without a word."""
    first = audited.slices[0]
    told = first.explanation(Opponents)
    others = tuple(explanation for explanation in first.explanations if explanation is not told)
    noise = replace(told, profile=(replace(told.profile[0], p_value=0.2),))
    bare = replace(audited, slices=(replace(first, explanations=(*others, noise)),))
    words = "No value of any column is more frequent among the strongest opponents than chance would have it."
    assert words in to_html(bare)
    assert words not in to_html(replace(audited, slices=(first,)))


@pytest.mark.parametrize(
    ("group", "clustered", "words"),
    [
        ("cluster", [7, 20], "raise the loss of the rows that the method put together most"),
        ("slice", [7, 20], "raise the loss of the approximation most"),  # of an audit up to version 0.7.0
        ("slice", None, "raise the loss of this slice most"),
    ],
)
def test_the_heading_says_whose_loss_opponents_raise(audited, group, clustered, words):
    first = audited.slices[0]
    told = replace(first.explanation(Opponents), group=group)
    whole = {"measured_on": "confirm", "of": 100, "spread": 1.0, "central": [], **SURE, "clustered": clustered}
    slice_ = replace(first, explanations=(Coherence.from_json(whole), told))
    part = influence(view_of(audited), slice_)
    assert words in part["groups"][0]["note"]
    assert ("rows that the method put together among" in part["held"]) == (group == "cluster")


def test_audits_that_do_not_say_whose_rows_chose_are_of_the_slice(audited):
    first = audited.slices[0]
    for kind in (Opponents, OwnLabel):
        data = first.explanation(kind).to_json()
        assert data.pop("group") == "cluster"
        assert kind.from_json(data).group == "slice"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"rows": "wrong", "cosine": None, "n": 1}, "Too few errors"),
        (
            {"rows": "wrong", "cosine": 0.5, "random": 0.1, "p_value": 0.005, "n": 20},
            "20 errors .* are more alike than",
        ),
        (  # sure, and little: it is not called one cause
            {**SURE, "cosine": 0.13, "n": 900},
            "900 errors .* are more alike than chance, by little: mean cosine of their influence 0.13",
        ),
        ({**SURE, "p_value": 0.2}, "20 errors .* are not surely more alike than chance"),
        (
            {**SURE, "columns": 16, "same_label": 0.49, "same_label_p": 0.4},
            "first 16 columns 0.50.* no more alike than other errors with the same labels, 0.49 .p = 0.400.: the label "
            "may be all they share",
        ),
        (  # it said "about as alike, 0.45 (p = 0.005)"
            {**SURE, "same_label": 0.45, "same_label_p": 0.005},
            "more alike than other errors with the same labels, by little, 0.45 .p = 0.005.: most of what they share "
            "may be the label",
        ),
        (
            {**SURE, "same_label": 0.2, "same_label_p": 0.02, "homogeneity": PURE},
            "more than a label.* 90.0% have the label cat, 100.0% the prediction dog; "
            r"mean product of their margins .* 1\.50, at random 0\.20",
        ),
        (  # of an approximation: the rows that were clustered first, and the approximation by its name
            {**SURE, "cosine": 0.15, "clustered": [7, 20], "cluster": {**GROUP, "n": 31, "homogeneity": PURE}},
            "^The 31 errors among the held-out rows that the method itself put together are more alike than chance: "
            r".* 0\.80, .* at random 0\.10 .* not p.* Label homogeneity.* Its approximation, which was tested, has 20 "
            r"errors, 7 of them from that cluster; they are more alike than chance, by little: 0\.15, at random 0\.10 "
            r"\(p = 0\.005\)\.$",
        ),
        (
            {**SURE, "clustered": [0, 20], "cluster": {**GROUP, "n": 1, "cosine": None, "random": None}},
            "^Too few errors among the held-out rows of the method's own cluster .* Its approximation.* 0 of them",
        ),
        ({**SURE, "clustered": [7, 20]}, "7 of 20 of them together"),  # of an audit of version 0.7.0
        (
            {"rows": "all", "cosine": 0.1, "random": 0.1, "p_value": 0.4, "n": 20},
            "20 rows .* no more alike than chance",
        ),
    ],
)
def test_coherence_is_one_sentence_with_its_numbers(data, words):
    import re

    whole = {"measured_on": "confirm", "of": 100, "spread": 1.0, "central": [], "random": None, "p_value": None, "n": 1}
    assert re.search(words, coherence(Coherence.from_json({**whole, **data})))


ERROR = {"row": 3, "id": 3, "label": "1", "prediction": "0", "wrong": True, "loss": 1.0}
RIGHT = {**ERROR, "prediction": "1", "wrong": False}
UNJUDGED = {**ERROR, "wrong": None}


@pytest.mark.parametrize(
    ("data", "note"),
    [
        ({"central": [ERROR]}, "of its errors, by influence"),
        ({"central": [UNJUDGED], "rows": "all"}, "of its members, by influence"),
        (
            {"central": [ERROR], "clustered": [0, 20], "cluster": GROUP},
            "of the held-out errors that the method itself put together, by influence",
        ),
        (
            {"central": [UNJUDGED], "rows": "all", "clustered": [3, 20], "cluster": GROUP},
            "of the held-out members that the method itself put together, by influence",
        ),
        ({"central": [], "clustered": [0, 20], "cluster": {**GROUP, "n": 0}}, None),
        # Of audits of version 0.7.0, which narrowed to the cluster and to errors only where something was left:
        ({"central": [ERROR], "clustered": [7, 20]}, "of its errors that the method itself put together, by influence"),
        ({"central": [ERROR], "clustered": [0, 20]}, "of its errors, by influence"),
        ({"central": [RIGHT, RIGHT], "clustered": [0, 0]}, None),
        ({"central": [RIGHT]}, None),
    ],
)
def test_the_central_rows_are_called_what_they_are(audited, data, note):
    whole = {"measured_on": "confirm", "of": 100, "spread": 1.0, "columns": 8, **SURE, **data}
    slice_ = replace(audited.slices[0], explanations=(Coherence.from_json(whole),))
    group = influence(view_of(audited), slice_)["central"]
    assert (group and group["note"]) == note


def test_rows_of_the_slices_own_label_stand_beside_each_other(audited):
    part = influence(view_of(audited), audited.slices[0])["own_label"]
    assert [group["title"] for group in part["groups"]] == ["Opponents labelled 0", "Helpers labelled 0"]
    assert part["sentence"].startswith("Training rows labelled 0, the commonest label of the errors that ")
    assert "no column of metadata tells those" in part["sentence"]  # no row of label 0 is a flipped one
    assert "of the former pull those of them that are held out the wrong way too" in part["sentence"]
    assert {row["column"] for row in part["shares"]} == {"fitted"}
    html = to_html(audited)
    assert "Opponents labelled 0" in html
    console = io.StringIO()
    Console(file=console, width=10_000).print(to_terminal(audited))
    assert part["sentence"] in console.getvalue()


ENDS = {"chosen_on": "discover", "measured_on": "confirm", "label": "cat", "of": 900, "held": [45, 50], "losses": None}
ROW = {"row": 1, "id": 1, "label": "cat", "prediction": "cat", "wrong": False, "loss": 0.1}
RANKED = {**ROW, "text": None, "picture": None, "influence": -1.0, "cosine": -0.5}
SHARE = {"opponents": [40, 50], "helpers": [2, 50], "label": [720, 900], "interval": [0.6, 0.9]}


def own_label(*shares) -> OwnLabel:
    whole = [{**SHARE, "helpers_interval": [0.0, 0.1], **share} for share in shares]
    return OwnLabel.from_json({**ENDS, "opponents": [RANKED], "helpers": [RANKED], "shares": whole})


@pytest.mark.parametrize(
    ("p_value", "words"),
    [
        (
            1e-9,
            "tag is yes in 40 of 50 of those that pull it the wrong way most and in 2 of 50 of those that pull it the "
            "right way most (all of the label: 80.0%; p < 0.001)",
        ),
        (0.2, "no column tells them apart beyond chance; the nearest: tag is yes in 40 of 50 of"),
        (None, "(all of the label: 80.0%; not compared with chance)"),  # of an audit of version 0.7.0
    ],
)
def test_the_sentence_names_the_column_and_says_whether_it_differs(p_value, words):
    tag = {"column": "tag", "value": "yes", "p_value": p_value}
    fitted = {"column": "fitted", "value": "right", "p_value": 1e-20}
    sentence = own_label_sentence(own_label(tag, fitted))
    assert words in sentence
    assert "45 of 50 of the former pull its held-out rows the wrong way too" in sentence
    assert "fitted" not in sentence  # nearly a tautology: it is in the table, last


def test_pages_without_influence_have_no_such_part(audited):
    bare = replace(
        audited,
        slices=tuple(
            replace(
                s,
                explanations=tuple(e for e in s.explanations if e.kind not in ("opponents", "coherence", "own_label")),
            )
            for s in audited.slices
        ),
        explanations=(),
    )
    assert influence(view_of(bare), bare.slices[0]) is None
    assert relabel_table(view_of(bare), None) is None
    assert "Opponents" not in to_html(bare)
