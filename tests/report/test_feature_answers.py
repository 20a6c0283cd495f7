"""What people answered about features: names, agreement and scores, each against a count by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from errata.core import Audit
from errata.core.judged import Said
from errata.core.judgement import Judgement, as_left
from errata.core.questionnaire import QuestionnaireAnswer
from errata.report import to_html
from errata.report.class_trees import class_trees, group_key
from errata.report.feature_answers import FeatureAnswers, pooled_result, result_of

EVIL = "<img src=x onerror=alert(1)>"


def said(
    slice_id: str, feature: int, *answers: tuple[str, dict[str, Any]], first: int = 1
) -> dict[str, tuple[Said, ...]]:
    """first: the number of the first answer in the log."""
    filled = tuple(
        QuestionnaireAnswer(about=f"{slice_id} feature {feature}", person=person, **answer)
        for person, answer in answers
    )
    numbers = tuple(range(first, first + len(filled)))
    return {slice_id: (Said("questionnaire", len(filled), 1, {}, 0, 0, (0.0, 1.0), None, (), filled, numbers),)}


def described(*words: str) -> list[tuple[str, dict[str, Any]]]:
    return [(f"person-{i}", {"description3": text}) for i, text in enumerate(words)]


def root(audit: Audit) -> int:
    rule = audit.slices[0].rule["of"]
    return int(rule["conditions"][0]["feature"])


def left(audit: Audit, *words: str) -> Audit:
    return as_left(audit, Judgement(said=said("s1", root(audit), *described(*words))))


def name(audit: Audit) -> Any:
    key = group_key(audit.slices[0])
    assert key is not None
    return FeatureAnswers(audit).name(key, root(audit))


def test_the_most_frequent_description_is_the_name(tree_audit: Audit) -> None:
    known = name(left(tree_audit, "Dark ground", "night", " dark  ground. "))
    assert str(known) == f"feature {root(tree_audit)}, “dark ground”"
    assert known.note == "by 2 of 3 people, 1 said otherwise"


def test_one_person_and_nobody(tree_audit: Audit) -> None:
    assert name(left(tree_audit, "night")).note == "by 1 person"
    nobody = name(tree_audit)
    assert (str(nobody), nobody.note) == (f"feature {root(tree_audit)}", "")


def test_of_equally_many_the_first_is_taken(tree_audit: Audit) -> None:
    assert name(left(tree_audit, "night", "dark")).words == "night"


@pytest.mark.parametrize(("numbers", "words"), [((1, 2), "dark"), ((2, 1), "night")])
def test_who_answers_twice_about_a_feature_counts_once(tree_audit: Audit, numbers: tuple[int, int], words: str) -> None:
    """Two slices of one tree may share a feature: the later answer counts, whichever slice comes first."""
    twin = replace(tree_audit.slices[0], id="s9")
    audit = replace(tree_audit, slices=(*tree_audit.slices, twin))
    answers = {
        **said("s1", root(audit), *described("night"), first=numbers[0]),
        **said("s9", root(audit), *described("dark"), first=numbers[1]),
    }
    known = name(as_left(audit, Judgement(said=answers)))
    assert (known.words, known.people) == (words, 1)


def test_a_name_holds_within_its_class_alone(tree_audit: Audit) -> None:
    audit = left(tree_audit, "night")
    first, other = (group_key(slice_) for slice_ in audit.slices[:2])
    assert first is not None
    assert other is not None
    assert first != other
    assert FeatureAnswers(audit).name(other, root(audit)).words == ""


def test_agreement_is_the_mean_cosine_of_words() -> None:
    """ "blue sky" and "blue sea" share one word of two: cosine 1/2; "grass" shares none with either."""
    texts = ("blue sky", "Blue sea!", "grass")
    answers = [QuestionnaireAnswer(about="x", person=text, description3=text) for text in texts]
    result = result_of(answers)
    assert result is not None
    assert result["agreement"].startswith(f"Agreement {0.5 / 3:.2f} over 3 pairs of people")
    alone = result_of(answers[:1])
    assert alone is not None
    assert alone["agreement"] == "Agreement is not measured: fewer than two people described it."
    assert result_of([]) is None


def test_scores_and_choices_are_counted_over_those_who_answered() -> None:
    answers = [
        QuestionnaireAnswer(about="x", person="a", ease=5, actions=("collect", "relabel")),
        QuestionnaireAnswer(about="x", person="b", ease=2, necessity="spurious", actions=("collect",)),
        QuestionnaireAnswer(about="x", person="c", necessity="spurious"),
    ]
    result = result_of(answers)
    assert result is not None
    questions = {line["title"]: line for line in result["questions"]}
    ease = questions["How easy it was to describe, 1 to 5"]
    assert (ease["n"], ease["note"]) == (2, "mean 3.5")
    assert [bar["count"] for bar in ease["bars"]] == [0, 1, 0, 0, 1]
    actions = questions["What they would do, any number"]
    assert actions["n"] == 2
    assert {bar["label"]: bar["count"] for bar in actions["bars"] if bar["count"]} == {"collect": 2, "relabel": 1}
    assert questions["For the class, the feature is"]["n"] == 2
    assert "How sure they were, 1 to 5" not in questions


def test_features_by_their_mean_score_as_in_figure_9() -> None:
    def scored(person: str, ease: int) -> QuestionnaireAnswer:
        return QuestionnaireAnswer(about="x", person=person, ease=ease)

    pooled = pooled_result({1: [scored("a", 5), scored("b", 4)], 2: [scored("a", 3)], 3: []})
    assert pooled is not None
    assert pooled["lead"] == "3 answers of 2 people about 2 features."
    ease = pooled["curves"][0]
    assert ease["above"] == "1 of 2 features have a mean above 3."
    assert ease["steps"] == [("3.0", "1 of 2"), ("4.5", "2 of 2")]
    assert pooled_result({1: []}) is None
    unscored = pooled_result({1: [QuestionnaireAnswer(about="x", person="a", description3="night")]})
    assert unscored is not None
    assert unscored["curves"] == []


def test_a_description_is_shown_everywhere_and_never_runs(tree_audit: Audit) -> None:
    html = to_html(left(tree_audit, EVIL))
    assert EVIL not in html
    escaped = "“&lt;img src=x onerror=alert(1)&gt;”"
    slice_page = html.partition('id="slice/s1"')[2].partition('id="slice/s2"')[0]
    class_page = html.partition(f'id="class/{class_trees(tree_audit)[0].id}"')[2].partition("</article>")[0]
    beside_the_name, _, rest = slice_page.partition('class="lede"')
    tree = rest.partition('class="tree')[2].partition("<details")[0]
    overview = html.partition('id="overview"')[2].partition("</article>")[0]
    for part in (beside_the_name, tree, class_page, overview):
        assert escaped in part


def test_people_may_be_left_out_and_their_words_stay(tree_audit: Audit) -> None:
    twice = {**said("s1", root(tree_audit), ("Ada Quist", {"description3": "dark ground"}))}
    judgement = Judgement(said=twice).without_people()
    (answer,) = judgement.said["s1"][0].filled
    assert answer.person == "person 1"
    html = to_html(as_left(tree_audit, judgement))
    assert "“dark ground”" in html
    assert "Quist" not in html


@pytest.mark.parametrize("part", ["slice", "class"])
def test_nobody_answered_and_that_is_said(tree_audit: Audit, part: str) -> None:
    html = to_html(tree_audit)
    shown = html.partition(f'id="{part}/')[2].partition("</article>")[0]
    assert "by people" not in shown
    assert ("Nobody has answered the questionnaire about its features yet." in shown) == (part == "class")
