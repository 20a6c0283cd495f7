"""The slices as people left them: names, merges and moved rows reach the set, its numbers, and every command."""

from __future__ import annotations

import numpy as np
import pytest

import errata
from errata.core.judged import Decided
from errata.core.judgement import Judgement, as_left, choose, kept


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
