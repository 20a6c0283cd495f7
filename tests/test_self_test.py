"""The search tested on the audit's own rows: planted groups, outcomes without a pattern, and what is said of both."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import errata
from errata import Audit, Evaluation, Settings, Source
from errata.bench.null_worlds import world
from errata.core import Array
from errata.core.gaps import wilson
from errata.core.null_outcomes import permute_outcomes
from errata.core.split import discover_mask
from errata.report import to_html
from errata.slicers import SLICERS, make
from errata.slicers.contract import BaseSlicer
from errata.workflow import self_test
from errata.workflow.self_test import RepeatedSearch, count_repeats, run_null, run_self_test
from support.command import run as run_command

N = 1000


class Nothing(BaseSlicer):
    """A search that finds nothing."""

    name = "nothing"
    needs = frozenset({"representations"})
    presets: ClassVar[dict[str, Any]] = {"recommended": {}, "as_published": {}}

    def __init__(self, representation: str | None = None, seed: int = 0):
        self.representation = representation
        self.seed = seed

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self.rules_ = ()

    def membership(self, evaluation: Evaluation) -> Array:
        return np.empty((len(evaluation), 0))


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two repeats and three runs are enough to see that they happen; by default, as a user has it."""
    monkeypatch.setattr(self_test, "MOST_ROWS", 50_000)
    monkeypatch.setattr(self_test, "MOST_REPEATS", 2)
    monkeypatch.setattr(self_test, "FEWEST_REPEATS", 2)
    monkeypatch.setattr(self_test, "NULL_RUNS", 3)


@pytest.fixture
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SLICERS, "nothing", Nothing)


def search_of(evaluation: Evaluation, method: str = "gmm", **options: Any) -> RepeatedSearch:
    slicers = {method: make(method, seed=0, options=options)}
    return RepeatedSearch(evaluation, discover_mask(evaluation), slicers, Settings()).by_id()


