"""The slices as people left them: names, merges and moved rows reach the set, its numbers, and every command."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import errata
from errata.core.compared_slices import why_no_loops
from errata.core.judged import Decided
from errata.core.judgement import NO_LABEL, DrawnRows, Judgement, as_left, choose, kept


@pytest.fixture(scope="module")
def audit() -> errata.Audit:
    rng = np.random.default_rng(0)
    n = 4000
    x = rng.normal(size=(n, 3))
    a = rng.integers(0, 5, n)
    b = rng.integers(0, 5, n)
    risk = 0.05 + 0.5 * (a == 0) + 0.3 * (b == 0) * (a != 0)
    labels = rng.integers(0, 2, n)
    wrong = rng.random(n) < risk
    evaluation = errata.Evaluation(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        representations={"x": x},
        metadata={"a": a.astype(str), "b": b.astype(str)},
    )
    found = errata.audit(evaluation, methods=["rules"], slices={"first": "a = 0", "second": "b = 0"}, self_test=False)
    assert {"first", "second"} <= {slice_.name for slice_ in found.confirmed}
    return found


def ids(audit: errata.Audit, *names: str) -> list[str]:
    return [next(slice_.id for slice_ in audit if slice_.name == name) for name in names]


def rows_of(audit: errata.Audit, rows: np.ndarray) -> tuple[str, ...]:
    return tuple(str(audit.evaluation.row_ids[row]) for row in rows)


def test_rows_moved_in_a_loop_are_in_what_is_exported_of_it(audit: errata.Audit) -> None:
    loop = DrawnRows("drawn-1", "loop", rows_of(audit, np.arange(40)), "Ann", "")
    moved = {"drawn-1": {rows_of(audit, [0])[0]: False, rows_of(audit, [50])[0]: True}}
    (left,) = as_left(audit, Judgement(moved=moved, drawn=(loop,))).drawn
    assert np.flatnonzero(left.members).tolist() == [*range(1, 40), 50]
    assert (left.judged.put_in, left.judged.put_out) == (1, 1)


def test_the_rows_of_a_loop_join_the_slice_that_it_was_merged_into(audit: errata.Audit) -> None:
    (first,) = ids(audit, "first")
    outside = np.flatnonzero(~audit[first].members)[:30]
    loop = DrawnRows("drawn-1", "loop", rows_of(audit, outside), "Ann", "")
    moved = {"drawn-1": {rows_of(audit, outside)[0]: False}}
    left = as_left(audit, Judgement({"drawn-1": Decided("merged", into=first)}, moved, (loop,)))
    assert np.flatnonzero(left[first].members & ~audit[first].members).tolist() == outside[1:].tolist()
    assert (left[first].judged.put_in, left[first].judged.merged) == (29, ())  # no rule finds them among other rows
    held_out = left[first].members & ~audit.discover
    assert left[first].confirm.n == held_out.sum()


def test_a_merged_slice_counts_once_and_holds_both(audit: errata.Audit) -> None:
    first, second = ids(audit, "first", "second")
    left = as_left(audit, Judgement({second: Decided("merged", into=first), first: Decided("accepted", "Both")}))
    union = audit[first].members | audit[second].members
    assert (left[first].members == union).all()
    assert left[first].name == "Both"
    assert second not in [slice_.id for slice_ in kept(left)]
    held_out = union & ~audit.discover
    errors = audit.evaluation.errors
    assert left[first].confirm.n == held_out.sum()
    assert left[first].confirm.errors == errors[held_out].sum()
    rest = ~union & ~audit.discover
    assert left[first].confirm.rest_rate == pytest.approx(errors[rest].mean())
    # What was confirmed stays beside it.
    assert left[first].judged.found.confirm == audit[first].confirm
    assert left[first].verdict == audit[first].verdict
    assert left[first].judged.changed
    assert not left[first].judged.edited


def test_a_chain_of_merges_ends_in_one(audit: errata.Audit) -> None:
    first, second = ids(audit, "first", "second")
    others = [slice_.id for slice_ in audit if slice_.id not in (first, second)]
    chain = {second: Decided("merged", into=first), **{id: Decided("merged", into=second) for id in others}}
    left = as_left(audit, Judgement(chain))
    assert [slice_.id for slice_ in kept(left)] == [first]
    assert choose(left, [second]).slices == (left[first],)


def test_moved_rows_change_the_set_and_its_rate(audit: errata.Audit) -> None:
    (first,) = ids(audit, "first")
    names = audit.evaluation.row_ids
    errors = audit.evaluation.errors
    right = np.flatnonzero(audit[first].members & ~audit.discover & ~errors)[:5]
    wrong = np.flatnonzero(~audit[first].members & ~audit.discover & errors)[:2]
    moved = {str(names[i]): False for i in right} | {str(names[i]): True for i in wrong} | {"no such row": True}
    left = as_left(audit, Judgement(moved={first: moved}))
    found = audit[first].confirm
    assert (left[first].judged.put_in, left[first].judged.put_out) == (2, 5)
    assert left[first].confirm.n == found.n - 3
    assert left[first].confirm.errors == found.errors + 2
    assert left[first].judged.edited
    assert left[first].judged.found.confirm == found
    # Who moves nothing changes nothing.
    same = as_left(
        audit, Judgement(moved={first: {str(names[i]): True for i in np.flatnonzero(audit[first].members)[:3]}})
    )
    assert not same[first].judged.changed
    assert same[first].confirm == found


def test_what_a_command_starts_from(audit: errata.Audit) -> None:
    first, second = ids(audit, "first", "second")
    assert choose(audit, None).slices == tuple(s for s in audit.confirmed if s.side == "hard")
    assert choose(audit, None).sentence == ""
    with pytest.raises(errata.ErrataError, match="no slice is accepted"):
        choose(audit, ["accepted"])
    left = as_left(audit, Judgement({first: Decided("accepted")}))
    assert [s.id for s in choose(left, None).slices] == [first]
    assert f"1 slice that people accepted: {first}" in choose(left, None).sentence
    rejected = as_left(audit, Judgement({second: Decided("rejected")}))
    assert second not in [s.id for s in choose(rejected, None).slices]
    assert [s.id for s in choose(rejected, [second]).slices] == [second]
    with pytest.raises(errata.ErrataError, match="unknown slice"):
        choose(left, ["s99"])


def test_a_loop_is_its_rows_and_is_taken_where_it_can_be(audit: errata.Audit) -> None:
    first, second = ids(audit, "first", "second")
    rows = (*map(str, audit.evaluation.row_ids[:50]), "nowhere")
    drawn = tuple(DrawnRows(id, id, rows, "Ana") for id in ("drawn-1", "drawn-2", "drawn-3"))
    decisions = {"drawn-1": Decided("accepted", "Corner"), "drawn-2": Decided("rejected"), first: Decided("accepted")}
    left = as_left(audit, Judgement(decisions, drawn=drawn))
    assert [slice_.id for slice_ in left] == [slice_.id for slice_ in audit]
    assert left.drawn[0].rows().tolist() == list(range(50))
    assert (left.drawn[0].name, left.drawn[0].verdict, left.drawn[0].confirm) == ("Corner", "not confirmed", None)
    assert [slice_.id for slice_ in choose(left, None, no_loops="").slices] == [first, "drawn-1"]
    named = choose(left, ["drawn-3", second], no_loops="")
    assert ([slice_.id for slice_ in named.slices], named.left_out) == ([second, "drawn-3"], "")
    taken = choose(left, None)
    assert [slice_.id for slice_ in taken.slices] == [first]
    assert taken.left_out.startswith("Left out drawn-1, which people drew by hand and accepted: a loop has no rule")
    assert choose(audit, None).left_out == ""
    for slices, words in (((), "nothing"), (audit.slices[:1], f"{audit.slices[0].id} alone")):
        few = as_left(replace(audit, slices=slices), Judgement({"drawn-1": Decided("accepted")}, drawn=drawn))
        assert choose(few, None, "all").left_out.endswith(f" No other slice is accepted: starts from {words}.")
    assert why_no_loops(audit) == ""


def test_a_loop_of_an_audit_of_several_labels_is_not_compared() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (600, 2))
    wrong = rng.random((600, 2)) < 0.2
    evaluation = errata.Evaluation(
        labels=labels, predictions=labels ^ wrong, metadata={"a": rng.integers(0, 3, 600).astype(str)}
    )
    found = errata.audit(evaluation, methods=["rules"], self_test=False)
    loop = DrawnRows("drawn-1", "loop", tuple(map(str, range(100))))
    left = as_left(found, Judgement({"drawn-1": Decided("accepted")}, drawn=(loop,)))
    assert why_no_loops(left) == NO_LABEL
    comparison = errata.compare(left, evaluation, search=False)
    assert any("Left out drawn-1" in note and NO_LABEL in note for note in comparison.facts["notes"])
    assert "drawn-1" not in [change.id for change in comparison.changes]


def test_a_merged_slice_is_found_among_new_rows(audit: errata.Audit) -> None:
    first, second = ids(audit, "first", "second")
    left = as_left(audit, Judgement({second: Decided("merged", into=first)}))
    rng = np.random.default_rng(1)
    metadata = {name: rng.integers(0, 5, 500).astype(str) for name in "ab"}
    rows = errata.Evaluation(
        representations={"x": rng.normal(size=(500, 3))}, metadata=metadata, ids=np.arange(500) + 9000
    )
    weights = errata.apply(left, rows)
    assert second not in weights
    expected = (metadata["a"] == "0") | (metadata["b"] == "0")
    assert ((weights[first] >= left[first].threshold) == expected).all()


def test_people_are_left_out() -> None:
    judgement = Judgement({"s1": Decided("accepted", "Old", "says Ana", None, "Ana", "2030-01-01")})
    assert judgement.without_people().decisions["s1"] == Decided("accepted", "Old")
