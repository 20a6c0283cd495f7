"""What people answered is read for every task, one slice at a time."""

from __future__ import annotations

from pathlib import Path

from errata.people.entries import Annotation
from errata.people.judgement import read_judgement
from errata.people.records import Records


def test_words_of_a_questionnaire_are_shown_and_not_compared(tmp_path: Path) -> None:
    with Records(tmp_path, fingerprint="rows", slices={"s1": "first"}) as records:
        for person, words in (("Ada", "dark ground"), ("Bob", "night")):
            answer = {"description3": words, "ease": 4}
            records.annotate(
                Annotation(queue="s1", item="feature 0", person=person, answer=answer, task="questionnaire")
            )
        for person in ("Ada", "Bob"):
            records.annotate(Annotation(queue="s1", item="row-1", person=person, answer="in", task="member"))
        member, questionnaire = read_judgement(records).said["s1"]
    assert (member.both, member.same, member.answers) == (1, 1, {"row-1": "in"})
    assert (questionnaire.people, questionnaire.rows, questionnaire.both) == (2, 1, 0)
    assert questionnaire.words == ("dark ground", "night")
