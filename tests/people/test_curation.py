"""Decisions that never overwrite one another, merges, edits, drawn slices and hypotheses."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

from errata.core import InputError
from errata.people.entries import Conflict, Decision, Drawing, Edit, Hypothesis, Standing
from errata.people.records import Records


def decide(records: Records, slice: str, decision: Any, seen: int, **more: Any) -> Standing:
    return records.decide(Decision(slice=slice, decision=decision, **{"person": "ada", **more}), version=seen)


def test_a_slice_starts_undecided(records: Records) -> None:
    assert list(records.standings()) == ["s1", "s2", "s3"]
    assert records.standings()["s1"] == Standing(
        slice="s1", kind="found", made_name="dark pictures", version=0, decision="undecided", name=None, note="",
        into=None, person=None, at=None,
    )  # fmt: skip
    assert records.history("s1") == ()


def test_each_decision_is_a_version_and_all_are_kept(records: Records) -> None:
    first = decide(records, "s1", "accepted", 0, name="night", note="see the lamps\n2nd line")
    assert (first.version, first.decision, first.name, first.title) == (1, "accepted", "night", "night")
    second = decide(records, "s1", "rejected", 1, person="bob")
    assert (second.version, second.name, second.title, second.note) == (2, None, "dark pictures", "")
    assert records.history("s1") == (first, second)
    assert records.standings()["s1"] == second
    assert records.standings()["s2"].version == 0


@pytest.mark.parametrize("seen", [0, 2, -1])
def test_a_stale_decision_is_a_conflict_with_both_versions(records: Records, seen: int) -> None:
    theirs = decide(records, "s1", "accepted", 0, name="night", person="bob")
    mine = Decision(slice="s1", decision="rejected", person="ada", name="dusk")
    with pytest.raises(
        Conflict, match=f"at version 1, decided by bob .* made on version {seen}; nothing was"
    ) as caught:
        records.decide(mine, version=seen)
    assert (caught.value.mine, caught.value.version, caught.value.theirs) == (mine, seen, theirs)
    assert records.history("s1") == (theirs,)


def test_of_many_who_saw_the_same_version_one_comes_first(records: Records) -> None:
    saved: list[Standing] = []
    conflicts: list[Conflict] = []
    start = threading.Barrier(8)

    def tab(number: int) -> None:
        start.wait()
        try:
            saved.append(decide(records, "s1", "accepted", 0, name=f"tab {number}"))
        except Conflict as conflict:
            conflicts.append(conflict)

    _all_at_once(tab, 8)
    assert len(saved) == 1
    assert len(conflicts) == 7
    assert {conflict.theirs for conflict in conflicts} == set(saved) == set(records.history("s1"))


def _all_at_once(work: Any, count: int) -> None:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_a_decision_sent_twice_is_one(records: Records) -> None:
    """The answer to the first may have been lost on its way: the second must not meet its own conflict."""
    first = decide(records, "s1", "accepted", 0, key="post")
    decide(records, "s1", "rejected", 1)
    assert decide(records, "s1", "accepted", 0, key="post") == first
    assert len(records.history("s1")) == 2


def test_merging_never_goes_in_a_circle(records: Records) -> None:
    with pytest.raises(InputError, match="slice `s1` cannot be merged into itself; merge"):
        decide(records, "s1", "merged", 0, into="s1")
    decide(records, "s1", "merged", 0, into="s2")
    decide(records, "s2", "merged", 0, into="s3")
    with pytest.raises(InputError, match="`s3` cannot be merged into itself by way of `s1`"):
        decide(records, "s3", "merged", 0, into="s1")
    with pytest.raises(InputError, match="unknown slice `s9`"):
        decide(records, "s3", "merged", 0, into="s9")
    assert records.standings()["s3"].version == 0
    decide(records, "s1", "undecided", 1)  # out of the circle again
    decide(records, "s3", "merged", 0, into="s1")
    assert records.standings()["s2"].into == "s3"


def test_two_tabs_cannot_close_a_circle_together(records: Records) -> None:
    refused: list[Exception] = []
    start = threading.Barrier(2)

    def tab(number: int) -> None:
        start.wait()
        try:
            decide(records, f"s{number + 1}", "merged", 0, into=f"s{2 - number}")
        except InputError as error:
            refused.append(error)

    _all_at_once(tab, 2)
    assert len(refused) == 1


def test_what_was_accepted_is_the_list_to_start_from(records: Records) -> None:
    assert records.accepted() == ()
    drawn = records.draw(Drawing(name="corner", items=("4", "2"), person="eve"))
    decide(records, "s2", "accepted", 0, name="tiny", note="below 9 px")
    decide(records, drawn.slice, "accepted", 0)
    decide(records, "s3", "merged", 0, into="s1")
    decide(records, "s1", "merged", 0, into="s2")
    first, second = records.accepted()
    assert (first.slice, first.kind, first.name, first.renamed, first.note) == (
        "s2",
        "found",
        "tiny",
        True,
        "below 9 px",
    )
    assert (first.person, first.at) == ("ada", records.standings()["s2"].at)
    assert first.merged == ("s1", "s3")
    assert (second.kind, second.name, second.renamed, second.merged) == ("drawn", "corner", False, ())
    decide(records, "s2", "rejected", 1)
    assert [one.slice for one in records.accepted()] == [drawn.slice]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"decision": "acepted"}, "unknown decision `acepted`; did you mean `accepted`?"),
    ({"decision": "merged"}, "`into` must name the other slice where `decision` is merged, else be None; got None"),
    ({"into": "s2"}, "else be None; got 's2'"),
    ({"name": ""}, "`name` must be a text that is not empty"),
    ({"name": "x" * 201}, "`name` may have 200 characters; got 201"),
    ({"note": None}, "`note` must be a text"),
    ({"note": "x" * 4001}, "`note` may have 4000 characters"),
    ({"person": ""}, "`person` must be"),
]


@pytest.mark.parametrize(("wrong", "words"), BAD)
def test_a_bad_decision_is_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        Decision(**{"slice": "s1", "decision": "accepted", "person": "ada", **wrong})


def test_nobody_decides_on_what_is_not_known(records: Records) -> None:
    with pytest.raises(InputError, match="unknown slice `s9`"):
        decide(records, "s9", "accepted", 0)
    with pytest.raises(InputError, match="unknown slice `s9`"):
        records.edit(Edit(slice="s9", item="1", inside=True, person="ada"))
    with pytest.raises(InputError, match="unknown slice `s9`"):
        records.add_hypothesis(
            Hypothesis(text="x", kind="words", n=1, errors=0, rest_n=1, rest_errors=0, person="ada", slice="s9")
        )
    for read in (records.history, records.edits):
        with pytest.raises(InputError, match="unknown slice `s9`"):
            read("s9")


def test_rows_are_put_in_and_out_and_back(records: Records) -> None:
    def put(item: str, inside: bool | None, **more: Any) -> dict[str, bool]:
        return records.edit(Edit(slice="s1", item=item, inside=inside, person="ada", **more))

    assert put("1", False, key="first") == {"1": False}
    assert put("2", True) == {"1": False, "2": True}
    assert put("1", True) == {"1": True, "2": True}
    assert put("1", False, key="first") == {"1": True, "2": True}  # sent again: it was not the last word
    assert put("2", None) == {"1": True}
    assert records.edits("s1") == {"1": True}
    assert records.edits("s2") == {}
    with pytest.raises(InputError, match="`inside` must be true, false or None; got 'in'"):
        put("1", "in")  # type: ignore[arg-type] - wrong on purpose


def test_a_loop_becomes_a_slice(records: Records) -> None:
    drawn = records.draw(Drawing(name="corner", items=("4", "2", "4"), person="ada", key="once"))
    assert (drawn.slice, drawn.items, drawn.person) == ("drawn-1", ("4", "2"), "ada")
    assert records.draw(Drawing(name="other", items=("9",), person="ada", key="once")) == drawn
    assert records.draw(Drawing(name="edge", items=("4",), person="bob")).slice == "drawn-2"
    assert records.drawn()[0] == drawn
    assert [(one.slice, one.kind, one.title) for one in records.standings().values()][-2:] == [
        ("drawn-1", "drawn", "corner"),
        ("drawn-2", "drawn", "edge"),
    ]
    decide(records, "drawn-1", "merged", 0, into="s1")
    assert records.edit(Edit(slice="drawn-1", item="2", inside=False, person="ada")) == {"2": False}


@pytest.mark.parametrize(
    ("items", "words"),
    [((), "at least one row"), ("abc", "a list of row ids"), (3, "a list"), ((1, 2), "`item` must be")],
)
def test_a_bad_loop_is_refused(items: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Drawing(name="x", items=items, person="ada")


def hypothesis(text: str, **more: Any) -> Hypothesis:
    return Hypothesis(**{"text": text, "kind": "words", "n": 148, "errors": 85, "rest_n": 4852, "rest_errors": 378,
                         "person": "ada", "slice": "s1", **more})  # fmt: skip


def test_hypotheses_are_saved_by_slice(records: Records) -> None:
    kept = records.add_hypothesis(hypothesis("a lamp", key="once"))
    assert (kept.text, kept.slice, kept.person) == ("a lamp", "s1", "ada")
    assert (kept.n, kept.errors, kept.rest_n, kept.rest_errors) == (148, 85, 4852, 378)
    assert records.add_hypothesis(hypothesis("something else", key="once")) == kept
    records.add_hypothesis(hypothesis("a lamp", person="bob"))
    records.add_hypothesis(hypothesis("a lamp", kind="condition"))
    records.add_hypothesis(hypothesis("a tree", errors=0))
    records.add_hypothesis(hypothesis("a tree", slice="s2"))
    records.add_hypothesis(hypothesis("a tree", slice=None))
    assert [one.text for one in records.hypotheses("s1")] == ["a lamp", "a lamp", "a lamp", "a tree"]
    assert [one.text for one in records.hypotheses("s2")] == [one.text for one in records.hypotheses()] == ["a tree"]
    assert records.hypotheses("s3") == ()


@pytest.mark.parametrize("wrong", [{"errors": 149}, {"n": 148.0}, {"rest_errors": -1}, {"rest_n": True}, {"n": 2**60}])
def test_a_hypothesis_with_impossible_counts_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be whole numbers"):
        hypothesis("x", **wrong)


def test_all_or_none_of_the_rows_may_be_wrong() -> None:
    assert hypothesis("x", n=3, errors=3).errors == 3
    assert hypothesis("x", n=0, errors=0, rest_n=5, rest_errors=5).n == 0


def test_a_hypothesis_is_words_or_a_condition() -> None:
    with pytest.raises(InputError, match="unknown kind `word`; did you mean `words`"):
        hypothesis("x", kind="word")
