"""Two models on the same rows: known slices, values of columns, and slices that nobody named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import errata
from errata.core.compared_slices import known_groups
from errata.core.gaps import Counts, p_gap
from errata.core.known_slices import count_tested
from errata.core.paired import OutcomeChanges, change_interval, count_changes, visible_rise
from errata.workflow import ComparisonWith, comparing
from support.command import run

N = 4000


def rows(seed: int = 0, n: int = N) -> dict:
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=(n, 3)), "labels": rng.integers(0, 3, n), "site": rng.choice(["north", "south"], n)}


def model(data: dict, risk: np.ndarray, seed: int) -> errata.Evaluation:
    """Outcomes that are drawn for each model by itself, at the same risk of each row where it is the same."""
    wrong = np.random.default_rng(seed).random(len(risk)) < risk
    return errata.Evaluation(
        labels=data["labels"],
        predictions=np.where(wrong, (data["labels"] + 1) % 3, data["labels"]),
        representations={"x": data["x"]},
        metadata={"site": data["site"], "first": data["x"][:, 0]},
    )


def hard(data: dict, rate: float) -> np.ndarray:
    return np.where(data["x"][:, 0] > 1, rate, 0.05)


@pytest.fixture(scope="module")
def data() -> dict:
    return rows()


def judged(comparison: errata.Comparison, kind: str) -> list[str]:
    return [change.judgement for change in comparison.changes if change.kind == kind]


# ---- slices that nobody named


def test_a_regression_that_nobody_named_is_found(data: dict) -> None:
    """As many rows are broken here as fixed there: over all rows nothing is to be seen."""
    before = np.where(data["x"][:, 0] > 1, 0.05, np.where(data["x"][:, 1] > 1, 0.5, 0.05))
    after = np.where(data["x"][:, 0] > 1, 0.5, 0.05)
    first = model(data, before, 1)
    comparison = errata.compare(first, model(data, after, 2))
    assert judged(comparison, "all") == ["no change shown"]
    worst = [change for change in comparison.changes if change.kind == "found" and change.judgement == "worse"]
    assert worst
    assert worst[0].change > 0.3
    assert 100 < worst[0].n < 0.6 * (data["x"][:, 0] > 0.9).sum()  # held-out rows alone
    examples = comparison.facts["examples"][worst[0].id]
    assert (data["x"][examples, 0] > 0.9).all()
    assert (model(data, after, 2).errors & ~first.errors)[examples].all()


def test_a_region_that_both_find_hard_is_no_regression(data: dict) -> None:
    """Three in ten rows of it are broken, against few elsewhere; as many are fixed."""
    risk = hard(data, 0.5)
    comparison = errata.compare(model(data, risk, 1), model(data, risk, 2))
    found = [change for change in comparison.changes if change.kind == "found"]
    assert max(change.broken / change.n for change in found) > 0.15
    assert "worse" not in judged(comparison, "found")


def test_a_model_that_is_worse_everywhere_is_told_once(data: dict) -> None:
    risk = np.full(N, 0.05)
    comparison = errata.compare(model(data, risk, 1), model(data, 3 * risk, 2))
    assert judged(comparison, "all") == ["worse"]
    assert judged(comparison, "found").count("worse") == 0


@pytest.mark.parametrize("seed", range(6))
def test_two_draws_of_one_model_pass(seed: int) -> None:
    data = rows(seed)
    risk = np.where(data["x"][:, 0] > 1, 0.4, 0.1)
    comparison = errata.compare(model(data, risk, 10 + seed), model(data, risk, 20 + seed), by=["label", "site"])
    assert {change.judgement for change in comparison.changes} == {"no change shown"}


def test_the_same_rows_in_any_order_are_the_same_comparison(data: dict) -> None:
    first = model(data, hard(data, 0.05), 1)
    second = model(data, hard(data, 0.5), 2)
    once = errata.compare(first, second)
    again = errata.compare(first, second)
    assert once.to_json() == again.to_json()
    order = np.random.default_rng(3).permutation(N)
    shuffled = errata.compare(first.rows(order), second.rows(order[::-1]))
    assert [change.n for change in shuffled.changes] == [change.n for change in once.changes]
    assert [change.change for change in shuffled.changes] == [change.change for change in once.changes]


def test_copies_of_rows_are_not_more_rows() -> None:
    """Every row stands six times, with one outcome: forty changes are not two hundred and forty."""
    rng = np.random.default_rng(3)
    once = {"x": rng.normal(size=(400, 3)), "labels": rng.integers(0, 3, 400)}
    data = {name: np.repeat(values, 6, axis=0) for name, values in once.items()}

    def copied(wrong: np.ndarray) -> errata.Evaluation:
        predictions = np.where(np.repeat(wrong, 6), (data["labels"] + 1) % 3, data["labels"])
        return errata.Evaluation(labels=data["labels"], predictions=predictions, representations={"x": data["x"]})

    first = copied(np.arange(400) < 40)
    second = copied((np.arange(400) >= 30) & (np.arange(400) < 82))  # 30 fixed, 42 broken
    assert errata.compare(first, second, search=False, groups="none")["overall"].judgement == "worse"
    assert errata.compare(first, second, search=False)["overall"].judgement == "no change shown"


def test_without_anything_to_search_it_says_so(data: dict) -> None:
    first = replace(model(data, hard(data, 0.05), 1), representations={}, metadata={})
    comparison = errata.compare(first, model(data, hard(data, 0.5), 2))
    assert len(comparison.changes) == 1
    assert any("nothing to search" in note for note in comparison.facts["notes"])


def test_the_same_model_breaks_nothing(data: dict) -> None:
    first = model(data, hard(data, 0.5), 1)
    comparison = errata.compare(first, first)
    assert comparison["overall"].change == 0
    assert any("wrong nowhere" in note for note in comparison.facts["notes"])


# ---- values of columns


def test_values_of_columns_are_compared(data: dict) -> None:
    north = np.where(data["site"] == "north", 0.3, 0.1)
    comparison = errata.compare(
        model(data, np.full(N, 0.1), 1), model(data, north, 2), by=["site", "label"], search=False
    )
    assert comparison["site=north"].judgement == "worse"
    assert comparison["site=south"].judgement == "no change shown"
    assert comparison["site=north"].n == (data["site"] == "north").sum()
    assert {change.id for change in comparison.changes} >= {"label=0", "label=1", "label=2"}


def test_columns_that_cannot_be_compared_are_refused(data: dict) -> None:
    first = model(data, hard(data, 0.1), 1)
    with pytest.raises(errata.ErrataError, match="site"):
        errata.compare(first, first, by=["sight"])
    with pytest.raises(errata.ErrataError, match="at most 50"):
        errata.compare(first, first, by=["first"])


# ---- known slices


@pytest.fixture(scope="module")
def audits(data: dict) -> tuple[errata.Audit, errata.Audit]:
    first = errata.audit(model(data, hard(data, 0.5), 1), methods=["gmm"])
    second = errata.audit(model(data, hard(data, 0.9), 2), methods=["gmm"])
    assert first.confirmed
    return first, second


def test_known_slices_are_measured_on_their_held_out_rows(audits: tuple[errata.Audit, errata.Audit]) -> None:
    first, second = audits
    comparison = errata.compare(first, second, search=False)
    slice_ = first.confirmed[0]
    inside = slice_.members & ~first.discover
    change = comparison[slice_.id]
    assert change.n == inside.sum()
    assert change.judgement == "worse"
    expected = second.evaluation.errors[inside].mean() - first.evaluation.errors[inside].mean()
    assert change.change == pytest.approx(expected)
    # An audit and a file of the other model are the same comparison.
    assert errata.compare(first, second.evaluation, search=False).to_json() == comparison.to_json()
    note = next(note for note in comparison.facts["notes"] if "also confirmed them" in note)
    assert f"all {count_tested(first)} slices" in note


def test_a_slice_of_the_other_half_is_measured_there(data: dict) -> None:
    first = errata.audit(model(data, hard(data, 0.6), 1), methods=["gmm"], crossfit=True)
    reverse = [slice_ for slice_ in first.confirmed if slice_.confirmed_on == "discover"]
    assert reverse
    groups = {group.id: group for group in known_groups(first, np.arange(N), model(data, hard(data, 0.6), 2), reverse)}
    for slice_ in reverse:
        assert (groups[slice_.id].inside == (slice_.members & first.discover)).all()


def test_slices_of_another_audit_are_measured_on_new_rows(audits: tuple[errata.Audit, errata.Audit]) -> None:
    first, _ = audits
    new = rows(seed=9)
    ids = np.arange(N) + 10_000
    before = replace(model(new, hard(new, 0.5), 3), ids=ids)
    after = replace(model(new, hard(new, 0.9), 4), ids=ids)
    comparison = errata.compare(before, after, slices=first, search=False)
    slice_ = first.confirmed[0]
    inside = errata.apply(first, before)[slice_.id] >= slice_.threshold
    assert comparison[slice_.id].n == inside.sum()
    assert comparison[slice_.id].judgement == "worse"
    with pytest.raises(errata.ErrataError, match="rows it did not see"):
        errata.compare(first.evaluation, first.evaluation, slices=first)


def draw_changes(level_of: Callable[[int], float], draws: int = 400) -> tuple[float, float]:
    """Ten truly bad slices that held-out rows confirm about half of the time, and a second model that is no better.

    Return the mean change of the confirmed ones, and the share of draws in which any of them is called better.
    """
    rng = np.random.default_rng(5)
    m = 60
    slices = 10
    rest_rate = 0.1
    changes = []
    called = 0
    for _ in range(draws):
        before = rng.random((slices, m)) < 0.25
        after = rng.random((slices, m)) < 0.25
        confirmed = [j for j in range(slices) if p_gap(Counts(m, before[j].sum(), rest_rate, 2000), 0.03) <= 0.005]
        level = level_of(len(confirmed))
        intervals = [change_interval(count_changes(before[j], after[j]), level) for j in confirmed]
        changes += [after[j].mean() - before[j].mean() for j in confirmed]
        called += any(high < 0 for _, high in intervals)
    return float(np.mean(changes)), called / draws


def test_selection_flatters_the_point_and_not_the_verdict() -> None:
    change, called = draw_changes(lambda confirmed: 0.05 / 11)
    assert change < -0.03  # an unchanged model looks better by over three points
    assert called <= 0.05
    _, called_when_only_the_shown_count = draw_changes(lambda confirmed: 0.05 / (confirmed + 1))
    assert called_when_only_the_shown_count > called


def test_intervals_allow_for_all_that_was_tested(audits: tuple[errata.Audit, errata.Audit]) -> None:
    first, second = audits
    comparison = errata.compare(first, second)
    change = comparison[first.confirmed[0].id]
    level = 0.05 / comparison.facts["parts"] / count_tested(first)
    assert change.interval == change_interval(OutcomeChanges(change.n, change.fixed, change.broken), level)


def test_a_page_asks_again_and_searches_once(
    audits: tuple[errata.Audit, errata.Audit], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = audits
    searches = []
    monkeypatch.setattr(comparing, "audit", lambda *a, **k: searches.append(1) or errata.audit(*a, **k))
    compare = ComparisonWith(second)
    comparison = compare(first)
    assert comparison.changes == errata.compare(first, second).changes
    assert len(searches) == 2  # one of each
    assert compare(first) is comparison
    decided = replace(first, slices=first.slices[::-1])
    assert compare(decided).changes == errata.compare(decided, second).changes
    assert len(searches) == 3
    everything = comparison["overall"].broken
    assert len(comparison.facts["changed"]["overall"]["broken"]) == everything > 200, "a page lists all of them"


# ---- what would have been seen


@pytest.mark.parametrize(("n", "fixed", "level"), [(500, 0.05, 0.01), (5000, 0.02, 0.002), (200, 0.0, 0.05)])
def test_the_visible_rise_is_seen_in_four_of_five(n: int, fixed: float, level: float) -> None:
    rise = visible_rise(n, fixed, level)
    assert rise is not None
    rng = np.random.default_rng(0)

    def seen(rise: float) -> float:
        counts = rng.multinomial(n, [fixed, fixed + rise, 1 - 2 * fixed - rise], size=2000)
        p = stats.binomtest  # the verdict itself, by scipy's exact test
        return float(np.mean([p(int(b), int(b + f), alternative="greater").pvalue <= 0.9 * level if b else 0.0
                              for f, b, _ in counts[:600]]))  # fmt: skip

    assert seen(rise) == pytest.approx(0.8, abs=0.05)
    assert seen(0.7 * rise) < 0.7


def test_too_few_rows_show_nothing() -> None:
    assert visible_rise(4, 0.0, 0.01) is None
    assert visible_rise(0, 0.0, 0.01) is None


# ---- the command


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, data: dict) -> Path:
    place = tmp_path_factory.mktemp("compare")
    for name, rate, seed in (("a", 0.05, 1), ("same", 0.05, 2), ("worse", 0.5, 3)):
        evaluation = model(data, hard(data, rate), seed)
        columns = {f"metadata:{key}": value for key, value in evaluation.metadata.items()}
        outcomes = {"labels": evaluation.labels, "predictions": evaluation.predictions}
        np.savez(place / f"{name}.npz", embedding=data["x"], **outcomes, **columns)
    return place


def test_the_command_fails_on_a_regression(place: Path, tmp_path: Path) -> None:
    files = ["--junit", tmp_path / "j.xml", "--summary", tmp_path / "s.md", "-o", tmp_path / "c.json"]
    done = run("compare", place / "a.npz", place / "worse.npz", "--fail-on", "worse", *files)
    assert (done.code, done.err) == (1, "")
    assert "Gate fails, since the second model is worse: all rows, r1" in done.out
    assert "though nobody named it" in (tmp_path / "s.md").read_text()
    assert "Smallest rise that would have been seen" in done.out
    saved = json.loads((tmp_path / "c.json").read_text())
    assert json.loads(json.dumps(errata.Comparison.from_json(saved).to_json())) == saved
    assert "<failure" in (tmp_path / "j.xml").read_text()


def test_the_command_passes_where_nothing_is_shown(place: Path) -> None:
    done = run("compare", place / "a.npz", place / "same.npz", "--fail-on", "worse", "--by", "site", "--json")
    assert done.code == 0
    assert {change["judgement"] for change in json.loads(done.out)["changes"]} == {"no change shown"}
    assert done.err == "Gate passes: it fails where the second model is worse.\n"


def test_a_saved_audit_and_a_file(place: Path, tmp_path: Path) -> None:
    assert run("audit", place / "worse.npz", "-o", tmp_path / "audit", "--method", "gmm", "--no-map").code == 0
    done = run("compare", tmp_path / "audit", place / "a.npz", "--fail-on", "worse", "--no-search")
    assert done.code == 0
    assert "better" in done.out
    assert "also confirmed them" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{}/a.npz", "{}/none.npz"], "none.npz"),
        (["{}/a.npz", "{}/same.npz", "--fail-on", "broken"], "broken"),
        (["{}/a.npz", "{}/same.npz", "--by", "sight"], "sight"),
        (["{}/a.npz", "{}/same.npz", "--method", "gnm"], "gnm"),
        (["{}/a.npz", "{}/same.npz", "--alpha", "2"], "alpha"),
        (["{}", "{}/same.npz"], "is not an audit"),
    ],
)
def test_bad_input_is_one_sentence(place: Path, words: list[str], sentence: str) -> None:
    done = run("compare", *(word.replace("{}", str(place)) for word in words))
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert sentence in done.err


def test_rows_that_do_not_match_are_refused(data: dict) -> None:
    first = model(data, hard(data, 0.1), 1)
    with pytest.raises(errata.ErrataError, match="share 0 rows by id"):
        errata.compare(first, replace(first, ids=np.arange(N) + N))
    other = replace(first, labels=(first.labels + (np.arange(N) == 7)) % 3)
    with pytest.raises(errata.ErrataError, match="row 7 has different labels"):
        errata.compare(first, other)


def test_classes_given_as_text_are_matched_by_name() -> None:
    labels = np.array(["cat", "dog"] * 50)
    first = errata.Evaluation(labels=labels, predictions=labels)
    second = errata.Evaluation(labels=labels, predictions=np.where(np.arange(100) < 5, "ant", labels))
    assert errata.compare(first, second)["overall"].broken == 5


def test_losses_are_compared_at_the_tolerance_of_the_first() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    losses = rng.exponential(size=2000)
    first = errata.Evaluation(losses=losses, representations={"x": x})
    second = errata.Evaluation(losses=losses + 2.0 * (x[:, 0] > 1))
    comparison = errata.compare(first, second)
    assert comparison.outcome.startswith("loss above")
    assert "worse" in judged(comparison, "found")


def test_labels_of_a_row_are_compared_one_at_a_time() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    labels = rng.integers(0, 2, (2000, 2))
    wrong = rng.random((2000, 2)) < 0.05
    second = wrong.copy()
    second[:, 1] |= x[:, 0] > 1
    first = errata.Evaluation(labels=labels, predictions=labels ^ wrong, representations={"x": x}, task="multilabel")
    after = errata.Evaluation(labels=labels, predictions=labels ^ second, task="multilabel")
    comparison = errata.compare(first, after)
    worse = {(change.task, change.kind) for change in comparison.changes if change.judgement == "worse"}
    assert {task for task, _ in worse} == {comparison.changes[1].task}
    assert {kind for _, kind in worse} == {"all", "found"}
