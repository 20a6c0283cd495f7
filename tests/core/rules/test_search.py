"""The search over columns: same counts and same best rules as brute force, and nothing that does not pay."""

from itertools import combinations, product

import numpy as np
import pytest

from errata.core import Evaluation
from errata.core.evidence import log_evidence
from errata.core.rules import Condition, match_all, to_text
from errata.core.rules.counts import frequent_cells
from errata.core.rules.fine import fine_literals
from errata.core.rules.literals import bin_counts, coarsen, encode, encode_all, list_literals
from errata.core.rules.search import Conjunction, Scores, _Search, find_rules
from hypothesis import given, settings
from hypothesis import strategies as st


def table(seed: int, n: int = 600) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    number = rng.gamma(2, 10, n).round(1)
    return {
        "number": np.where(rng.random(n) < 0.1, np.nan, number),
        "count": rng.integers(0, 6, n),
        "text": np.where(rng.random(n) < 0.1, "", rng.choice(["a", "b", "c c", "É"], n)),
        "flag": rng.random(n) < 0.4,
    }


def evaluation(columns) -> Evaluation:
    return Evaluation(losses=np.zeros(len(next(iter(columns.values())))), metadata=columns)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 30))
def test_counts_of_every_cell_are_those_of_brute_force(seed, depth, least):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 4).tolist()
    codes = [rng.integers(0, size, 80).astype(np.uint8) for size in sizes]
    bad = rng.random(80) < 0.3
    expected = {}
    for d in range(1, depth + 1):
        for columns in combinations(range(4), d):
            for values in product(*(range(sizes[j]) for j in columns)):
                inside = np.all([codes[j] == v for j, v in zip(columns, values, strict=True)], axis=0)
                if inside.sum() >= least:
                    expected[columns, values] = (int(inside.sum()), int(bad[inside].sum()))
    found = {}
    for cells in frequent_cells(codes, sizes, bad, depth, least):
        for values, n, wrong in zip(cells.bins.tolist(), cells.n.tolist(), cells.bad.tolist(), strict=True):
            found[cells.columns, tuple(values)] = (n, wrong)
    assert found == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_evidence_by_table_is_the_formula(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 200, 50)
    bad = rng.integers(0, n + 1)
    base = float(rng.uniform(0.01, 0.9))
    scores = Scores(300, 60, base, 1, 300, "rate")
    np.testing.assert_allclose(scores.evidence(n, bad), log_evidence(n, bad, base), rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 17))
