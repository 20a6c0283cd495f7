"""Captions and the easy end of a failure direction on the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

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
    }  # fmt: skip
    return DirectionCaptions.from_json({**plain, **changes})


def page_words(audit: Audit) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", to_html(audit).partition("<main")[2]).split())


def build(make_audit: Make, make_slice: Callable[..., Slice], *explanations: Explanation) -> Audit:
    audit: Audit = make_audit(make_slice(explanations=explanations), settings=SETTINGS)
    return audit


def test_a_caption_with_its_score_its_precision_and_its_error(make_audit: Make, make_slice: Make) -> None:
    text = page_words(build(make_audit, make_slice, captioned()))
    assert "Caption Side Score Average precision Error of the nearest rows 95% interval" in text
    assert "a dog in snow hard −0.31 0.62 38.2% 13 of 34 24.1% to 54.9%" in text
    assert "a small dog hard −0.2 not measured 5 of 11 24.1% to 54.9%" in text
    assert "a dog on grass easy 0.25 0.12 not measured Of 640 captions" in text
    assert "by what each says beyond “a photo of a dog” along the direction; negative is hard." in text
    assert "Excluded: 12 that name another class, 3 that lie nearer to one." in text
    assert "of all of dog 21.0%, 400 of 1,905." in text
    assert "retrieves the slice within its class, by chance 0.21." in text
    assert "Also in audit.json" not in text


def test_none_is_left(make_audit: Make, make_slice: Make) -> None:
    text = page_words(build(make_audit, make_slice, captioned(hard=[], easy=[])))
    assert "No caption is left that lies on either side. Of 640 captions" in text


def test_captions_are_escaped(make_audit: Make, make_slice: Make) -> None:
    evil = "<script>alert(1)</script>"
    explanation = captioned(hard=[row(evil, -0.3, 0.5, 1, 2)], reference=evil, **{"class": evil})
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
    assert ", of all of dog 21.0%." in said
    none = terminal_words(build(make_audit, make_slice, captioned(hard=[])))
    assert "None of 640 captions says more on its hard side." in none
    unmatched = terminal_words(build(make_audit, make_slice, captioned(hard=[row("a dog", -1, None, 0, 0)])))
    assert "Hardest caption “a dog”." in unmatched
    assert "caption" not in terminal_words(build(make_audit, make_slice))
