"""What a list of slices may be sorted by, and the rates drawn beside a slice: each is the number its label says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from errata.core import Audit, Evaluation, Slice
from errata.core.judged import Decided, Judged
from errata.explain.names import Name
from errata.explain.view import Match, Outcome
from errata.report import to_html
from errata.report.pages.slice import forest
from errata.report.slice_lines import ORDERS, in_order, order_labels, priorities, sort_keys
from support.reports import view_of

Make = Callable[..., Slice]


@pytest.fixture
def slices(make_slice: Make, confirmed: Callable[..., Any]) -> list[Slice]:
    """Each is the first by one order, and no order is the reverse of another."""
    numbers = {  # id: rows, errors, excess (point, low, high), interval of the gap, precision of the name
        "priority": (350, 110, (90.0, 80.0, 100.0), (0.20, 0.60), (1, 10)),
        "most-errors": (400, 120, (85.0, 50.0, 100.0), (0.15, 0.60), (4, 10)),
        "largest-gap": (50, 30, (25.0, 20.0, 200.0), (0.50, 0.52), (2, 10)),
        "most-rows": (900, 90, (60.0, 40.0, 95.0), (0.05, 0.70), (3, 10)),
        "highest-rate": (30, 29, (22.0, 10.0, 30.0), (0.30, 0.95), (5, 10)),
        "precise-name": (200, 70, (50.0, 30.0, 60.0), (0.10, 0.30), (9, 10)),
    }
    listed = []
    for id, (n, errors, excess, interval, precise) in numbers.items():
        measured = confirmed(n=n, errors=errors, rate=errors / n, excess=excess, interval=interval)
        name = Name("discover", "confirm", id, "labels", Match((1, 2), precise, Outcome(10, 5, 0.5, None)))
        listed.append(make_slice(id=id, name=id, confirm=measured, explanations=(name,)))
    return listed


@pytest.mark.parametrize(
    ("order", "first", "last"),
    [
        ("priority", "priority", "highest-rate"),
        ("errors", "most-errors", "highest-rate"),
        ("gap", "largest-gap", "most-rows"),
        ("size", "most-rows", "highest-rate"),
        ("rate", "highest-rate", "most-rows"),
        ("named", "precise-name", "priority"),
    ],
)
def test_each_order_sorts_by_its_own_number(slices: list[Slice], order: str, first: str, last: str) -> None:
    keys = [
        {"id": slice_.id, "sort": {"priority": priorities(slices)[slice_.id], **sort_keys(slice_)}} for slice_ in slices
    ]
    ranked = in_order(keys, order)
    assert (ranked[0]["id"], ranked[-1]["id"]) == (first, last)


def test_the_numbers_to_sort_by(slices: list[Slice]) -> None:
    """Each is the number that its words name, on held-out rows."""
    assert sort_keys(slices[1]) == {"errors": 120.0, "gap": 0.15, "size": 400.0, "rate": 0.3, "named": 0.4}


def test_what_nothing_explains_comes_first(slices: list[Slice]) -> None:
    explained = replace(slices[0], explained_by=("class",))
    first = priorities([explained, *slices[1:]])
    assert min(first, key=lambda id: first[id]) == "priority"
    assert max(first, key=lambda id: first[id]) == "most-errors"


def test_a_slice_without_numbers_comes_last(make_slice: Make) -> None:
    assert sort_keys(make_slice(confirm=None)) == dict.fromkeys(ORDERS[1:], 0.0)
    assert sort_keys(make_slice())["named"] == 0.0  # without a name there is nothing precise


def test_the_page_has_a_button_for_each_order_and_its_number_on_each_line(
    slices: list[Slice], make_audit: Callable[..., Audit]
) -> None:
    html = to_html(make_audit(*slices))
    buttons = re.findall(r'name="order" value="(\w+)" data-key="(\d)".*?<span>(.*?)</span>', html)
    assert buttons == [
        ("priority", "1", "Priority"),
        ("gap", "2", "Largest gap"),
        ("size", "3", "Most rows"),
        ("rate", "4", "Highest error rate"),
        ("named", "5", "Most precise name"),
        ("errors", "6", "Most errors"),
    ]
    lines = re.findall(r'<li class="find"(.*?)>', html)
    assert len(lines) == len(slices)
    first = priorities(slices)
    by_priority = sorted(slices, key=lambda slice_: -first[slice_.id])
    for line, slice_ in zip(lines, by_priority, strict=True):
        attributes = {name: float(value) for name, value in re.findall(r'data-(\w+)="(.*?)"', line)}
        assert attributes == pytest.approx({"priority": first[slice_.id], **sort_keys(slice_)})


def test_losses_are_sorted_under_their_own_name() -> None:
    orders = order_labels("loss above 2.31")
    assert orders[-1][2:] == (
        "Most losses above 2.31",
        "Ordered by most losses above 2.31: held-out rows with a loss above 2.31.",
    )
    assert not any("error" in label + words for _, _, label, words in orders)


def named(n: int, label: int, wrong: tuple[int, ...]) -> Evaluation:
    labels = np.where(np.arange(n) < 60, label, 1 - label)
    predictions = np.where(np.isin(np.arange(n), wrong), 1 - labels, labels)
    return Evaluation(labels=labels, predictions=predictions, class_names=("young", "old"))


def test_other_rows_of_its_class_are_drawn_beside_a_slice(make_slice: Make, make_audit: Callable[..., Audit]) -> None:
    """Rows 0 to 19 are the slice, 0 to 59 old, odd ones held out: 20 others, of which 21, 23 and 59 are wrong."""
    audit = make_audit(make_slice(), evaluation=named(100, 1, (1, 3, 20, 21, 23, 59, 61, 99)))
    own, same, rest = forest(view_of(audit), audit.slices[0])
    assert (own["name"], own["count"], own["own"]) == ("This slice", "98 of 214", True)
    assert (same["name"], same["count"], same["rate"]) == ("Other rows labelled “old”", "3 of 20", "15.0%")
    assert same["at"] == pytest.approx(100 * 0.15 / 0.6)
    assert rest["name"] == "All the rest"
    assert "Other rows labelled “old”: 3 of 20, 95% interval" in to_html(audit)


def test_no_class_is_drawn_beside_a_mixed_slice(make_slice: Make, make_audit: Callable[..., Audit]) -> None:
    """Rows 45 to 94: 7 of its 25 held-out rows are old, 18 young; then a slice of as many of either."""
    evaluation = named(100, 1, (1, 3))
    mostly_young = make_slice(weights=((np.arange(100) >= 45) & (np.arange(100) < 95)).astype(float))
    audit = make_audit(mostly_young, evaluation=evaluation)
    assert [line["name"] for line in forest(view_of(audit), mostly_young)][1] == "Other rows labelled “young”"
    three = Evaluation(labels=np.arange(100) // 2 % 3, predictions=np.zeros(100, int))
    audit = make_audit(make_slice(), evaluation=three)
    assert [line["name"] for line in forest(view_of(audit), audit.slices[0])] == ["This slice", "All the rest"]


def test_within_a_class_the_rest_is_its_class(make_slice: Make, make_audit: Callable[..., Audit]) -> None:
    audit = make_audit(make_slice(rule={"scope": {"label": 1}}), evaluation=named(100, 1, (1, 3)))
    names = [line["name"] for line in forest(view_of(audit), audit.slices[0])]
    assert names == ["This slice", "The rest of label old"]
    found = audit.slices[0]
    widened = replace(found, judged=Judged(Decided(), found, put_in=3))  # by people: compared with all others now
    names = [line["name"] for line in forest(view_of(audit), widened)]
    assert names == ["This slice", "As it was found", "All the rest"]
