"""Error types on the pages: both faces, no rate, and the way from one to the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from errata.core import Audit, ErrorType, Evaluation, Slice
from errata.core.audit import UNCONFIRMABLE, Mistake
from errata.core.judged import Decided, Judged
from errata.report import to_html
from errata.report.terminal import to_terminal

SETTINGS = {
    "version": "0.3.0", "methods": ["infembed"], "seed": 0, "alpha": 0.05, "run": 1, "level": 0.05, "tested": 1,
    "trained_on_these_rows": "no",
}  # fmt: skip


def words(html: str) -> str:
    """The text of a page, as one line."""
    html = re.sub(r"(?s)<(style|script|dialog)[^>]*>.*?</\1>", " ", html)
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def error_type(number: int = 1, **changes: Any) -> ErrorType:
    plain: dict[str, Any] = {
        "id": f"e{number}", "method": "infembed", "name": "cat → dog", "rule": {}, "threshold": 0.5, "errors": 3,
        "weights": np.isin(np.arange(100), (1, 3, 5)).astype(float), "n": 4, "found_by": ("infembed", "george"),
        "mistakes": (Mistake(0, 1, 3, 1.0),), "central": (3, 1), "slice": "s1",
    }  # fmt: skip
    return ErrorType(**{**plain, **changes})


@pytest.fixture
def build(make_slice: Callable[..., Slice], make_audit: Callable[..., Audit]) -> Callable[..., Audit]:
    def audit(*error_types: ErrorType) -> Audit:
        wrong = np.isin(np.arange(100), (1, 3, 5, 51))
        evaluation = Evaluation(
            labels=np.zeros(100, int), predictions=wrong.astype(int), class_names=("cat", "dog"), ids=np.arange(100)
        )
        slice_ = make_slice(fidelity=0.6, error_types=tuple(item.id for item in error_types if item.slice))
        return make_audit(slice_, evaluation=evaluation, error_types=error_types, settings=SETTINGS)

    return audit


def test_the_overview_has_what_it_is_and_who_is_at_risk(build):
    html = to_html(build(error_type()))
    overview = words(html.partition('id="h-error-types"')[2].partition("</section>")[0])
    assert "They are wrong by construction: no rate is claimed." in overview
    assert "e1 cat → dog defined by its errors Found by infembed, george." in overview
    assert "3 errors among 4 held-out rows: “cat” predicted “dog” 3 times." in overview
    assert "Who is at risk: s1 small triangles . Confirmed. 98 of 214 held-out rows are wrong: 45.8%" in overview
    assert 'href="#slice/s1"' in html.partition('id="h-error-types"')[2].partition("</section>")[0]
    assert "row 3" in overview  # a central error


def test_numbers_that_people_changed_are_no_verdict(build, confirmed):
    """Rows were put out of the slice that says who is at risk: what was confirmed stands beside what is left."""
    audit = build(error_type())
    found = audit.slices[0]
    left = replace(
        found, confirm=confirmed(n=200, errors=110, rate=0.55), judged=Judged(Decided("accepted"), found, put_out=14)
    )
    html = to_html(replace(audit, slices=(left,)))
    section = html.partition('id="h-error-types"')[2].partition("</section>")[0]
    assert "changed by people" in section
    assert (
        "Confirmed as found. As people left it: 110 of 200 held-out rows wrong (55.0%), against 7.6% of the rest. "
        "As found, and confirmed: 98 of 214 held-out rows wrong (45.8%), against 7.6% of the rest."
    ) in words(section)
    assert "Confirmed. " not in words(section)
    console = Console(file=StringIO(), width=400)
    console.print(to_terminal(replace(audit, slices=(left,))))
    assert ": confirmed as found" in console.file.getvalue()
    assert "As people left it: 110 of 200 held-out rows wrong" in console.file.getvalue()


def test_a_number_by_construction_is_not_shown_where_people_moved_rows(build, confirmed):
    found = replace(build(error_type()).slices[0], verdict="not confirmed", reason=UNCONFIRMABLE)
    left = replace(found, confirm=confirmed(n=50, errors=50, rate=1.0), judged=Judged(Decided(), found, put_out=2))
    text = words(to_html(replace(build(error_type()), slices=(left,))))
    assert "50 of 50" not in text


def test_the_page_of_the_slice_has_the_other_face(build):
    html = to_html(build(error_type(), error_type(2, slice=None, name="dog → cat")))
    section = words(html.partition('id="h-s1-error-types"')[2].partition("</section>")[0])
    assert "e1 cat → dog" in section
    assert "dog → cat" not in section  # nothing tells it before the outcome
    assert "Who is at risk" not in section  # the page itself says so


def test_without_a_slice_it_is_said_that_nothing_was_tested(build):
    text = words(to_html(build(error_type(slice=None))))
    assert "Who is at risk: not tested: what is known before the outcome does not tell these rows" in text
    assert "behind it" not in text


def test_an_audit_without_error_types_has_no_such_section(build):
    assert "Error type" not in words(to_html(build()))


def test_many_are_folded(build):
    html = to_html(build(*(error_type(i) for i in range(1, 8))))
    assert "7 error types, 5 shown. Show 2 more" in words(html)


def test_the_terminal_has_one_line(build):
    output = StringIO()
    audit = build(error_type(), *(error_type(i, slice=None) for i in range(2, 8)))
    Console(width=400, file=output).print(to_terminal(audit))
    text = output.getvalue()
    assert "7 error types, by held-out errors: cat → dog (3, at risk: s1), cat → dog (3), " in text
    assert "and 2 more. Defined by their errors: no rate is claimed." in text
