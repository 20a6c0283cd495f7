"""Every guess is judged as one of all that were made: what stood alone may not stand among ten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errata import hypothesis
from errata.core import Audit
from errata.people.entries import Hypothesis
from errata.people.records import Records
from errata.report.hypothesis_history import history as history_lines
from support.asking import Ask, opened
from support.small_audits import image_evaluation, quick_audit

ROWS = 60


def marked(audit: Audit, wrong: int) -> Audit:
    """With a column that marks so many wrong and so many right rows that nobody searched."""
    errors = audit.evaluation.errors
    assert errors is not None
    column = np.full(len(errors), "no", dtype=object)
    column[np.flatnonzero(errors & ~audit.discover)[:wrong]] = "yes"
    column[np.flatnonzero(~errors & ~audit.discover)[: ROWS - wrong]] = "yes"
    columns = {**audit.evaluation.metadata, "odd": column}
    return replace(audit, evaluation=replace(audit.evaluation, metadata=columns))


@pytest.fixture(scope="module")
def audit() -> Audit:
    """“odd = yes” stands alone, and not as one of ten."""
    plain = quick_audit(image_evaluation(2000))
    for wrong in range(5, 40):
        found = marked(plain, wrong)
        verdicts = [hypothesis.run_test(found, "odd = yes", hypotheses=n).verdict for n in (1, 10)]
        if verdicts[0] == "confirmed" and verdicts[1] != "confirmed":
            return found
    raise AssertionError("no count of errors lies in between")


@pytest.fixture
def both(audit: Audit, tmp_path: Path) -> Iterator[tuple[Records, Ask]]:
    records, ask = opened(audit, tmp_path)
    with records:
        yield records, ask


def guess(ask: Ask, text: str, slice: str | None = None) -> Any:
    got = ask("POST", "/api/hypotheses", json={"text": text, "slice": slice, "person": "Ada"})
    assert got.status_code == 200, got.text
    return got.json()


def history(ask: Ask, slice: str = "") -> Any:
    return ask("GET", "/api/hypotheses", params={"slice": slice}).json()


def others(n: int) -> list[str]:
    return [f"size > {3 + i / 10:.1f}" for i in range(n)]


def test_a_guess_that_stood_alone_no_longer_stands_among_ten(both: tuple[Records, Ask]) -> None:
    ask = both[1]
    assert guess(ask, "odd = yes")["verdict"] == "confirmed"
    (alone,) = history(ask)["lines"]
    assert (alone["verdict"], alone["note"]) == ("Confirmed", "")
    assert history(ask)["summary"] == "1 hypothesis, judged alone."
    for text in others(9):
        guess(ask, text)
    told = history(ask)
    line = told["lines"][-1]
    assert line["text"] == "odd = yes", "newest first"
    assert line["verdict"] != "Confirmed"
    assert line["note"] == "Confirmed alone; not as one of 10."
    lost = "One that was confirmed when tested no longer is."
    assert told["summary"] == f"10 hypotheses, each judged as one of 10. {lost}"
    low, high = (float(end) for end in line["interval"].split(" to "))
    before = [float(end) for end in alone["interval"].split(" to ")]
    assert low < before[0] < before[1] < high
    page = ask("GET", "/hypothesis").text
    assert "Confirmed alone; not as one of 10." in page
    assert "10 hypotheses, each judged as one of 10." in page


def test_what_is_judged_again_is_what_would_be_tested_again(both: tuple[Records, Ask], audit: Audit) -> None:
    ask = both[1]
    for text in ("odd = yes", "light = night", *others(4)):
        guess(ask, text)
    for line in history(ask)["lines"]:
        found = hypothesis.run_test(audit, line["text"], hypotheses=6)
        assert line["verdict"] == found.verdict.capitalize()
        assert found.interval is not None
        assert line["interval"] == " to ".join(f"{100 * end:.1f}" for end in found.interval)


def test_the_same_words_again_are_no_new_guess(both: tuple[Records, Ask]) -> None:
    records, ask = both
    for text in ("odd = yes", "odd = yes", " odd = yes ", "night"):
        guess(ask, text)
    assert len(history(ask)["lines"]) == 2
    assert len(records.hypotheses()) == 4, "each is kept"
    assert {one.kind for one in records.hypotheses()} == {"condition", "words"}


def test_guesses_at_one_slice_do_not_count_at_another(both: tuple[Records, Ask]) -> None:
    ask = both[1]
    guess(ask, "odd = yes", "s1")
    for text in others(9):
        guess(ask, text)
    (line,) = history(ask, "s1")["lines"]
    assert line["verdict"] == "Confirmed"
    page = ask("GET", "/hypothesis").text
    assert 'data-history="s1"' in page
    assert 'data-history="s2"' not in page
    assert ask("GET", "/api/hypotheses", params={"slice": "s99"}).status_code == 404


def test_a_guess_that_cannot_be_read_any_more_is_shown_as_such(both: tuple[Records, Ask]) -> None:
    records, ask = both
    records.add_hypothesis(
        Hypothesis(text="gone = 1", kind="condition", n=50, errors=20, rest_n=100, rest_errors=5, person="Ada")
    )
    (line,) = history(ask)["lines"]
    assert (line["verdict"], line["note"], line["rate"]) == ("Not tested again", "It cannot be read any more.", "40.0%")
    assert ask("GET", "/hypothesis").status_code == 200


def test_a_server_that_was_started_again_judges_the_same(audit: Audit, tmp_path: Path) -> None:
    told = []
    for start in range(2):
        records, ask = opened(audit, tmp_path)
        with records:
            if start == 0:
                for text in ("odd = yes", *others(9)):
                    guess(ask, text)
            told.append(history(ask))
    assert told[0] == told[1]


def test_few_rows_have_no_interval() -> None:
    one = {"text": "x", "person": "Ada", "n": 5, "errors": 2, "rest_n": 100, "rest_errors": 5,
           "verdict": "too few to tell", "then": "too few to tell", "interval": (0.1, 0.8), "position": 1,
           "hypotheses": 1}  # fmt: skip
    (line,) = history_lines([one])["lines"]
    assert (line["rate"], line["interval"]) == ("2 of 5", "")
