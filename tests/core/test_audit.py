"""An audit in a prompt: short to print, slices by id, rows of a slice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from errata import workflow
from errata.core import Audit, Evaluation, InputError, Slice
from support.small_audits import image_evaluation


@pytest.fixture(scope="module")
def audit() -> Audit:
    return workflow.audit(image_evaluation(), methods=["domino", "gmm"])


@pytest.fixture(scope="module")
def crossed() -> Audit:
    return workflow.audit(image_evaluation(), methods=["gmm"], crossfit=True)


def test_a_repr_is_a_few_lines(audit: Audit) -> None:
    many = replace(audit, slices=audit.slices * 5)
    assert len(repr(many).splitlines()) == 8  # the finding, the whole, five slices, how many more
    text = repr(audit)
    assert len(text) < 1000
    assert text.startswith(f"Audit: {len(audit.confirmed)} of {len(audit.slices)} slices confirmed\n")
    assert len(repr(audit.slices[0]).splitlines()) == 1
    assert len(repr(audit.evaluation).splitlines()) == 3
    assert "1,000 rows, classification, 2 classes" in repr(audit.evaluation)


def test_a_long_name_is_cut_in_a_repr(audit: Audit) -> None:
    long = replace(audit.slices[0], name="word\n" * 500)
    assert len(repr(long)) < 200
    assert "\n" not in repr(long)
    assert len(repr(replace(audit, slices=(long,) * 30))) < 2000


def test_an_evaluation_of_many_columns_names_some(audit: Audit) -> None:
    columns = {f"column {i}": np.arange(5) for i in range(300)}
    text = repr(Evaluation(losses=np.ones(5), metadata=columns))
    assert "mean loss 1" in text
    assert text.endswith("column 7 and 292 more")


def test_slices_by_id(audit: Audit) -> None:
    assert audit["s2"] is audit.slices[1]
    assert [slice_.id for slice_ in audit] == [f"s{i}" for i in range(1, len(audit) + 1)]
    assert "s1" in audit
    assert audit.slices[0] in audit
    assert "s99" not in audit
    assert 0 not in audit
    with pytest.raises(InputError, match="unknown slice `s99`"):
        audit["s99"]


def test_an_audit_without_slices_is_still_true(audit: Audit) -> None:
    """`if audit:` asks whether there is one."""
    empty = replace(audit, slices=())
    assert len(empty) == 0
    assert empty


def test_rows_of_a_slice(audit: Audit) -> None:
    for slice_ in audit:
        assert slice_.confirm is not None
        assert slice_.discover is not None
        assert len(slice_.rows("held-out")) == slice_.confirm.n
        assert len(slice_.rows("search")) == slice_.discover.n
        assert sorted([*slice_.rows("held-out"), *slice_.rows("search")]) == slice_.rows().tolist()
        assert slice_.rows().tolist() == np.flatnonzero(slice_.members).tolist()
        assert slice_.ids.tolist() == [f"row-{i}" for i in slice_.rows()]


def test_held_out_rows_of_the_reverse_half_are_the_search_rows(crossed: Audit) -> None:
    reverse = [slice_ for slice_ in crossed if slice_.confirmed_on == "discover"]
    assert reverse
    for slice_ in reverse:
        assert slice_.confirm is not None
        assert len(slice_.rows("held-out")) == slice_.confirm.n
        assert crossed.discover[slice_.rows("held-out")].all()


def test_a_slice_that_is_in_no_audit_knows_no_ids() -> None:
    alone = Slice("s1", "gmm", "small", "confirmed", 0.5, {}, np.array([0.9, 0.2]))
    assert alone.rows().tolist() == [0]
    with pytest.raises(InputError, match="not part of an audit"):
        alone.ids  # noqa: B018
    with pytest.raises(InputError, match="unknown kind of rows `held out`; did you mean `held-out`"):
        alone.rows("held out")  # type: ignore[arg-type]


def test_a_slice_follows_the_audit_that_it_is_put_into(audit: Audit) -> None:
    kept = replace(audit, silence="")
    assert kept.slices[0] is audit.slices[0]
    renamed = audit.evaluation.rows(np.arange(1000))
    object.__setattr__(renamed, "ids", np.arange(1000) + 7)
    moved = replace(audit, evaluation=renamed)
    assert moved["s1"].ids.tolist() == (audit["s1"].rows() + 7).tolist()
    assert audit["s1"].ids[0].startswith("row-")


def test_rows_are_not_written(audit: Audit) -> None:
    assert not {"audited", "weights"} & set(audit.to_json()["slices"][0])


def test_a_repr_needs_no_numbers(audit: Audit) -> None:
    """Of a slice that could not be tested."""
    untested = replace(audit.slices[0], confirm=None, discover=None)
    assert repr(untested) == f"Slice: s1 {untested.name}, {untested.verdict}"
    tasks = tuple((f"label {i}", audit.overall[0][1]) for i in range(40))
    text = repr(replace(audit, overall=tasks, slices=()))
    assert text.endswith("… and 35 more labels")
