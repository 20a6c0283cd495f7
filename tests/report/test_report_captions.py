"""Captions and the easy end of a failure direction on the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from errata.core import Audit, Explanation, Slice
from errata.explain.captions import DirectionCaptions
from errata.explain.extremes import Extremes
from errata.report import to_html, to_terminal
from support.reports import SCRIPTS

Make = Callable[..., Any]
SETTINGS = {
    "alpha": 0.05,
    "level": 0.05,
    "tested": 1,
    "run": 1,
    "trained_on_these_rows": "no",
    "methods": ["directions"],
}


def row(text: str, score: float, precision: float | None, errors: int, n: int) -> dict[str, Any]:
    matches = {"errors": errors, "n": n, "error_rate": errors / n if n else None, "interval": (0.241, 0.549)}
    return {
        "text": text, "score": score,
        "matches": {**matches, "mean_loss": None, "share": 0.1, "cosine": 0.3, "covers": [1, 2], "precise": [1, 2]},
        "retrieval": {"average_precision": precision, "base_rate": 0.21, "n": 1905},
    }  # fmt: skip


def captioned(**changes: Any) -> Explanation:
    whole = {"n": 1905, "errors": 400, "error_rate": 400 / 1905, "mean_loss": None, "interval": (0.19, 0.23)}
    plain = {
        "class": "dog", "reference": "a photo of a dog", "representation": "clip", "of": 640,
        "left_out": {"names": 12, "nearer": 3}, "class_rate": whole,
        "hard": [row("a dog in snow", -0.31, 0.62, 13, 34), row("a small dog", -0.2, None, 5, 11)],
        "easy": [row("a dog on grass", 0.25, 0.12, 2, 0)], "chosen_on": "discover", "measured_on": "confirm",
        "scored_by": "correlation",
    }  # fmt: skip
    return DirectionCaptions.from_json({**plain, **changes})


def page_words(audit: Audit) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", to_html(audit).partition("<main")[2]).split())


def build(make_audit: Make, make_slice: Callable[..., Slice], *explanations: Explanation) -> Audit:
    audit: Audit = make_audit(make_slice(explanations=explanations), settings=SETTINGS)
    return audit


def test_a_caption_with_its_score_its_precision_and_its_error(make_audit: Make, make_slice: Make) -> None:
    text = page_words(build(make_audit, make_slice, captioned()))
    assert "Caption Side Error of the nearest rows 95% interval Score Average precision" in text
    assert "a dog in snow hard 38.2% 13 of 34 24.1% to 54.9% −0.31 0.62" in text
    assert "a small dog hard 5 of 11 24.1% to 54.9% −0.2 not measured" in text
    assert "a dog on grass easy not measured 0.25 0.12 Chosen of 640 captions" in text
    assert "by the correlation, over search rows of the class, between a row’s nearness to the caption and the " in text
    assert "direction’s decision, less that of “a photo of a dog”; negative is hard." in text
    assert "Excluded: 12 that name another class, 3 that lie nearer to one." in text
    assert "In the order of the error that was measured" in text
    assert (
        "the intervals hold for all captions of a side together. Of all rows labelled dog 21.0%, 400 of 1,905." in text
    )
    assert "retrieves the slice within its class, by chance 0.21." in text
    assert "Also in audit.json" not in text


def test_none_is_left(make_audit: Make, make_slice: Make) -> None:
    text = page_words(build(make_audit, make_slice, captioned(hard=[], easy=[])))
    assert "No caption is left that lies on either side. Chosen of 640 captions" in text


def test_the_paper_s_score_is_told_with_its_reference(make_audit: Make, make_slice: Make) -> None:
    """Audits of version 0.3 do not say what captions were chosen by: it was the difference."""
    plain = captioned().to_json()
    del plain["scored_by"]
    text = page_words(build(make_audit, make_slice, DirectionCaptions.from_json(plain)))
    assert "by what each says beyond “a photo of a dog”, along the direction; negative is hard." in text


def test_captions_are_escaped(make_audit: Make, make_slice: Make) -> None:
    evil = "<script>alert(1)</script>"
    told = {"reference": evil, "class": evil, "scored_by": "difference"}
    explanation = captioned(hard=[row(evil, -0.3, 0.5, 1, 2)], **told)
    html = to_html(build(make_audit, make_slice, explanation))
    assert html.count('<script type="module">') == SCRIPTS
    assert html.lower().count("<script") == html.count("<script type=")
    assert html.count("&lt;script&gt;") == 3


def test_the_other_end_of_the_direction(make_audit: Make, make_slice: Make) -> None:
    rows = [{"row": 0, "id": 0, "label": "dog", "prediction": "cat", "loss": 2.0, "wrong": True, "picked": "weight"}]
    groups = [{"which": which, "of": 300, "rows": shown} for which, shown in (("hardest", []), ("easiest", rows))]
    text = page_words(build(make_audit, make_slice, Extremes.from_json({"drawn_from": "confirm", "groups": groups})))
    assert "The easiest of its class 1 of 300 held-out rows, by the direction" in text
    assert "hardest" not in text
    assert "Also in audit.json" not in text


def terminal_words(audit: Audit) -> str:
    console = Console(width=1000, record=True, file=io.StringIO())
    console.print(to_terminal(audit))
    return console.export_text()


def test_the_terminal_has_the_hardest_caption_with_its_numbers(
    make_audit: Make, make_slice: Callable[..., Slice]
) -> None:
    said = terminal_words(build(make_audit, make_slice, captioned()))
    assert "Hardest caption “a dog in snow”: 13 of 34 held-out rows near it are wrong (24.1% to 54.9%)" in said
    assert ", of all rows labelled dog 21.0%." in said
    none = terminal_words(build(make_audit, make_slice, captioned(hard=[])))
    assert "None of 640 captions lies on its hard side." in none
    unmatched = terminal_words(build(make_audit, make_slice, captioned(hard=[row("a dog", -1, None, 0, 0)])))
    assert "Hardest caption “a dog”." in unmatched
    assert "caption" not in terminal_words(build(make_audit, make_slice))


def test_within_a_prediction_the_rows_are_those_predicted(make_audit: Make, make_slice: Callable[..., Slice]) -> None:
    slice_ = make_slice(explanations=(captioned(),), rule={"scope": {"prediction": 1}})
    audit = make_audit(slice_, settings=SETTINGS)
    assert ", of all rows predicted dog 21.0%." in terminal_words(audit)
    assert "Of all rows predicted dog 21.0%, 400 of 1,905." in page_words(audit)


NULL = {"mean": 0.502, "spread": 0.021, "z": 7.9, "p_value": 0.05, "shuffles": 20}
WHAT = "balanced accuracy of the direction on search rows that it was not fitted to; "
CHANCE = "shuffled outcomes give 0.50 (standard deviation 0.02, 20 shuffles)"
STRENGTHS = [
    ({"strength": 0.668, "null": NULL}, "Strength 0.67", WHAT + CHANCE),
    ({"strength": 0.52, "null": {**NULL, "z": 0.9}}, "Strength 0.52", WHAT + CHANCE + ": no more than chance"),
    ({"strength": 0.668, "null": None}, "Strength 0.67", WHAT + "not compared with shuffled outcomes"),
    ({"strength": None, "null": None, "note": "errors: 1, so unknown"}, "Strength unknown", "errors: 1, so unknown"),
]


@pytest.mark.parametrize(("rule", "mark", "words"), STRENGTHS)
def test_the_strength_of_a_direction_beside_chance(
    make_audit: Make, make_slice: Callable[..., Slice], rule: dict[str, Any], mark: str, words: str
) -> None:
    audit = make_audit(make_slice(rule=rule), settings=SETTINGS)
    assert f"{mark} {words}" in page_words(audit)
    assert f"{mark}: {words}." in terminal_words(audit)


def test_what_is_no_direction_has_no_strength(make_audit: Make, make_slice: Callable[..., Slice]) -> None:
    audit = build(make_audit, make_slice)
    assert "Strength" not in page_words(audit) + terminal_words(audit)
    # The direction behind an approximation knows the outcome: strong by construction.
    rule = {"kind": "approximation", "of": {"strength": 1.0, "null": NULL}}
    audit = make_audit(make_slice(rule=rule), settings=SETTINGS)
    assert "Strength" not in page_words(audit) + terminal_words(audit)
