"""What two slices share is told before they are merged; a slice drawn by hand has a page and is decided on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errata.core import Audit
from errata.people.entries import Decision, Drawing
from errata.people.records import Records
from errata.report.judgement_lines import overlap_sentence
from support.asking import PAGE, Ask, opened, sentence


@pytest.fixture
def both(audit: Audit, tmp_path: Path) -> Iterator[tuple[Records, Ask]]:
    records, ask = opened(audit, tmp_path)
    with records:
        yield records, ask


def half_of(audit: Audit) -> tuple[str, ...]:
    """Every second member of s1, and as many rows that are in no slice."""
    inside = np.flatnonzero(audit.slices[0].members)[::2]
    outside = np.flatnonzero(~np.any([found.members for found in audit.slices], axis=0))[: len(inside)]
    return tuple(audit.evaluation.row_ids[np.concatenate([inside, outside])].tolist())


def test_the_overlap_of_two_slices(both: tuple[Records, Ask], audit: Audit) -> None:
    ask = both[1]
    one, other = audit.slices[0].members, audit.slices[1].members
    told = ask("GET", "/api/overlap", params={"slice": "s1", "into": "s2"}).json()
    assert (told["n"], told["other_n"], told["both"]) == (one.sum(), other.sum(), (one & other).sum())
    assert told["jaccard"] == pytest.approx((one & other).sum() / (one | other).sum())
    assert f"“s1 {audit.slices[0].name}”" in told["sentence"]


def test_a_drawn_slice_overlaps_too(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    items = half_of(audit)
    records.draw(Drawing(name="mine", items=items, person="Ada"))
    told = ask("GET", "/api/overlap", params={"slice": "drawn-1", "into": "s1"}).json()
    shared, n = len(items) // 2, int(audit.slices[0].members.sum())
    assert (told["n"], told["other_n"], told["both"]) == (len(items), n, shared)
    assert told["jaccard"] == pytest.approx(shared / (len(items) + n - shared))
    assert told["sentence"].startswith(
        f"{shared} rows are in both: {shared} of {len(items)} (50.0%) of “drawn-1 mine”, "
    )


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"slice": "s1", "into": "s99"}, 404, "Slice 's99' does not exist."),
        ({"slice": "drawn-9", "into": "s1"}, 404, "Slice 'drawn-9' does not exist."),
        ({"slice": "s1", "into": "s1"}, 422, "A slice shares all rows with itself; name another."),
        ({"slice": "s1"}, 422, "This request cannot be read. `into`: Field required."),
    ],
)
def test_no_overlap(both: tuple[Records, Ask], asked: dict[str, str], status: int, words: str) -> None:
    got = both[1]("GET", "/api/overlap", params=asked)
    assert (got.status_code, sentence(got)) == (status, words)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((214, 180, 96), "96 rows are in both: 96 of 214 (44.9%) of “a”, 96 of 180 (53.3%) of “b”. "
                         "Jaccard 0.32: 96 of 298 rows of either."),
        ((11, 180, 1), "1 row is in both: 1 of 11 of “a”, 1 of 180 (0.6%) of “b”. "
                       "Jaccard 0.01: 1 of 190 rows of either."),
        ((11, 1, 0), "No row is in both: 11 rows of “a” and 1 row of “b”. Jaccard 0.00."),
    ],
)  # fmt: skip
def test_the_overlap_in_words(counts: tuple[int, int, int], words: str) -> None:
    assert overlap_sentence(("a", counts[0]), ("b", counts[1]), counts[2]) == words


def test_a_drawn_slice_has_a_page(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    items = half_of(audit)
    records.draw(Drawing(name="mine <i>", items=items, person="Ada"))
    page = ask("GET", "/slice/drawn-1", headers=PAGE)
    assert page.status_code == 200
    errors = audit.evaluation.errors
    assert errors is not None
    inside = np.isin(audit.evaluation.row_ids, items)
    wrong = int(errors[inside].sum())
    assert f"{wrong} of {len(items)} rows in the loop are wrong: {100 * wrong / len(items):.1f}%" in page.text
    for words in (
        "<h1>mine &lt;i&gt;</h1>",
        "drawn by hand",
        "It is a hypothesis until",
        "Not decided.",
        'data-key="a"',
        'data-decide="drawn-1"',
        "12 of",
    ):
        assert words in page.text, words
    row = ask("GET", f"/slice/drawn-1/row/{items[0]}", headers=PAGE)
    assert "mine &lt;i&gt;" in row.text


def test_few_rows_have_no_percentage(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    records.draw(Drawing(name="few", items=("row-1", "row-2", "gone"), person="Ada"))
    page = ask("GET", "/slice/drawn-1").text
    assert " of 2 rows in the loop are wrong, against " in page


def test_a_drawn_slice_is_decided_on_and_shown_where_it_is_listed(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    records.draw(Drawing(name="mine", items=half_of(audit), person="Ada"))
    given: dict[str, Any] = {"slice": "drawn-1", "person": "Bob", "decision": "accepted", "name": "at dusk",
                             "note": "look again", "into": None}  # fmt: skip
    assert ask("POST", "/api/decisions", json={"given": given, "seen": 0}).json()["title"] == "at dusk"
    assert "<h1>at dusk</h1>" in ask("GET", "/slice/drawn-1").text
    curated = ask("GET", "/curate").text
    assert 'href="/slice/drawn-1"><span class="id">drawn-1</span> at dusk</a>' in curated
    assert '"Decision">Accepted</td><td class="long" data-head="Note">look again</td>' in curated
    assert '<td class="by" data-head="By">Bob</td>' in curated
    (accepted,) = ask("GET", "/api/accepted").json()
    assert (accepted["slice"], accepted["kind"], accepted["name"]) == ("drawn-1", "drawn", "at dusk")


def test_found_and_drawn_slices_may_be_merged_into_each_other(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    records.draw(Drawing(name="mine", items=half_of(audit), person="Ada"))
    assert '<option value="drawn-1">drawn-1 mine</option>' in ask("GET", "/slice/s1").text
    assert '<option value="s1">' in ask("GET", "/slice/drawn-1").text
    assert '<option value="drawn-1">' not in ask("GET", "/slice/drawn-1").text
    records.decide(Decision(slice="drawn-1", decision="merged", into="s1", person="Ada"), version=0)
    assert "Merged into s1" in ask("GET", "/curate").text
