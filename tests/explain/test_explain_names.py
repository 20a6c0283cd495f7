from __future__ import annotations

import numpy as np

from errata.core import Evaluation
from errata.explain import explain
from errata.explain.names import class_words, unique

N = 200
MEMBERS = np.arange(N) < 40


def _digits(class_names=None):
    labels = np.where(MEMBERS, 8, np.arange(N) % 8)
    predictions = np.where(MEMBERS & (np.arange(N) % 3 > 0), 1, labels)
    return Evaluation(labels=labels, predictions=predictions, class_names=class_names)


def test_a_label_and_what_it_is_taken_for(make_audit, kinds):
    found = explain(make_audit(_digits(), MEMBERS)).slices[0]
    assert found.name == "label 8, mostly taken for 1"
    data = kinds(found)["name"]
    assert (data["source"], data["covers"], data["precise"]) == ("labels", [20, 20], [20, 20])
    assert (data["errors"], data["n"]) == (13, 20)


def test_a_class_with_a_name_needs_no_word(make_audit):
    names = (*tuple(f"shape{j}" for j in range(8)), "star")
    assert explain(make_audit(_digits(names), MEMBERS)).slices[0].name == "star, mostly taken for shape1"
    assert class_words("label", "cat") == "cat"
    assert class_words("predicted", "cat") == "predicted cat"
    assert class_words("label", "2.5 to 3") == "label 2.5 to 3"


def test_a_metadata_range(make_audit):
    age = np.where(MEMBERS, 60 + np.arange(N) % 30, 10 + np.arange(N) // 2 % 40)
    evaluation = Evaluation(losses=np.ones(N), metadata={"age": age})
    assert explain(make_audit(evaluation, MEMBERS)).slices[0].name == "age 60 to 89"


def test_words(make_audit, texts):
    made = [f"que como para {i}" if MEMBERS[i] else f"the book {i}" for i in range(N)]
    evaluation = Evaluation(losses=np.ones(N), media=texts(made))
    assert explain(make_audit(evaluation, MEMBERS)).slices[0].name == "como, para, que"


def test_nothing_in_common_gives_the_method_and_its_number(make_audit, kinds):
    evaluation = Evaluation(losses=np.ones(N), metadata={"kind": np.where(np.arange(N) % 4 < 2, "a", "b")})
    audit = explain(make_audit(evaluation, MEMBERS, np.arange(N) > 150))
    assert [found.name for found in audit.slices] == ["spotlight 1", "spotlight 2"]
    assert kinds(audit.slices[0])["name"]["source"] is None


def test_what_fits_everything_names_nothing(make_audit):
    evaluation = Evaluation(losses=np.ones(N), metadata={"site": np.full(N, "north")})
    assert explain(make_audit(evaluation, MEMBERS)).slices[0].name == "spotlight 1"


def test_the_scope_is_part_of_the_name(make_audit):
    audit = make_audit(_digits(), MEMBERS & (np.arange(N) < 20), rule={"scope": {"label": 8}})
    assert explain(audit).slices[0].name == "label 8, spotlight 1"


def test_a_name_that_stands_twice_is_numbered(make_audit):
    audit = explain(make_audit(_digits(), MEMBERS, MEMBERS))
    assert [found.name for found in audit.slices] == ["label 8, mostly taken for 1", "label 8, mostly taken for 1 (2)"]
    assert unique(["a", "b", "a", "a"]) == ["a", "b", "a (2)", "a (3)"]
