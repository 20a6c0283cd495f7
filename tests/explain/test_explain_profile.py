from __future__ import annotations

import numpy as np
import pytest

from errata.core import Evaluation
from errata.explain import explain
from errata.explain.encode import Column, Skipped, encode

N = 400
MEMBERS = np.arange(N) < 80


def _evaluation(**metadata):
    """Ten rows in a hundred are wrong; half of the first eighty, which are the slice."""
    labels = np.arange(N) % 2
    wrong = np.where(MEMBERS, np.arange(N) % 4 < 2, np.arange(N) % 16 == 1)
    return Evaluation(labels=labels, predictions=np.where(wrong, 1 - labels, labels), metadata=metadata)


def test_a_planted_value_comes_first(make_audit, kinds):
    rng = np.random.default_rng(0)
    noise = {f"noise{j}": rng.choice(list("abc"), N) for j in range(4)}
    planted = np.where(MEMBERS | (rng.random(N) < 0.1), "stripes", "plain")
    audit = explain(make_audit(_evaluation(**noise, ground=planted), MEMBERS))
    top = kinds(audit.slices[0])["metadata"]["columns"][0]
    assert top["column"] == "ground"
    assert top["rows"][0]["value"] == "stripes"
    assert audit.slices[0].name == "ground = stripes"


def test_shares_lift_and_errors_by_hand(make_audit, kinds):
    # Confirm rows are the odd ones: 40 members, of which all 40 have "x"; 160 others, of which 16 have it.
    value = np.where(MEMBERS | (np.arange(N) % 20 == 1), "x", "y")
    data = kinds(explain(make_audit(_evaluation(kind=value), MEMBERS)).slices[0])["metadata"]
    row = data["columns"][0]["rows"][0]
    assert (row["value"], row["slice"], row["rest"]) == ("x", [40, 40], [16, 160])
    assert row["lift"] == pytest.approx(10.0)
    errors = _evaluation().errors
    odd_x = (np.arange(N) % 2 == 1) & (value == "x")
    assert (row["n"], row["errors"]) == (56, int(errors[odd_x].sum()))
    assert row["error_rate"] == pytest.approx(row["errors"] / 56)


def test_a_value_the_rest_lacks_has_no_lift(make_audit, kinds):
    data = kinds(explain(make_audit(_evaluation(kind=np.where(MEMBERS, "x", "y")), MEMBERS)).slices[0])["metadata"]
    assert data["columns"][0]["rows"][0]["lift"] is None


def test_order_is_chosen_on_discover_rows(make_audit, kinds):
    # On confirm rows `late` sets the slice apart, on discover rows only `early` does.
    odd = np.arange(N) % 2 == 1
    columns = {"late": np.where(MEMBERS & odd, "x", "y"), "early": np.where(MEMBERS & ~odd, "x", "y")}
    data = kinds(explain(make_audit(_evaluation(**columns), MEMBERS)).slices[0])["metadata"]
    assert [column["column"] for column in data["columns"]] == ["early", "late"]
    assert data["columns"][0]["rows"][0]["slice"] == [0, 40]


def test_ids_are_skipped_and_named(make_audit, kinds):
    names = np.array([f"file{i}.png" for i in range(N)])
    data = kinds(explain(make_audit(_evaluation(file=names), MEMBERS)).slices[0])["metadata"]
    assert data["columns"] == []
    assert data["skipped"] == [{"column": "file", "distinct": N}]


def test_numbers_are_cut_at_the_quantiles_of_searched_rows():
    column = encode("age", np.arange(100), np.arange(100) < 50)
    assert isinstance(column, Column)
    assert column.values == ("0 to 9", "10 to 19", "20 to 29", "30 to 39", "40 to 99")
    assert np.bincount(column.codes).tolist() == [10, 10, 10, 10, 60]


def test_missing_values_have_their_own_row():
    ages = np.array([1.5, np.nan] * 50 + [3.0, -4.25, 5.0, 6.0, 7.0])
    column = encode("age", ages, np.ones(105, dtype=bool))
    assert column.values[-1] is None
    assert column.values[0] == "−4.25 to 1.5"
    assert (column.codes == len(column.values) - 1).sum() == 50
    words = encode("word", np.array(["a", "", "b", ""]), np.ones(4, dtype=bool))
    assert words.values == ("a", "b", None)
    assert words.codes.tolist() == [0, 2, 1, 2]


def test_few_numbers_are_values():
    column = encode("lights", np.array([0.0, 2.0, 1.0, 2.0]), np.ones(4, dtype=bool))
    assert (column.kind, column.values) == ("categorical", ("0", "1", "2"))
    assert encode("flag", np.array([True, False]), np.ones(2, dtype=bool)).values == ("False", "True")


def test_a_thousand_values_are_too_many():
    column = encode("word", np.array([f"w{i % 1001}" for i in range(9000)]), np.ones(9000, dtype=bool))
    assert column == Skipped("word", 1001)


def test_labels_predictions_and_confusions_by_hand(make_audit, kinds):
    # 20 confirm members of label 1 and 10 of label 0; every second is wrong.
    labels = _evaluation().labels
    audit = make_audit(_evaluation(), MEMBERS & ((labels == 1) | (np.arange(N) < 40)), discover=np.arange(N) % 8 < 4)
    data = kinds(explain(audit).slices[0])["classes"]
    assert {row["value"]: row["slice"] for row in data["labels"]["rows"]} == {"0": [10, 30], "1": [20, 30]}
    assert {row["value"]: row["slice"] for row in data["predictions"]["rows"]} == {"0": [15, 30], "1": [15, 30]}
    wrong = [(pair["label"], pair["prediction"], pair["slice"]) for pair in data["confused"]]
    assert wrong == [("1", "0", [10, 15]), ("0", "1", [5, 15])]


def test_the_rest_of_a_scoped_slice_is_its_scope(make_audit, kinds):
    audit = make_audit(_evaluation(), MEMBERS, rule={"scope": {"label": 1}})
    rows = kinds(explain(audit).slices[0])["classes"]["labels"]["rows"]
    assert [(row["value"], row["slice"], row["rest"]) for row in rows if row["n"]] == [("1", [40, 40], [160, 160])]


def test_a_regression_is_profiled_in_bins(make_audit, kinds):
    target = np.arange(N) / 7
    evaluation = Evaluation(labels=target, predictions=target + np.where(MEMBERS, 2.0, 0.1))
    data = kinds(explain(make_audit(evaluation, MEMBERS)).slices[0])["classes"]
    top = data["labels"]["rows"][0]
    assert top["value"].startswith("0 to ")
    assert top["slice"] == [39, 40]
    assert top["errors"] is None
    assert top["mean_loss"] == pytest.approx(4.0, rel=0.05)
    assert data["confused"] == []


def test_a_confusion_that_only_confirm_rows_show_was_not_searched_for(make_audit, kinds):
    # Even rows search and have label 0: they know 0 -> 1 only, which no confirm row has.
    data = kinds(explain(make_audit(_evaluation(), MEMBERS)).slices[0])["classes"]
    assert [(pair["label"], pair["prediction"], pair["slice"]) for pair in data["confused"]] == [("0", "1", [0, 20])]
