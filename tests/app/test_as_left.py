"""Rows that people moved and slices that they merged, wherever the app shows them."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errata.core import Audit
from errata.people.entries import Decision, Edit
from errata.people.records import Records
from support.asking import Ask, opened


@pytest.fixture
def both(audit: Audit, tmp_path: Path) -> Iterator[tuple[Records, Ask]]:
    records, ask = opened(audit, tmp_path)
    with records:
        yield records, ask


def put(records: Records, audit: Audit, row: int, *, inside: bool) -> None:
    records.edit(Edit(slice="s1", item=str(audit.evaluation.row_ids[row]), inside=inside, person="Ana"))


def merge(records: Records, *, name: str = "Dark rooms") -> None:
    records.decide(Decision(slice="s1", decision="accepted", name=name, person="Ana"), version=0)
    records.decide(Decision(slice="s2", decision="merged", into="s1", person="Ana"), version=0)


def lit(ask: Ask, id: str, n: int) -> Any:
    packed = np.frombuffer(b64decode(ask("GET", "/api/map").json()["members"][id]), dtype=np.uint8)
    return np.unpackbits(packed, count=n, bitorder="little").astype(bool)


def test_the_map_lights_the_rows_as_people_left_them(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    n = len(audit.evaluation)
    first, second = audit.slices[:2]
    assert np.array_equal(lit(ask, "s1", n), first.members)
    out = int(np.flatnonzero(first.members)[0])
    put(records, audit, out, inside=False)
    assert np.flatnonzero(lit(ask, "s1", n) != first.members).tolist() == [out]
    merge(records)
    expected = first.members | second.members
    expected[out] = False
    assert np.array_equal(lit(ask, "s1", n), expected)


def test_what_was_measured_of_the_rows_as_found_is_said_to_be(both: tuple[Records, Ask], audit: Audit) -> None:
    """The overview had "57 of 76 errors" beside "80 of 150 rows wrong", and the slice's page metrics of other rows."""
    records, ask = both
    first = audit.slices[0]
    mistake = next(fact for fact in re.findall(r"Mostly [^<]* errors", ask("GET", "/").text))
    put(records, audit, int(first.rows("held-out")[0]), inside=False)
    overview = ask("GET", "/").text
    assert f"As found: m{mistake[1:]}" in overview
    assert ">Mostly" not in overview.partition('<span class="id">s2</span>')[0]
    assert "As found: worse than the rest" in overview
    page = ask("GET", "/slice/s1").text
    assert "Images, profile, words, rules and metrics below are of the slice as it was found." in page


def test_a_row_that_is_back_was_not_moved(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    row, other = np.flatnonzero(audit.slices[0].members)[:2].tolist()
    for inside in (False, True):
        put(records, audit, row, inside=inside)
    put(records, audit, other, inside=False)
    assert ask("GET", "/api/rows", params={"slice": "s1", "moved": "in"}).json()["total"] == 0
    out = ask("GET", "/api/rows", params={"slice": "s1", "moved": "out", "side": "any"}).json()
    assert [line["row"] for line in out["rows"]] == [other]
    page = ask("GET", "/slice/s1").text
    (edits,) = re.findall(r'data-edits="([^"]*)"', page)
    assert edits == f"{{&#34;{audit.evaluation.row_ids[other]}&#34;: false}}"


def test_who_puts_a_merged_row_out_moved_it(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    row = int(np.flatnonzero(audit.slices[1].members & ~audit.slices[0].members)[0])
    merge(records)
    put(records, audit, row, inside=False)
    out = ask("GET", "/api/rows", params={"slice": "s1", "moved": "out", "side": "any"}).json()
    assert [line["row"] for line in out["rows"]] == [row]


def test_rows_moved_before_a_merge_are_listed_as_moved_after_it(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    row = int(np.flatnonzero(~audit.slices[1].members & ~audit.slices[0].members)[0])
    records.edit(Edit(slice="s2", item=str(audit.evaluation.row_ids[row]), inside=True, person="Ana"))
    merge(records)
    moved = ask("GET", "/api/rows", params={"slice": "s1", "moved": "in", "side": "any"}).json()
    assert [line["row"] for line in moved["rows"]] == [row]


def test_verdicts_and_depth_follow(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    others = np.any([slice_.members for slice_ in audit.slices[1:]], axis=0)
    row = int(np.flatnonzero(audit.slices[0].members & ~others)[0])
    params: dict[str, Any] = {"verdict": "none", "where": f"id = {audit.evaluation.row_ids[row]}"}
    assert ask("GET", "/api/rows", params=params).json()["total"] == 0
    put(records, audit, row, inside=False)
    assert ask("GET", "/api/rows", params=params).json()["total"] == 1
    params = {"slice": "s1", "side": "any", "where": f"id = {audit.evaluation.row_ids[row]}"}
    assert ask("GET", "/api/rows", params=params).json()["rows"][0]["depth"] == 0


def test_merged_slices_are_one_point_with_the_name_that_people_gave(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    part = re.compile(r'<figure class="sizes">.*?</figure>', re.S)
    names = [re.escape(slice_.name) for slice_ in audit.slices[:2]]
    before = part.search(ask("GET", "/").text)
    assert before is not None
    assert all(re.search(rf"</span> {name}</td>", before[0].replace("&gt;", ">")) for name in names), before[0]
    merge(records)
    after = part.search(ask("GET", "/").text)
    assert after is not None
    n = int((np.any([slice_.members for slice_ in audit.slices[:2]], axis=0) & ~audit.discover).sum())
    assert f'<td class="long"><span class="id">s1</span> Dark rooms</td><td class="num">{n:,}</td>' in after[0]
    assert '<span class="id">s2</span>' not in after[0]


def test_a_changed_slice_is_hollow_and_its_examples_tell_the_rate_they_were_drawn_from(
    both: tuple[Records, Ask], audit: Audit
) -> None:
    records, ask = both
    rates = re.compile(r"Members at random.*?wrong here, ([\d.]+%) in all", re.S)
    before = ask("GET", "/slice/s1").text
    assert '<svg class="dw k-not"' not in before
    merge(records)
    after = ask("GET", "/slice/s1").text
    assert rates.findall(after) == rates.findall(before) != []
    assert '<svg class="dw k-not" role="img" aria-label="This slice' in after
