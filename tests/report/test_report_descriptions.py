"""The texts that describe a slice: on the page, and in the terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from rich.console import Console

from errata.core import Audit, Explanation, Slice
from errata.explain.descriptions import Descriptions
from errata.report import to_html, to_terminal
from support.reports import SCRIPTS

EVIL = "<script>alert(1)</script>"


def described(*rows: tuple[str, float, float | None], **changes: Any) -> Explanation:
    plain = {"chosen_on": "discover", "measured_on": "confirm", "reference": "class", "majority": 1, "class": "dog"}
    told = [
        {"text": text, "score": score, "average_precision": precision, "base_rate": 0.05, "n": 1500}
        for text, score, precision in rows
    ]
    return Descriptions.from_json({**plain, "of": 40, "representation": "clip", "rows": told, **changes})


def page_words(audit: Audit) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", to_html(audit).partition("<main")[2]).split())


def terminal_words(audit: Audit) -> str:
    file = io.StringIO()
    Console(file=file, width=100).print(to_terminal(audit))
    return " ".join(file.getvalue().split())


Make = Callable[..., Any]
SETTINGS = {"alpha": 0.05, "level": 0.05, "tested": 1, "run": 1, "trained_on_these_rows": "no", "methods": ["domino"]}


def build(make_audit: Make, make_slice: Callable[..., Slice], explanation: Explanation) -> Audit:
    audit: Audit = make_audit(make_slice(explanations=(explanation,)), settings=SETTINGS)
    return audit


def test_a_short_table_with_chance_beside_it(make_audit: Make, make_slice: Make) -> None:
    rows = [(f"text {j}", 0.5 - 0.1 * j, 0.9 - 0.1 * j) for j in range(9)]
    text = page_words(build(make_audit, make_slice, described(("snow & ice", 0.6, None), *rows)))
    assert (
        "Nearest texts Text Score Average precision By chance snow &amp; ice 0.6 not measured 0.05 text 0 0.5 0.9 0.05"
        in text
    )
    assert "text 3 0.2 0.6 0.05" in text
    assert "text 4" not in text
    assert "Of 40 texts, chosen on search rows: nearer to the slice than to its class, dog." in text
    assert "retrieves members among 1,500 held-out rows." in text
    assert "Also in audit.json" not in text


def test_texts_that_lie_away_from_it_are_not_shown(make_audit: Make, make_slice: Make) -> None:
    text = page_words(build(make_audit, make_slice, described(("snow", 0.2, 0.6), ("lawn", -0.1, 0.02))))
    assert "snow 0.2 0.6" in text
    assert "lawn" not in text
    none = build(make_audit, make_slice, described(("lawn", -0.1, 0.02), chosen_on="all"))
    assert "No text lies nearer to it than to its class. Of 40 texts, chosen on all rows, since few" in page_words(none)
    assert "None of 40 texts lies nearer to it than to its class." in terminal_words(none)


def test_the_terminal_says_the_first_three(make_audit: Make, make_slice: Make) -> None:
    rows = [("snow", 0.5, 0.912), ("ice", 0.3, None), ("fog", 0.2, 0.051), ("rain", 0.1, 0.05)]
    text = terminal_words(build(make_audit, make_slice, described(*rows)))
    said = "“snow” (0.912), “ice” (not measured), “fog” (0.051); by chance 0.05."
    assert f"Nearest texts, with their average precision on 1,500 held-out rows: {said}" in text


def test_nothing_is_said_where_no_texts_were_given(make_audit: Make, make_slice: Make) -> None:
    audit = make_audit(make_slice(), settings=SETTINGS)
    assert "earest texts" not in page_words(audit) + terminal_words(audit)


def test_texts_are_escaped_and_kept_short(make_audit: Make, make_slice: Make) -> None:
    audit = build(make_audit, make_slice, described((EVIL, 0.5, 0.9), ("long " * 99, 0.4, 0.9), **{"class": EVIL}))
    html = to_html(audit)
    assert html.count('<script type="module">') == SCRIPTS
    assert html.lower().count("<script") == html.count("<script type=")
    assert html.count("&lt;script&gt;") == 2
    assert "long long…</td>" in html
    assert "long long…” (0.9)" in terminal_words(audit)
