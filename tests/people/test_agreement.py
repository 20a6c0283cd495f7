"""Several annotators: shares and kappa against scikit-learn, disputes, majorities."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from errata.core import InputError
from errata.core.gaps import wilson
from errata.people.agreement import cohen_kappa, majorities, measure_agreement
from errata.people.entries import Annotation, Entry
from errata.people.records import Records
from hypothesis import given
from hypothesis import strategies as st

LABELS = st.sampled_from([0, 1, 2, "star", None])
GIVEN = st.dictionaries(st.sampled_from(["ada", "bob", "eve"]), LABELS, max_size=3)
TABLES = st.dictionaries(st.integers(0, 30).map(str), GIVEN, max_size=30)  # item -> person -> answer


def entry(item: str, person: str, answer: Any, task: Any = "class") -> Entry:
    return Entry(0, f"{item} {person}", "s1", item, person, task, answer, None, False, None, "")


def entries(table: dict[str, dict[str, Any]]) -> list[Entry]:
    return [entry(item, person, answer) for item, given in table.items() for person, answer in given.items()]


def sklearn_kappa(first: list[Any], second: list[Any]) -> float | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by zero where chance agrees always
        kappa = float(cohen_kappa_score([str(a) for a in first], [str(a) for a in second]))
    return None if math.isnan(kappa) else kappa


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1))
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[Any, Any]]) -> None:
    first, second = [str(a) for a, _ in pairs], [str(b) for _, b in pairs]
    ours, theirs = cohen_kappa(first, second), sklearn_kappa(first, second)
    assert (ours is None) == (theirs is None)
    assert ours is None or ours == pytest.approx(theirs, abs=1e-12)


def test_kappa_of_nothing_is_none() -> None:
    assert cohen_kappa([], []) is None


@given(TABLES)
def test_agreement_by_counting(table: dict[str, dict[str, Any]]) -> None:
    found = measure_agreement(entries(table))
    several = [list(given.values()) for given in table.values() if len(given) > 1]
    same = [all(answer == answers[0] for answer in answers) for answers in several]
    assert (found.items, found.same) == (len(several), sum(same))
    assert found.share == (np.mean(same) if same else None)
    assert found.interval == wilson(sum(same), len(several))
    kappas = []
    for pair in found.pairs:
        both = [given for given in table.values() if set(pair.people) <= set(given)]
        expected = sklearn_kappa(*([given[person] for given in both] for person in pair.people))
        assert pair.items == len(both) > 0
        assert pair.kappa == (None if expected is None else pytest.approx(expected, abs=1e-12))
        kappas.append(expected)
    defined = [kappa for kappa in kappas if kappa is not None]
    assert found.kappa == (pytest.approx(np.mean(defined)) if defined else None)
    answered = {person: sum(person in given for given in table.values()) for person in ("ada", "bob", "eve")}
    assert found.people == {person: count for person, count in answered.items() if count}


def test_the_sentence_of_the_design_can_be_told() -> None:
    """18 of 21 answers are the same: 85.7% (95% interval 65.4 to 95.0)."""
    table = {str(i): {"ada": i % 3, "bob": i % 3 if i >= 3 else 5} for i in range(21)} | {"alone": {"ada": 1}}
    found = measure_agreement(entries(table))
    low, high = found.interval
    assert (found.same, found.items) == (18, 21)
    assert (round(100 * low, 1), round(100 * high, 1)) == (65.4, 95.0)
    assert found.people == {"ada": 22, "bob": 21}


def test_parts_of_an_answer() -> None:
    region = [
        entry("a", "ada", {"failure": True, "label": 3}, "region"),
        entry("a", "bob", {"failure": True, "label": None}, "region"),
    ]
    assert measure_agreement(region).same == measure_agreement(region, "label").same == 0
    assert measure_agreement(region, "failure").same == 1
    turned = entry("a", "bob", {"label": 3, "failure": True}, "region")
    assert measure_agreement([region[0], turned]).same == 1  # whatever order a browser writes them in
    asked = [
        entry("a", "ada", {"necessity": "spurious", "ease": None}, "questionnaire"),
        entry("a", "bob", {"necessity": "spurious", "ease": None}, "questionnaire"),
    ]
    assert measure_agreement(asked, "necessity").same == 1
    assert measure_agreement(asked, "ease").items == 0  # None is what was not asked
    assert measure_agreement(asked, "unheard of").items == 0
    with pytest.raises(InputError, match="give the `part`"):
        measure_agreement(asked)
    with pytest.raises(InputError, match="'class' has no parts"):
        measure_agreement([entry("a", "ada", 1)], "label")


def test_majorities_count_none_of_the_above() -> None:
    table = {
        "a": {"ada": 8, "bob": 8, "eve": None},
        "b": {"ada": None, "bob": None, "eve": 8},
        "c": {"ada": 8, "bob": 3},
        "d": {"ada": 8},
    }
    a, b, c, d = majorities(entries(table), [])
    assert (a.item, a.answer, a.decided, a.n, a.none, a.votes) == ("a", 8, True, 3, 1, ((8, 2), (None, 1)))
    assert (b.answer, b.decided, b.none) == (None, True, 2)
    assert (c.answer, c.decided, c.none) == (None, False, 0)
    assert (d.answer, d.decided) == (8, True)


def test_the_majority_of_nothing_is_undecided() -> None:
    assert majorities([], []) == ()


def save(records: Records, item: str, person: str, answer: Any, **more: Any) -> str:
    facts = {"queue": "r1", "task": "class", "item": item, "person": person, "answer": answer, **more}
    return records.annotate(Annotation(**facts)).key


def test_rows_to_settle_until_somebody_does(records: Records) -> None:
    for item, ada, bob in (("1", 3, 3), ("2", 3, None), ("3", "star", 3), ("4", None, None)):
        save(records, item, "ada", ada)
        save(records, item, "bob", bob)
    save(records, "5", "ada", {"words": "a"}, task="questionnaire")
    save(records, "5", "bob", {"words": "b"}, task="questionnaire")
    save(records, "2", "eve", 7, queue="r2")
    first, second = records.disagreements("r1")
    assert (first.task, first.item, first.answers) == ("class", "2", {"ada": 3, "bob": None})
    assert second.item == "3"
    assert records.agreement("r1", "class").same == 2
    settled = save(records, "2", "ada", None, settles=True)
    assert [dispute.item for dispute in records.disagreements("r1")] == ["3"]
    assert records.disagreements("r1", "member") == ()
    assert records.agreement("r1", "class").same == 2  # the last word is not an opinion
    last_word = records.majority("r1", "class")[1]
    assert (last_word.answer, last_word.decided, last_word.settled_by, last_word.n) == (None, True, "ada", 2)
    records.undo(settled, person="ada")
    assert len(records.disagreements("r1")) == 2
    assert {e.item: e.answer for e in records.answers("r1", "ada", "class")}["2"] == 3
    save(records, "2", "bob", 3)  # people may also change their mind
    assert [dispute.item for dispute in records.disagreements("r1")] == ["3"]


def test_the_last_to_settle_has_the_last_word(records: Records) -> None:
    save(records, "1", "ada", 1)
    save(records, "1", "bob", 2)
    save(records, "1", "bob", 2, settles=True)
    save(records, "1", "ada", 1, settles=True)
    (only,) = records.majority("r1", "class")
    assert (only.answer, only.settled_by) == (1, "ada")


def test_a_region_by_the_parts_of_its_answers(records: Records) -> None:
    for person, label in (("ada", 8), ("bob", 8), ("eve", 3)):
        save(records, "all", person, {"failure": True, "label": label}, task="region")
    assert records.majority("r1", "region", "label")[0].answer == 8
    assert records.majority("r1", "region", "failure")[0].votes == ((True, 3),)
    save(records, "all", "eve", {"failure": True, "label": 5}, task="region", settles=True)
    (settled,) = records.majority("r1", "region", "label")
    assert (settled.answer, settled.votes) == (5, ((8, 2), (3, 1)))


@pytest.mark.parametrize("method", ["agreement", "majority"])
def test_a_task_that_is_none_is_refused(records: Records, method: str) -> None:
    with pytest.raises(InputError, match="unknown task `clas`"):
        getattr(records, method)("r1", "clas")