def easy(n: int = N) -> Evaluation:
    """Twenty groups far apart and few errors: a planted group is easy to find for a mixture of twenty."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 20
    X = 20 * rng.normal(size=(20, 4))[group] + rng.normal(size=(n, 4))
    labels = rng.integers(0, 2, n)
    wrong = rng.random(n) < 0.03
    return Evaluation(labels=labels, predictions=labels ^ wrong, representations={"x": X})


def test_a_search_that_finds_nothing_is_told_so(no_search: None) -> None:
    audit = errata.audit(easy(), methods=["nothing"], self_test=True)
    assert audit.self_test is not None
    assert [cell.found for cell in audit.self_test.cells] == [0] * 6
    assert {cell.trials for cell in audit.self_test.cells} == {2}
    assert audit.self_test.cells[0].held is None
    assert audit.self_test.cells[0].interval == pytest.approx(wilson(0, 2))
    assert "with 40 points more errors, groups of 5% of the rows were found in 0 of 2" in audit.silence
    assert "nothing was confirmed in 3 of 3 runs" in audit.silence


def test_a_search_that_finds_groups_is_told_so() -> None:
    search = search_of(easy(4000), components=20)
    found = run_self_test(search, repeats=4)
    assert found is not None
    cells = {(cell.share, cell.gap): cell for cell in found.cells}
    assert cells[0.05, 0.4].found == 4
    assert cells[0.05, 0.4].held > 0.8
    assert cells[0.05, 0.4].rows == 200
    assert cells[0.01, 0.2].found < 4


def test_the_groups_of_one_run_are_disjoint_and_as_large_as_asked() -> None:
    search = search_of(replace(world("calibrated", N, 0), metadata={}))
    rows, groups = self_test._plant_groups(search, 0.4, 0, np.random.default_rng(0))
    assert [int(group.inside.sum()) for group in groups] == [50, 20, 10]
    assert sum(group.inside.astype(int) for group in groups).max() == 1
    plain = permute_outcomes(search.evaluation, np.random.default_rng(0))
    anywhere = np.any([group.inside for group in groups], axis=0)
    np.testing.assert_array_equal(rows.labels[~anywhere], plain.labels[~anywhere])
    assert rows.errors[anywhere].mean() > plain.errors[anywhere].mean() + 0.2


def test_regions_and_rules_by_turns() -> None:
    rng = np.random.default_rng(0)
    columns = {"age": rng.normal(size=N), "site": np.array(["a", "b"])[rng.integers(0, 2, N)]}
    both = run_self_test(search_of(replace(easy(), metadata=columns)), repeats=2)
    assert both is not None
    assert {cell.kind for cell in both.cells} == {"region", "rule"}
    assert sum(cell.trials for cell in both.cells) == 12


def test_the_null_run_is_silent_where_there_is_a_group_to_find() -> None:
    """The real rows have a corner of errors; without a pattern it is gone, and no search rate reaches it."""
    rng = np.random.default_rng(1)
    corner = np.arange(N) % 8 == 0
    X = np.where(corner[:, None], 6, 0) + rng.normal(size=(N, 3))
    labels = rng.integers(0, 2, N)
    wrong = rng.random(N) < np.where(corner, 0.8, 0.05)
    audit = errata.audit(
        Evaluation(labels=labels, predictions=labels ^ wrong, representations={"x": X}), methods=["gmm"], self_test=True
    )
    assert audit.confirmed
    assert audit.null_run is not None
    assert (audit.null_run.confirmed, audit.null_run.reached) == (0, 0)
    assert audit.null_run.worst_rate == max(slice_.discover.rate for slice_ in audit.slices)


def test_the_null_run_takes_some_rows_and_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "NULL_ROWS", 300)
    evaluation = replace(easy(), groups=np.arange(N) // 5)
    some = self_test._some_rows(evaluation)
    assert some is not None
    assert len(some) == 300
    np.testing.assert_array_equal(np.bincount(evaluation.groups[some])[np.unique(evaluation.groups[some])], 5)
    assert run_null(search_of(evaluation), ()).rows == 300


def test_rows_in_any_order_give_the_same_answer() -> None:
    rows = replace(easy(), ids=np.array([f"r{i}" for i in range(N)]))
    shuffled = rows.rows(np.random.default_rng(3).permutation(N))
    first, second = (errata.audit(some, methods=["gmm"], self_test=True) for some in (rows, shuffled))
    assert first.self_test == second.self_test
    assert first.null_run == second.null_run


@pytest.mark.parametrize(("asked", "n", "run"), [(None, N, True), (None, 2 * N, False), (True, 2 * N, True)])
def test_it_is_run_up_to_so_many_rows_or_where_asked_for(
    monkeypatch: pytest.MonkeyPatch, no_search: None, asked: bool | None, n: int, run: bool
) -> None:
    monkeypatch.setattr(self_test, "MOST_ROWS", N)
    audit = errata.audit(easy(n), methods=["nothing"], self_test=asked)
    assert (audit.self_test is not None) == run
    assert (audit.null_run is not None) == run
    assert ("The search was not tested on these rows" in audit.silence) != run
    assert ("errata audit --self-test" in audit.silence) != run


def test_a_search_that_is_not_tested_is_told_so(no_search: None) -> None:
    audit = errata.audit(easy(), methods=["nothing"])
    assert (audit.self_test, audit.null_run) == (None, None)
    assert "a group that the test would confirm may not have been found" in audit.silence


def test_a_representation_made_with_the_labels_is_not_tested(no_search: None) -> None:
    rows = replace(easy(), sources={"x": Source(reads=frozenset({"label"}))})
    audit = errata.audit(rows, methods=["nothing"], self_test=True)
    assert audit.self_test is None
    assert "was made with the labels" in audit.silence


def test_no_group_can_be_planted_where_nothing_can_be_wrong() -> None:
    rows = Evaluation(
        labels=np.zeros(N, int), predictions=np.zeros(N, int), representations={"x": easy().representations["x"]}
    )
    audit = errata.audit(rows, methods=["gmm"], self_test=True)
    assert audit.self_test is None
    assert "No group could be planted" in audit.silence


def test_influence_is_made_again_for_other_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(self_test, "add_influence", lambda rows, train, *_: seen.append(rows) or (rows, train))
    monkeypatch.setattr(self_test, "find_slices", lambda *given, **more: type("Found", (), {"slices": ()}))
    run_self_test(search_of(easy(), representation="influence"), repeats=1)
    assert len(seen) == 2
    assert not np.array_equal(seen[0].labels, easy().labels)


@pytest.mark.parametrize("task", ["loss", "regression", "multilabel"])
def test_other_tasks_are_tested_too(task: str) -> None:
    rng = np.random.default_rng(0)
    X = easy().representations["x"]
    noise = rng.normal(size=N)
    arrays: dict[str, Any] = {
        "loss": {"losses": np.square(noise)},
        "regression": {"labels": X[:, 0] + noise, "predictions": X[:, 0]},
        "multilabel": {"labels": (rng.random((N, 2)) < 0.3).astype(int), "probs": 0.6 * rng.random((N, 2))},
    }[task]
    audit = errata.audit(Evaluation(**arrays, representations={"x": X}), methods=["gmm"], self_test=True)
    assert audit.self_test is not None
    assert audit.null_run is not None
    words = "errors" if task == "multilabel" else "losses above the tolerance"
    assert f"with 40 points more {words}" in audit.silence
    assert (audit.self_test.outcome, audit.null_run.outcome) == (words, words)


def test_what_is_bad_does_not_move_with_what_is_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    own = self_test.find_slices
    monkeypatch.setattr(self_test, "find_slices", lambda *given, **more: seen.append(given[3]) or own(*given, **more))
    rows = Evaluation(losses=np.random.default_rng(0).random(N), representations={"x": easy().representations["x"]})
    audit = errata.audit(rows, methods=["gmm"], self_test=True)
    tolerance = float(audit.overall[0][1].outcome.removeprefix("loss above "))
    assert {round(settings.tolerance, 4) for settings in seen} == {tolerance}


def test_repeats_follow_from_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    counts = {n: count_repeats(Evaluation(losses=np.ones(n))) for n in (1000, 25_000, 50_000, 1_000_000)}
    assert counts == {1000: 10, 25_000: 10, 50_000: 5, 1_000_000: 3}
    assert count_repeats(Evaluation(losses=np.ones(10_000)), methods=4) == 6
    assert count_repeats(Evaluation(labels=np.ones((10_000, 5), int), probs=np.full((10_000, 5), 0.6))) == 5


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    audit = errata.audit(easy(), methods=["gmm"], self_test=True)
    folder = errata.save(audit, tmp_path / "audit")
    loaded: Audit = errata.load(folder)
    assert loaded.self_test == audit.self_test
    assert loaded.null_run == audit.null_run
    facts = json.loads((folder / "audit.json").read_text())
    assert facts["self_test"]["cells"][0]["interval"] == list(audit.self_test.cells[0].interval)
    del facts["self_test"]  # as 0.3 wrote it
    facts["null"] = None
    (folder / "audit.json").write_text(json.dumps(facts))
    (folder / "checksums.json").unlink()
    assert (errata.load(folder).self_test, errata.load(folder).null_run) == (None, None)


def test_the_command_writes_it_unless_told_not_to(tmp_path: Path) -> None:
    rows = easy()
    np.savez(tmp_path / "x.npz", labels=rows.labels, predictions=rows.predictions, embedding=rows.representations["x"])
    words = ("audit", tmp_path / "x.npz", "--method", "gmm", "--no-map", "-o")
    done = run_command(*words, tmp_path / "one" / "audit")
    assert (done.code, done.err) == (0, "")
    assert "The search, tested by groups planted in these rows" in " ".join(done.out.split())
    assert run_command(*words, tmp_path / "two" / "audit").code == 0
    first, second = ((tmp_path / name / "audit" / "audit.json").read_bytes() for name in ("one", "two"))
    assert first == second
    assert json.loads(first)["null"]["runs"] == 3
    assert run_command(*words, tmp_path / "three" / "audit", "--no-self-test").code == 0
    assert json.loads((tmp_path / "three" / "audit" / "audit.json").read_text())["self_test"] is None


def test_slices_of_ones_own_are_no_search() -> None:
    mask = np.arange(N) % 20 == 0
    audit = errata.audit(easy(), methods=[], slices={"mine": mask}, self_test=True)
    assert (audit.self_test, audit.null_run) == (None, None)
    assert "all slices are your own" in audit.silence
    both = errata.audit(easy(), methods=["gmm"], slices={"mine": mask}, self_test=True)
    alone = errata.audit(easy(), methods=["gmm"], self_test=True)
    assert both.self_test == alone.self_test


def test_the_page_has_a_table_of_what_was_planted() -> None:
    audit = errata.audit(easy(), methods=["gmm"], self_test=True)
    html = to_html(audit)
    for cell in audit.self_test.cells:
        low, high = cell.interval
        assert f"{100 * low:.0f}% to {100 * high:.0f}%" in html
    assert html.count('<tr><th scope="row">5%, 50 rows</th>') == 2
    for line in audit.silence.splitlines():
        assert line in html
    assert "Table of planted groups" not in to_html(replace(audit, self_test=None))
