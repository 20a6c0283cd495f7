"""The page's part on training rows: opponents, helpers, coherence, labels to look at again."""

from dataclasses import replace

import numpy as np
import pytest

import errata
from errata.explain.coherence import Coherence
from errata.report import to_html
from errata.report.parts.training_rows import coherence, influence, relabel_table
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
    assert "flipped = &lt;b&gt;yes&lt;/b&gt;" in html


def test_the_parts_say_what_was_chosen_where_and_counted_where(audited):
    part = influence(view_of(audited), audited.slices[0])
    data = next(e.to_json() for e in audited.slices[0].explanations if e.kind == "opponents")
    assert f"{data['held'][0]} of {data['held'][1]}" in part["held"]
    top = part["profile"][0]
    assert (top["column"], top["value"]) == ("flipped", "<b>yes</b>")
    assert part["profiled"] == 50
    assert [group["title"] for group in part["groups"]] == ["Opponents", "Helpers"]
    assert len(part["central"]) == 4


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"rows": "wrong", "cosine": None, "n": 1}, "Too few errors"),
        (
            {"rows": "wrong", "cosine": 0.5, "random": 0.1, "p_value": 0.005, "n": 20},
            "20 errors .* are more alike than",
        ),
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


def test_pages_without_influence_have_no_such_part(audited):
    bare = replace(
        audited,
        slices=tuple(
            replace(s, explanations=tuple(e for e in s.explanations if e.kind not in ("opponents", "coherence")))
            for s in audited.slices
        ),
        explanations=(),
    )
    assert influence(view_of(bare), bare.slices[0]) is None
    assert relabel_table(view_of(bare), None) is None
    assert "Opponents" not in to_html(bare)
