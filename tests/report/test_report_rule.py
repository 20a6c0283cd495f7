"""A rule over columns on the pages and in the terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from rich.console import Console

from errata.core import Audit, Slice
from errata.core.rules import Condition, to_pandas, to_sql, to_text
from errata.explain.contrast import Contrast
from errata.explain.names import Name
from errata.explain.rule import Rule, RuleCondition, RuleRow
from errata.explain.view import Match, Outcome
from errata.report import to_html, to_terminal

Make = Callable[..., Any]
CONDITIONS = (Condition("age", high=5.0), Condition("hair <color>", values=("dark & red",)))
SETTINGS = {"alpha": 0.05, "level": 0.05, "tested": 1, "run": 1, "trained_on_these_rows": "no", "methods": ["rules"]}


def ruled(own: bool, errors: int | None = 98) -> Rule:
    def outcome(n: int, wrong: int | None, loss: float | None) -> Outcome:
        return Outcome(n, wrong, None if wrong is None else wrong / n, loss)

    loss = 2.5 if errors is None else None
    without = outcome(400, None if errors is None else 100, None if loss is None else 1.0)
    few = outcome(12, None if errors is None else 3, None if loss is None else 1.0)
    parts = tuple(
        RuleCondition(condition.text, condition.to_json(), told)
        for condition, told in zip(CONDITIONS, (without, few), strict=True)
    )
    row = RuleRow(
        text=to_text(CONDITIONS),
        words=to_text(CONDITIONS),
        query=to_pandas(CONDITIONS),
        sql=to_sql(CONDITIONS),
        conditions=parts,
        match=Match((180, 214), (180, 240), outcome(214, errors, loss)),
        others=outcome(4786, None if errors is None else 365, None if loss is None else 0.5),
        interval=None if errors is None else (0.392, 0.525),
    )
    return Rule("discover", "confirm", own, (row,) if own else (row, row))


def page_words(audit: Audit) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", to_html(audit).partition("<main")[2]).split())


def build(make_audit: Make, make_slice: Callable[..., Slice], *explanations: Any) -> Audit:
    audit: Audit = make_audit(make_slice(explanations=explanations), settings=SETTINGS)
    return audit


def test_the_slices_own_rule_with_what_each_condition_adds(make_audit: Make, make_slice: Make) -> None:
    audit = build(make_audit, make_slice, ruled(own=True))
    text = page_words(audit)
    assert "The rule of this slice" in text
    assert "Hypothesis age &lt; 5 and &#34;hair &lt;color&gt;&#34; = &#34;dark &amp; red&#34; pandas" in text
    assert "98 of 214 held-out rows that meet it are wrong: 45.8% (95% interval 39.2% to 52.5%), against 7.6%" in text
    assert "Condition Wrong without it It adds age &lt; 5 25.0% 100 of 400 20.8 points" in text
    assert "3 of 12 too few rows" in text
    assert "It covers" not in text
    assert audit.slices[0].query == "age < 5 and `hair <color>` == 'dark & red'"
    assert audit.slices[0].sql == '"age" < 5 AND "hair <color>" = \'dark & red\''
    html = to_html(audit)
    assert "<dt>pandas</dt><dd><code>age &lt; 5 and `hair &lt;color&gt;` == &#39;dark &amp; red&#39;</code>" in html


def test_the_rule_that_tells_a_slice_of_another_method(make_audit: Make, make_slice: Make) -> None:
    audit = build(make_audit, make_slice, ruled(own=False))
    text = page_words(audit)
    assert "The rule that tells it best: age &lt; 5 and" in text
    assert "It covers 180 of 214 members; 180 of 240 rows that meet it are members. 98 of 214" in text
    assert "1 more rule" in text
    assert audit.slices[0].query is None


def test_a_rule_without_errors_is_told_by_its_loss(make_audit: Make, make_slice: Make) -> None:
    text = page_words(build(make_audit, make_slice, ruled(own=True, errors=None)))
    assert "214 held-out rows meet it, with a mean loss of 2.5 against 0.5 of all others." in text
    assert "1 400 rows 1.5 mean loss" in text


def test_a_weak_name_and_a_missing_one_are_told_wherever_they_stand(make_audit: Make, make_slice: Make) -> None:
    match = Match((44, 100), (44, 80), Outcome(80, 20, 0.25, None))
    weak = Name("discover", "confirm", "small triangles", "metadata", match, weak=True)
    none = Name("discover", "confirm", "x", None, contrast=Contrast("site a", (80, 100), (41, 100)))
    for name, words in (
        (weak, "Weak name: covers 44.0% (44 of 100 members), precise 55.0% (44 of 80 rows it fits)."),
        (none, "Members are more often site a: 80.0% against 41.0%."),
    ):
        audit = build(make_audit, make_slice, name)
        text = page_words(audit)
        overview, _, page = text.partition("Slice s1, 1 of 1")
        assert words in overview
        assert page.count(words) == 1
        out = io.StringIO()
        Console(file=out, width=300).print(to_terminal(audit))
        assert words in " ".join(out.getvalue().split())