def test_a_literal_is_the_condition_that_is_written(seed, bins):
    columns = table(seed, 200)
    rows = evaluation(columns)
    bad = np.random.default_rng(seed).random(200) < 0.3
    for column in encode_all(columns):
        coarse = coarsen(column, bins)
        n, wrong = bin_counts(coarse[column.codes], int(coarse[-1]) + 1, bad)
        literals = list_literals(column, coarse, n, wrong, 0.3, lean=False)
        for mask in literals.masks[:: max(1, len(literals.masks) // 20)]:
            condition = column.condition(mask[coarse])
            np.testing.assert_array_equal(condition.matches(rows), mask[coarse][column.codes], condition.text)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_fine_literals_count_what_they_hold(seed):
    columns = table(seed, 150)
    bad = np.random.default_rng(seed).random(150) < 0.3
    for column in encode_all(columns):
        n, wrong = bin_counts(column.codes, column.size + 1, bad)
        options, prices = fine_literals(column, n, wrong, 0.3)
        assert len(prices) == len(options.n)
        for i in range(0, len(prices), max(1, len(prices) // 30)):
            inside = options.mask(i)[column.codes]
            assert (options.n[i], options.bad[i]) == (inside.sum(), bad[inside].sum())


def best_of_two(columns, bad, base, least):
    """The most value of any conjunction of at most two literals of the coarse bins, by brute force over rows."""
    best = -np.inf
    coded = encode_all(columns)
    literals = []
    for j, column in enumerate(coded):
        coarse = coarsen(column, 10)
        n, wrong = bin_counts(coarse[column.codes], int(coarse[-1]) + 1, bad)
        listed = list_literals(column, coarse, n, wrong, base, lean=False)
        for mask, price in zip(listed.masks, listed.prices, strict=True):
            literals.append((j, mask[coarse][column.codes], price + np.log(len(coded))))
    for a, b in [(a, a) for a in literals] + list(combinations(literals, 2)):
        if a[0] == b[0] and a is not b:
            continue
        inside = a[1] & b[1]
        price = a[2] if a is b else a[2] + b[2]
        if inside.sum() >= least:
            best = max(best, float(log_evidence(inside.sum(), bad[inside].sum(), base)) - price)
    return best


@pytest.mark.parametrize("seed", range(4))
def test_the_best_pair_is_no_worse_than_that_of_brute_force(seed):
    columns = table(seed, 300)
    rng = np.random.default_rng(100 + seed)
    inside = (columns["count"] < 2) & (columns["text"] == "a")
    bad = rng.random(300) < np.where(inside, 0.6, 0.1)
    base = float(bad.mean())
    rules = find_rules(encode_all(columns), bad, base, depth=2, least=10)
    assert rules[0].value >= best_of_two(columns, bad, base, 10) - 1e-9
    members = match_all(rules[0].conditions, evaluation(columns))
    assert (rules[0].n, rules[0].bad) == (members.sum(), bad[members].sum())
    assert rules[0].evidence == pytest.approx(float(log_evidence(rules[0].n, rules[0].bad, base)))


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_triple_is_told_as_it_was_planted(seed):
    columns = table(seed, 6000)
    inside = (columns["number"] >= 15) & (columns["text"] == "b") & columns["flag"]
    bad = np.random.default_rng(seed).random(6000) < np.where(inside, 0.6, 0.1)
    rule = find_rules(encode_all(columns), bad, float(bad.mean()), least=30)[0]
    members = match_all(rule.conditions, evaluation(columns))
    assert (members & inside).sum() > 0.9 * (members | inside).sum(), to_text(rule.conditions)
    assert {condition.column for condition in rule.conditions} == {"number", "text", "flag"}


def test_missing_values_are_a_value():
    columns = table(0, 6000)
    inside = np.isnan(columns["number"]) & (columns["text"] == "")
    bad = np.random.default_rng(0).random(6000) < np.where(inside, 0.9, 0.1)
    rule = find_rules(encode_all(columns), bad, float(bad.mean()), least=20)[0]
    assert rule.conditions == (Condition("number", missing=True), Condition("text", values=(), missing=True))


def test_a_literal_that_adds_nothing_is_dropped():
    columns = table(3, 6000)
    bad = np.random.default_rng(3).random(6000) < np.where(columns["count"] == 3, 0.4, 0.1)
    rule = find_rules(encode_all(columns), bad, float(bad.mean()), least=60)[0]
    assert rule.conditions == (Condition("count", values=(3.0,)),)


def test_the_worst_part_of_a_wide_rule_is_offered_too():
    rng = np.random.default_rng(0)
    n = 20_000
    columns = {"wide": rng.random(n) < 0.3, "narrow": rng.random(n) < 0.1}
    rates = np.where(columns["wide"], np.where(columns["narrow"], 0.8, 0.3), 0.1)
    rules = find_rules(encode_all(columns), rng.random(n) < rates, 0.17, least=100)
    texts = [to_text(rule.conditions) for rule in rules]
    assert "wide = true" in texts
    assert "wide = true and narrow = true" in texts


def test_a_group_of_values_is_found_and_pays_for_its_names():
    rng = np.random.default_rng(0)
    n = 20_000
    sites = np.array([f"s{i:02d}" for i in range(30)])[rng.integers(0, 30, n)]
    group = np.isin(sites, ["s03", "s11", "s17", "s20"])
    bad = rng.random(n) < np.where(group, 0.35, 0.1)
    rule = find_rules(encode_all({"site": sites}), bad, float(bad.mean()), least=100)[0]
    assert rule.conditions == (Condition("site", values=("s03", "s11", "s17", "s20")),)
    single = find_rules(encode_all({"site": np.where(group, "s03", "s01")}), bad, float(bad.mean()), least=100)[0]
    assert rule.price > single.price + 5


def test_a_description_prefers_the_rule_that_covers_more():
    rng = np.random.default_rng(0)
    n = 10_000
    columns = {"age": rng.integers(0, 80, n), "site": np.array(["a", "b", "c"])[rng.integers(0, 3, n)]}
    member = (columns["age"] < 10) & ((columns["site"] == "a") | (rng.random(n) < 0.3))
    coded = encode_all(columns)
    sharpest = find_rules(coded, member, float(member.mean()), least=20)[0]
    described = find_rules(coded, member, float(member.mean()), least=20, aim="split")[0]
    assert to_text(sharpest.conditions) == "age < 10 and site = a"
    assert to_text(described.conditions) == "age < 10"


def test_refining_drops_a_literal_and_moves_a_bound():
    rng = np.random.default_rng(0)
    n = 5000
    columns = {"age": rng.integers(0, 80, n), "site": np.array(["a", "b", "c"])[rng.integers(0, 3, n)]}
    bad = rng.random(n) < np.where(columns["age"] < 13, 0.5, 0.1)
    age, site = encode_all(columns)
    search = _Search([age, site], bad, [Scores(n, int(bad.sum()), float(bad.mean()), 20, n, "rate")])
    masks = (np.arange(age.size + 1) < 20, np.array([True, True, False, False]))
    start = search.value_of(Conjunction((0, 1), masks, (6.0, 6.0), 0.0))
    refined = search.refine(start, 0)
    assert to_text(search.rule(refined).conditions) == "age < 13"
    assert refined.value > start.value
    assert search.value_of(refined).value == pytest.approx(refined.value)


@pytest.mark.parametrize("seed", range(5))
def test_random_outcomes_are_worth_nothing(seed):
    columns = table(seed, 3000)
    bad = np.random.default_rng(1000 + seed).random(3000) < 0.2
    rules = find_rules(encode_all(columns), bad, float(bad.mean()), least=30)
    assert all(rule.value < 3 for rule in rules)


def test_of_many_columns_those_that_stand_out_are_joined(monkeypatch):
    monkeypatch.setattr("errata.core.rules.search.MOST_IN_PAIRS", 6)
    monkeypatch.setattr("errata.core.rules.search.MOST_IN_TRIPLES", 4)
    rng = np.random.default_rng(0)
    columns = {f"noise{i}": rng.normal(size=8000) for i in range(10)} | table(1, 8000)
    inside = (columns["count"] < 2) & (columns["text"] == "a") & columns["flag"]
    bad = rng.random(8000) < np.where(inside, 0.7, 0.1)
    rule = find_rules(encode_all(columns), bad, float(bad.mean()), least=40)[0]
    assert to_text(rule.conditions) == "count < 2 and text = a and flag = true"


def test_columns_that_cannot_be_searched_are_left_out():
    n = 200
    columns = {
        "constant": np.ones(n),
        "id": np.array([f"row{i}" for i in range(n)]),
        "empty": np.array([""] * n),
        "one or none": np.where(np.arange(n) % 3, np.nan, 1.0),
    }
    assert [column.name for column in encode_all(columns)] == ["one or none"]


def test_texts_that_differ_in_case_and_spaces_are_one_value():
    column = encode("race", np.array(["White", " white", "Black", ""] * 5))
    assert column.size == 2
    mask = np.zeros(3, dtype=bool)
    mask[column.codes[0]] = True
    assert column.condition(mask) == Condition("race", values=(" white", "White"))
    assert column.condition(mask).text == "race = white"


def test_many_texts_are_pooled_and_still_selected():
    rng = np.random.default_rng(0)
    texts = np.array([f"v{i}" for i in np.minimum(rng.geometric(0.01, 4000), 400)])
    column = encode("name", texts)
    assert column.size == 254
    mask = np.zeros(255, dtype=bool)
    mask[-2] = True
    rows = evaluation({"name": texts})
    np.testing.assert_array_equal(column.condition(mask).matches(rows), column.codes == 253)


def test_bounds_are_readable_numbers():
    rng = np.random.default_rng(0)
    column = encode("x", rng.normal(size=50_000) * 37.123456)
    assert column.size == 254
    assert np.mean([len(f"{edge:g}") <= 7 for edge in column.edges]) > 0.9
    sizes = np.bincount(column.codes)
    assert sizes.max() < 3 * 50_000 / 254
