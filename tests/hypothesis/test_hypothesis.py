"""A hypothesis, read by two grammars that must agree, and tested on rows that were not searched."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from errata import hypothesis
from errata.core import Audit, Evaluation, InputError, Overall, Slice, gaps
from errata.core.confirm import Settings, SplitTask
from errata.core.references import compare, rest_reference
from errata.hypothesis import to_columns
from errata.hypothesis.columns import read_column
from errata.hypothesis.testing import MAX_IDS

HERE = Path(__file__).parent
CASES = json.loads((HERE / "hypothesis_cases.json").read_text(encoding="utf-8"))
GRAMMAR = HERE.parents[1] / "src" / "errata" / "report" / "static" / "hypothesis_grammar.js"


class Texts:
    """One text a row."""

    kind = "text"

    def __init__(self, texts):
        self._texts = list(texts)

    def __len__(self):
        return len(self._texts)

    def rows(self, index):
        return Texts([self._texts[i] for i in index])

    def thumbnail(self, i, px):
        return None

    def text(self, i):
        return self._texts[i]


# --- the grammar, in both languages


@pytest.fixture(scope="module")
def table():
    """The rows of the cases file."""
    columns = {name: _array(**column) for name, column in CASES["columns"].items()}
    outcome = {"labels": columns.pop("label"), "predictions": columns.pop("prediction"), "ids": columns.pop("id")}
    return Evaluation(**{name: array.astype(str) for name, array in outcome.items()}, metadata=columns)


def _array(kind, values):
    if kind == "number":
        return np.array([np.nan if value is None else value for value in values])
    return np.array(values, dtype=object)


def test_there_are_cases_of_both_kinds():
    kinds = ["rows" in case for case in CASES["cases"]]
    assert len(kinds) >= 40
    assert min(sum(kinds), len(kinds) - sum(kinds)) >= 20


def test_the_columns_of_an_evaluation_are_those_the_page_gets(table):
    assert to_columns(table) == CASES["columns"]


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["text"][:40])
def test_the_grammar(table, case):
    if "error" in case:
        with pytest.raises(InputError) as raised:
            hypothesis.parse(case["text"], table)
        assert str(raised.value) == case["error"]
        return
    condition = hypothesis.parse(case["text"], table)
    mask = condition.mask(table)
    assert mask.dtype == bool
    assert np.flatnonzero(mask).tolist() == case["rows"]
    json.dumps(condition.to_json())


RUNNER = """
import { readFileSync } from "node:fs";
const [, grammar, file] = process.argv;
const { parse, wilson } = await import(grammar);
const { columns, cases } = JSON.parse(readFileSync(file, "utf8"));
const answers = cases.map(({ text }) => {
  try {
    return { rows: parse(text, columns).mask().flatMap((inside, i) => (inside ? [i] : [])) };
  } catch (error) {
    return { error: error.message };
  }
});
const pairs = [[0, 0], [0, 7], [7, 7], [85, 148], [1, 100000]];
const words = (found) => { try { return parse("x", found).mask(); } catch (error) { return error.message; } };
const wide = { code: { kind: "text", values: Array.from({ length: 5000 }, (_, i) => `row${10000 + i}`) } };
let near = "";
try { parse("code = row12999x", wide); } catch (error) { near = error.message; }
console.log(JSON.stringify({
  answers, near, intervals: pairs.map(([k, n]) => wilson(k, n)), strict: wilson(85, 148, 3), bare: words({}),
  reads: parse("label = cat and Hair color = red", columns).columns,
}));
"""


@pytest.fixture(scope="module")
def page():
    """What the page's grammar says of the same cases."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed, so the page's grammar is not run")
    command = [node, "--input-type=module", "-e", RUNNER, GRAMMAR.as_uri(), str(HERE / "hypothesis_cases.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_page_reads_every_case_the_same(page):
    expected = [{key: case[key] for key in ("rows", "error") if key in case} for case in CASES["cases"]]
    different = [
        (case["text"], told, want)
        for case, told, want in zip(CASES["cases"], page["answers"], expected, strict=True)
        if told != want
    ]
    assert different == []


def test_the_page_draws_the_same_intervals(page):
    pairs = [(0, 0), (0, 7), (7, 7), (85, 148), (1, 100000)]
    assert np.allclose(page["intervals"], [gaps.wilson(k, n) for k, n in pairs], rtol=0, atol=1e-12)
    assert page["strict"] == pytest.approx(gaps.wilson(85, 148, 3))


def test_both_say_the_same_where_there_is_nothing_to_find_words_in_and_among_many_values(page):
    bare = Evaluation(losses=np.zeros(3), metadata={"age": np.arange(3)})
    with pytest.raises(InputError) as raised:
        hypothesis.parse("x", bare).mask(bare)
    assert str(raised.value) == page["bare"]
    wide = Evaluation(losses=np.zeros(5000), metadata={"code": np.array([f"row{10000 + i}" for i in range(5000)])})
    with pytest.raises(InputError) as raised:
        hypothesis.parse("code = row12999x", wide)
    assert str(raised.value) == page["near"]
    assert page["reads"] == ["label", "hair color"]


def test_the_page_is_safe():
    text = GRAMMAR.read_text(encoding="utf-8")
    assert not any(word in text for word in ("innerHTML", "eval(", "Function(", "import "))


# --- columns


def _column(values, name="c"):
    return read_column(Evaluation(losses=np.zeros(len(values)), metadata={name: values}), name)


def test_numbers_with_holes_that_arrive_as_text_are_numbers():
    column = _column(np.array([1, None, 3.5], dtype=object))
    assert column.kind == "number"
    assert column.present.tolist() == [True, False, True]
    assert _column(np.array(["1", "x"])).kind == "text"
    assert _column(np.array(["", ""])).kind == "text"
    assert _column(np.array(["1", "nan"])).kind == "text"  # a word, not a number


def test_truths_dates_and_large_ids_are_text():
    assert _column(np.array([True, False])).values.tolist() == ["true", "false"]
    dates = _column(np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"))
    assert dates.values.tolist() == ["2020-01-01", ""]
    large = Evaluation(losses=np.zeros(2), ids=np.array([2**60, 2**60 + 1]))
    assert hypothesis.parse(f"id = {2**60 + 1}", large).mask(large).tolist() == [False, True]


def test_a_number_in_single_precision_equals_what_is_shown():
    rows = Evaluation(losses=np.zeros(2), metadata={"x": np.array([0.1, 0.2], dtype=np.float32)})
    assert hypothesis.parse("x = 0.1", rows).mask(rows).tolist() == [True, False]
    assert hypothesis.parse("x <= 0.1", rows).mask(rows).tolist() == [True, False]


def test_classes_without_names_are_numbers_and_targets_too():
    rows = Evaluation(labels=np.array([0, 1, 2]), predictions=np.array([0, 2, 2]))
    assert hypothesis.parse("label < 2 and prediction = 2", rows).mask(rows).tolist() == [False, True, False]
    line = Evaluation(labels=np.array([0.5, 1.5]), predictions=np.array([0.0, 1.0]))
    assert hypothesis.parse("label > 1", line).mask(line).tolist() == [False, True]


def test_label_prediction_and_id_come_before_metadata_of_the_same_name():
    rows = Evaluation(losses=np.zeros(2), metadata={"id": np.array(["x", "y"])}, ids=np.array(["p", "q"]))
    assert hypothesis.parse("id = q", rows).mask(rows).tolist() == [False, True]
    named = Evaluation(losses=np.zeros(2), metadata={"label": np.array(["x", "y"])})  # no other label here
    assert hypothesis.parse("label = y", named).mask(named).tolist() == [False, True]
    assert list(to_columns(named)) == ["id", "label"]


def test_a_condition_holds_for_other_rows_and_refuses_rows_without_its_column(table):
    condition = hypothesis.parse("size = huge", table)
    some = table.rows(np.array([3, 0]))
    assert condition.mask(some).tolist() == [True, False]
    assert not condition.mask(table.rows(np.array([0, 1]))).any()  # a value that does not occur here is no mistake
    with pytest.raises(InputError, match="Unknown column “size”"):
        condition.mask(Evaluation(losses=np.zeros(2)))
    with pytest.raises(InputError, match="holds numbers; “huge” is not one"):
        condition.mask(Evaluation(losses=np.zeros(2), metadata={"size": np.arange(2)}))


def test_words_are_looked_for_in_texts_as_whole_words():
    texts = Texts(["A snowy day", "SNOW, and a dog", "don't snow dogs", "", None])
    rows = Evaluation(losses=np.zeros(5), media=texts, metadata={"m": np.array(["snow dog"] * 5)})
    assert hypothesis.parse("snow", rows).mask(rows).tolist() == [False, True, True, False, False]
    assert hypothesis.parse("dog snow", rows).mask(rows).tolist() == [False, True, False, False, False]
    assert hypothesis.parse("don", rows).mask(rows).tolist() == [False] * 5


# --- the test on held-out rows

N = 2000
BIG = np.arange(N) % 10 < 2  # 200 of 1000 held-out rows: even rows search


def _audit(wrong, *, settings=None, slices=(), **more):
    labels = np.arange(len(wrong)) // 2 % 2
    given = {"labels": labels, "predictions": np.where(wrong, 1 - labels, labels)}
    given = {**given, "class_names": ("cat", "dog"), **more}
    evaluation = Evaluation(**{name: value for name, value in given.items() if value is not None})
    overall = Overall(len(wrong), None, None, 1, 0, 0.0, (0.0, 0.1), "error")
    names = [name for name, _ in evaluation.tasks()]
    return Audit(
        tuple(slices), evaluation, np.arange(len(wrong)) % 2 == 0, tuple((name, overall) for name in names),
        settings or {}, "",
    )  # fmt: skip


def _sizes(big=BIG):
    return {"size": np.where(big, "big", "small"), "age": np.arange(len(big)) % 50}


def _wrong(big=BIG, rate=0.5, rest=0.1):
    """(n,) bool: exactly these shares, on both halves."""
    wrong = np.zeros(len(big), dtype=bool)
    for half in (0, 1):
        for rows, share in ((big, rate), (~big, rest)):
            mine = np.flatnonzero(rows & (np.arange(len(big)) % 2 == half))
            wrong[mine[: round(share * len(mine))]] = True
    return wrong


def test_a_true_hypothesis_is_confirmed_with_its_numbers():
    audit = _audit(_wrong(), metadata=_sizes())
    result = hypothesis.run_test(audit, "size = big")
    confirm = ~audit.discover
    counts = compare(rest_reference(1000), BIG[confirm], _wrong()[confirm].astype(float))
    delta = SplitTask(audit.evaluation, audit.discover, Settings()).delta
    assert (result.held_out, result.n, result.errors, result.rest_n) == (1000, 200, 100, 800)
    assert result.rate == 0.5
    assert result.interval == gaps.wilson(100, 200)
    assert result.rest_rate == pytest.approx(0.1)
    assert result.gap == pytest.approx(0.4)
    assert result.gap_interval == gaps.interval(counts, 0.025)
    assert result.p_value == gaps.p_gap(counts, delta)
    assert (result.verdict, result.delta) == ("confirmed", delta)
    assert "class" in result.beyond
    assert result.sentence == (
        "200 held-out rows match. 100 are wrong: 50.0% (95% interval 43.1 to 56.9), against 10.0% of the other "
        "held-out rows."
    )
    assert set(result.ids) == set(np.flatnonzero(BIG & confirm))


def test_rows_that_were_searched_do_not_count():
    everywhere = _wrong()
    only_searched = everywhere & (np.arange(N) % 2 == 0)
    result = hypothesis.run_test(_audit(only_searched, metadata=_sizes()), "size = big")
    assert (result.errors, result.rest_rate) == (0, 0)
    assert result.verdict != "confirmed"


def test_a_false_hypothesis_is_not_confirmed_and_a_small_one_is_too_few():
    audit = _audit(_wrong(rate=0.1), metadata=_sizes())
    assert hypothesis.run_test(audit, "size = big").verdict == "not confirmed"
    small = hypothesis.run_test(audit, "age = 7 and size = small")
    assert (small.n, small.verdict) == (40, "too few to tell")
    assert small.rows_needed > 40


def test_few_rows_have_no_percentage():
    audit = _audit(_wrong(), metadata=_sizes())
    result = hypothesis.run_test(audit, "id in (1, 11, 1001, 1993)")
    assert result.sentence == "4 held-out rows match. 2 are wrong, against 17.9% of the other held-out rows."
    one = hypothesis.run_test(audit, "id = 1")
    assert one.sentence == "1 held-out row matches. 1 is wrong, against 17.9% of the other held-out rows."


def test_more_hypotheses_make_it_stricter_and_say_so():
    wrong = _wrong(rate=0.27, rest=0.15)
    audit = _audit(wrong, metadata=_sizes())
    once, often = (hypothesis.run_test(audit, "size = big", hypotheses=g) for g in (1, 50))
    assert once.p_value == often.p_value
    assert once.p_value <= 0.05
    assert (once.verdict, often.verdict) == ("confirmed", "not confirmed")
    counts = gaps.Counts(200, once.errors, once.rest_rate, 800)
    assert often.gap_interval == pytest.approx(gaps.interval(counts, 0.025 / 50))
    assert often.interval[0] < once.interval[0] < once.interval[1] < often.interval[1]
    assert often.sentence.endswith(" 50 hypotheses tested here; the interval allows for all of them.")
    third, fourth = (hypothesis.run_test(audit, "size = big", hypotheses=g).sentence for g in (3, 4))
    assert "hypotheses" not in third
    assert "4 hypotheses tested here" in fourth
    with pytest.raises(InputError, match="at least 1; got 0"):
        hypothesis.run_test(audit, "size = big", hypotheses=0)


@pytest.mark.parametrize("rate", [0.5, 0.27, 0.2, 0.15])
@pytest.mark.parametrize("groups", [None, 40])
def test_an_adjusted_result_is_as_if_it_were_tested_again(rate, groups):
    many = {} if groups is None else {"groups": np.arange(len(_wrong())) % groups}
    audit = _audit(_wrong(rate=rate, rest=0.15), metadata=_sizes(), **many)
    first = hypothesis.run_test(audit, "size = big", hypotheses=3)
    for number in (1, 3, 10, 50):
        again = hypothesis.adjust(first, number)
        tested = hypothesis.run_test(audit, "size = big", hypotheses=number)
        for name in ("verdict", "sentence", "hypotheses", "errors", "n", "rows_needed", "p_value"):
            assert getattr(again, name) == getattr(tested, name), name
        for name in ("interval", "gap_interval", "power"):
            assert getattr(again, name) == pytest.approx(getattr(tested, name)), name
        assert again.beyond == again.explained_by == (), "these are not adjusted"


def test_what_has_no_numbers_is_not_adjusted():
    audit = _audit(_wrong(), metadata=_sizes())
    for text in ("size = big and size = small", "label = cat and prediction = dog"):
        found = hypothesis.run_test(audit, text)
        assert hypothesis.adjust(found, 10) is found
        assert found.evidence is None


def test_a_later_look_and_the_margin_of_the_audit_count():
    wrong = _wrong(rate=0.27, rest=0.15)
    plain = hypothesis.run_test(_audit(wrong, metadata=_sizes()), "size = big")
    later = hypothesis.run_test(_audit(wrong, metadata=_sizes(), settings={"run": 6, "alpha": 0.05}), "size = big")
    wide = hypothesis.run_test(_audit(wrong, metadata=_sizes(), settings={"delta": 0.2}), "size = big")
    assert plain.verdict == "confirmed"
    assert later.verdict != "confirmed"
    assert (wide.delta, wide.p_value > 0.5) == (0.2, True)


def test_rows_of_one_patient_count_as_few():
    patients = np.arange(N) // 100
    wrong = (patients % 10 == 3) | (np.arange(N) % 20 == 1)
    metadata = {"ward": np.where(patients % 10 < 5, "north", "south")}
    alone = hypothesis.run_test(_audit(wrong, metadata=metadata), "ward = north")
    grouped = hypothesis.run_test(_audit(wrong, metadata=metadata, groups=patients), "ward = north")
    assert (alone.n, alone.rate, alone.rest_rate) == (grouped.n, grouped.rate, grouped.rest_rate)
    assert alone.verdict == "confirmed"
    assert grouped.verdict != "confirmed"
    assert grouped.p_value > alone.p_value
    assert np.ptp(grouped.interval) > 2 * np.ptp(alone.interval)
    assert np.ptp(grouped.gap_interval) > np.ptp(alone.gap_interval)


def test_a_hypothesis_that_reads_the_outcome_has_no_number():
    audit = _audit(_wrong(), metadata=_sizes())
    result = hypothesis.run_test(audit, "label = cat and not prediction = cat")
    assert (result.verdict, result.reason) == ("not confirmed", "unconfirmable")
    assert result.n > 0
    assert result.rate is result.p_value is result.errors is None
    assert result.sentence == "The method reads the outcome of a row, so a high error is by construction."
    assert hypothesis.run_test(audit, "label = cat").reason is None


def test_most_rows_match():
    result = hypothesis.run_test(_audit(_wrong(), metadata=_sizes()), "size = small")
    assert result.sentence.startswith("800 of 1,000 held-out rows match. 80 are wrong: 10.0% (95%")
    assert ", against 50.0% of the other held-out rows. They are better than the others" in result.sentence
    assert result.sentence.endswith("Add a word.")
    every = hypothesis.run_test(_audit(_wrong(), metadata=_sizes()), "age >= 0")
    assert (every.n, every.rest_n, every.verdict, every.gap) == (1000, 0, "too few to tell", None)
    assert every.sentence.endswith("(95% interval 15.7 to 20.5). Add a word.")


def test_no_row_matches_is_a_result_with_what_is_near():
    audit = _audit(_wrong(), metadata=_sizes())
    beyond = hypothesis.run_test(audit, "age > 200")
    assert (beyond.n, beyond.verdict, beyond.rate) == (0, "too few to tell", None)
    assert beyond.sentence == "No held-out row matches “age > 200”. Nearest: “49”."
    apart = hypothesis.run_test(audit, "size = big and age > 48 and age < 40")
    assert [(part.text, part.n > 0) for part in apart.parts] == [
        ("size = big", True), ("age > 48", True), ("age < 40", True),
    ]  # fmt: skip
    assert "Alone, “size = big” matches 200, “age > 48” matches 40, “age < 40” matches 800." in apart.sentence
    searched_only = hypothesis.run_test(audit, "id = 10")
    assert searched_only.sentence == "No held-out row matches “id = 10”. Nearest: “9”."
    words = hypothesis.run_test(audit, "bigg")
    assert words.sentence == "No held-out row matches “bigg”. Nearest: “big”."
    json.dumps(words.to_json())


def test_words_in_texts_and_the_nearest_of_them():
    texts = Texts([f"a {'snowy' if big else 'dry'} road {i}" for i, big in enumerate(BIG)])
    audit = _audit(_wrong(), media=texts)
    assert hypothesis.run_test(audit, "Snowy road").n == 200
    none = hypothesis.run_test(audit, "snwoy")
    assert [(part.text, part.n, part.nearest) for part in none.parts] == [("snwoy", 0, "snowy")]


def test_a_search_takes_the_rows_nearest_to_the_words_by_a_share_that_search_rows_choose():
    rng = np.random.default_rng(0)
    similarity = BIG + rng.uniform(0, 0.5, N)
    asked = []

    def search(text):
        asked.append(text)
        return similarity

    audit = _audit(_wrong(), metadata=_sizes())
    result = hypothesis.run_test(audit, "large things", search=search)
    assert asked == ["large things"]
    assert result.nearest_share == 0.2  # of the search rows, a fifth is big
    assert set(result.ids) <= set(np.flatnonzero(BIG & ~audit.discover))
    assert result.n > 190
    assert result.verdict == "confirmed"
    flipped = _wrong() ^ (~audit.discover & (rng.random(N) < 0.5))
    assert hypothesis.run_test(_audit(flipped, metadata=_sizes()), "large things", search=search).nearest_share == 0.2
    hypothesis.run_test(audit, "size = big", search=search)
    assert len(asked) == 2  # a condition needs no search
    with pytest.raises(InputError, match=r"one finite similarity a row; got shape \(3,\)"):
        hypothesis.run_test(audit, "large things", search=lambda text: np.zeros(3))


def test_overlap_with_slices_is_counted_on_held_out_rows():
    first = Slice("s1", "m", "", "confirmed", 0.5, {}, (np.arange(N) < 100).astype(float))
    audit = _audit(_wrong(), metadata=_sizes(), slices=[first, replace(first, id="s2", threshold=2.0)])
    told = hypothesis.run_test(audit, "size = big").overlap
    assert [(other.slice, other.both, other.members) for other in told] == [("s1", 10, 50), ("s2", 0, 0)]


def test_losses_above_the_tolerance_are_bad_where_there_are_no_errors():
    losses = np.where(_wrong(), 3.0, 1.0)
    audit = _audit(_wrong(), labels=None, predictions=None, class_names=None, losses=losses, metadata=_sizes(),
                   settings={"tolerance": 2.0})  # fmt: skip
    result = hypothesis.run_test(audit, "size = big")
    assert result.sentence.startswith("200 held-out rows match. 100 have a loss above 2: 50.0%")


def test_each_label_of_many_is_its_own_task():
    labels = np.stack([np.arange(N) % 2, np.arange(N) // 3 % 2], axis=1)
    predictions = labels ^ np.stack([_wrong(), np.zeros(N, bool)], axis=1)
    audit = _audit(_wrong(), labels=labels, predictions=predictions, class_names=("wet", "dry"), metadata=_sizes())
    assert hypothesis.run_test(audit, "size = big", task="wet").verdict == "confirmed"
    assert hypothesis.run_test(audit, "size = big", task="dry").errors == 0
    assert hypothesis.run_test(audit, 'label = "not wet"', task="wet").n == 0  # held-out rows are the odd ones
    with pytest.raises(InputError, match="unknown task ``; known: dry, wet"):
        hypothesis.run_test(audit, "size = big")


def test_json_is_plain_and_holds_at_most_so_many_ids():
    audit = _audit(_wrong(), metadata=_sizes())
    told = json.loads(json.dumps(hypothesis.run_test(audit, "size = small").to_json()))
    assert (told["n"], len(told["ids"])) == (800, MAX_IDS)
    assert told["condition"] == {"text": "size = small", "op": "=", "column": "size", "values": ["small"]}


def test_hypotheses_at_random_are_rarely_confirmed():
    """Errors that have nothing to do with metadata, one hypothesis each: at most the level, and a margin besides."""
    rng = np.random.default_rng(1)
    verdicts = []
    for _ in range(200):
        audit = _audit(rng.random(400) < 0.2, metadata={"g": rng.integers(0, 3, 400)}, settings={"delta": 0.0})
        verdicts.append(hypothesis.run_test(audit, "g = 1").verdict)
    assert verdicts.count("confirmed") <= 18  # 5% and three standard errors
