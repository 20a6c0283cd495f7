"""A path on the page and in the terminal: its words, its numbers kept apart, its features' pictures."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from errata.core import Audit, Evaluation, Explanation
from errata.explain.features import Features
from errata.explain.path import TreePath
from errata.report import to_html, to_terminal

Make = Callable[..., Any]
EVIL = "<script>alert(1)</script>"
SETTINGS = {"alpha": 0.05, "level": 0.05, "tested": 1, "run": 1, "trained_on_these_rows": "no", "methods": ["barlow"]}

CONDITION = {"feature": 1456, "op": "<=", "value": 0.36}
RULE = {"kind": "path", "representation": "robust", "scope": {"label": 0}, "conditions": [CONDITION],
        "names": ["feature 1456"], "leaves": [[CONDITION], [{**CONDITION, "op": ">"}]], "leaf": 0}  # fmt: skip


def facts(i: int, **more: Any) -> dict[str, Any]:
    wrong = i in (1, 3, 5, 51)
    return {
        "row": i, "id": i, "label": "purse", "prediction": "bag" if wrong else "purse", "loss": None, "wrong": wrong,
        **more,
    }  # fmt: skip


def numbers(n: int, failures: int, group_n: int, group_failures: int) -> dict[str, Any]:
    return {
        "n": n, "failures": failures, "group_n": group_n, "group_failures": group_failures, "text": "",
        "base_error_rate": group_failures / group_n, "error_rate": failures / n,
        "error_coverage": failures / group_failures, "importance": 0.2678, "aler": 0.3433,
    }  # fmt: skip


def path(**changes: Any) -> Explanation:
    along = [facts(i, value=i / 100, quantile=q) for i, q in ((1, 0.0), (3, 0.25), (7, 0.5), (9, 0.75), (11, 1.0))]
    one = {
        "feature": 1456, "name": "feature 1456", "cuts": [{"op": "<=", "value": 0.36}], "of": 1300,
        "activating": [facts(11, value=0.875), facts(5, value=0.75)], "range": along,
    }  # fmt: skip
    groups = [
        {"which": "failures", "of": 40, "rows": [facts(1)]},
        {"which": "right in the leaf", "of": 30, "rows": [facts(7)]},
        {"which": "right beside it", "of": 0, "rows": []},
    ]
    plain = {
        "text": "feature 1456 below 0.36", "within": "label purse", "representation": "robust", "knows_outcome": False,
        "searched": numbers(615, 257, 1300, 401), "confirm": numbers(600, 240, 1290, 390), "features": [one],
        "drawn_from": "confirm", "seed": 0, "groups": groups,
    }  # fmt: skip
    return TreePath.from_json({**plain, **changes})


def address(grey: int) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.new("L", (8, 8), grey).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def views(**changes: Any) -> Explanation:
    plain = {"picture": address(10), "heat": address(20), "attack": address(30), "before": 0.875, "after": 2.5}
    taken = [{"row": 11, "moved": 5.5, **plain, **changes}, {"row": 5, "moved": 5.5, **plain}]
    features = [{"feature": 1456, "name": "feature 1456", "pictures": taken}]
    return Features.from_json({"representation": "robust", "radius": 5.543, "step": 0.1, "steps": 100,
                                    "features": features})  # fmt: skip


@pytest.fixture
def build(make_audit: Make, make_slice: Make, pictures: Any) -> Callable[..., Audit]:
    def made(*explanations: Explanation, media: bool = True) -> Audit:
        wrong = np.isin(np.arange(100), (1, 3, 5, 51)).astype(int)
        ev = Evaluation(labels=np.zeros(100, int), predictions=wrong, media=pictures(100) if media else None)
        found = make_slice(explanations=explanations, method="barlow", found_by=("barlow",), rule=RULE)
        audit: Audit = make_audit(found, evaluation=ev, settings=SETTINGS)
        return audit

    return made


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html.partition("<main")[2].partition("<dialog")[0]).split())


def test_the_path_stands_under_the_name_and_in_the_terminal(build):
    assert "Path: feature 1456 below 0.36." in words(to_html(build(path())))
    file = io.StringIO()
    Console(file=file, width=200).print(to_terminal(build(path())))
    assert "Path: feature 1456 below 0.36." in " ".join(file.getvalue().split())


def test_numbers_of_searched_and_of_confirm_rows_are_apart(build):
    text = words(to_html(build(path())))
    assert "feature 1456 below 0.36 within label purse" in text
    assert "Search rows, where it was found 41.8% 257 of 615 30.8% 401 of 1,300 64.1% 0.268 34.3%" in text
    assert "Held-out rows 40.0% 240 of 600 30.2% 390 of 1,290 61.5% 0.268 34.3%" in text
    assert "Numbers on search rows are too optimistic" in text
    assert "Also in audit.json" not in text


def test_a_path_that_knows_the_outcome_has_no_confirm_numbers(build):
    text = words(to_html(build(path(confirm=None, knows_outcome=True))))
    assert "Held-out rows 40" not in text
    assert "its leaves are wrong by construction, on held-out rows too" in text


def test_rows_without_a_model(build):
    html = to_html(build(path()))
    text = words(html)
    assert "feature 1456 below 0.36 on the path; 1,300 rows in its group" in text
    assert "Most activating rows of its group" in text
    assert "lowest: 0.01" in text
    assert "25%: 0.03" in text
    assert "highest: 0.11" in text
    assert "Failures of the path 1 of 40 held-out rows; at random" in text
    assert "Right, on the path 1 of 30 held-out rows" in text
    assert "Right, off the path" not in text
    assert "Heat map" not in text
    assert 'id="p11"' in html


def test_rows_without_pictures_are_lines(build):
    text = words(to_html(build(path(), media=False)))
    assert "lowest: 0.01" in text
    assert "row 11" in text


def test_pictures_of_a_feature(build):
    html = to_html(build(path(), views()))
    text = words(html)
    assert "by at most 5.54 (L2 of pixels in [0, 1]) in 100 steps." in text
    assert "0.875 → 2.5" in text
    for grey in (20, 30):
        assert html.count(address(grey)) == 1, "stored once, and used wherever it is shown"
        id = re.search(rf'<symbol id="(v\d+)"[^>]*><image href="{re.escape(address(grey))}"[^>]* class="hard"', html)[1]
        assert html.count(f'<use href="#{id}"/>') == 4  # of two rows, beside the name and with their values
    assert html.count("heat map: where feature 1456 is in row 11") == 2


def test_a_dead_feature_is_said(build):
    text = words(to_html(build(path(), views(heat=None, before=0.0, after=0.0, moved=0.0))))
    assert "nowhere in it" in text
    assert "could not be raised" in text


def test_pictures_beyond_the_budget_are_left_out_and_said(build, monkeypatch):
    monkeypatch.setattr("errata.report.image_sources.BUDGET", 5_000)
    html = to_html(build(path(), views(attack=address(30) + "A" * 40_000)))
    assert "A" * 1000 not in html
    assert re.search(r"1 of \d+ images are left out", words(html))


def test_nothing_a_user_named_becomes_html(build):
    html = to_html(build(path(text=EVIL, within=EVIL), views()))
    assert EVIL not in html
