"""From an audit to a plan, and from another model to what it changed: as a user does it, and as one gets it wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import errata
from errata import Evaluation, Source
from errata.core import InputError, Prompt
from support.command import run

HARD = 0.7  # errors in the planted slice; elsewhere .08


def world(n: int, seed: int, hard: float = HARD, **more) -> Evaluation:
    """Two classes; class 1 is often wrong where the first column is large."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, 6)), rng.integers(2, size=n)
    wrong = rng.random(n) < np.where((X[:, 0] > 1) & (labels == 1), hard, 0.08)
    return Evaluation(
        labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"seen": X},
        sources={"seen": Source(from_model=False)}, ids=np.arange(n) + 10_000 * seed, **more,
    )  # fmt: skip


def again(rows: Evaluation, hard: float, seed: int = 9) -> Evaluation:
    """The same rows under another model, which nobody asked for representations."""
    X, labels = rows.representations["seen"], rows.labels
    wrong = np.random.default_rng(seed).random(len(rows)) < np.where((X[:, 0] > 1) & (labels == 1), hard, 0.08)
    return Evaluation(labels=labels, predictions=np.where(wrong, 1 - labels, labels), ids=rows.ids)


@pytest.fixture(scope="module")
def found() -> tuple[errata.Audit, Evaluation]:
    audited, apart = errata.hold_out(world(4000, 1), 0.3)
    return errata.audit(audited, methods=["directions"]), apart


def test_rows_kept_apart_are_in_every_class_and_in_neither_twice():
    rows = world(1000, 1)
    audited, apart = errata.hold_out(rows, 0.3)
    assert sorted([*audited.row_ids, *apart.row_ids]) == rows.row_ids.tolist()
    assert np.mean(apart.labels) == pytest.approx(np.mean(rows.labels), abs=0.01)
    assert len(apart) == pytest.approx(300, abs=2)


def test_groups_are_kept_apart_whole():
    audited, apart = errata.hold_out(world(1000, 1, groups=np.arange(1000) // 10), 0.3)
    assert not set(audited.groups) & set(apart.groups)


@pytest.mark.parametrize("share", [0, 1, -0.1, 2])
def test_a_share_is_one(share):
    with pytest.raises(InputError, match="`share` must be between 0 and 1"):
        errata.hold_out(world(100, 1), share)


def test_a_slice_leads_to_its_like_among_new_rows(found):
    audit, _ = found
    pool = world(3000, 2)
    planted = (pool.representations["seen"][:, 0] > 1) & (pool.labels == 1)
    plan = errata.plan_selection(audit, pool, 100)
    assert plan.slices == ("s1",)
    assert len(plan) == 100
    assert planted[plan.rows_of(pool)].mean() > 0.8  # 8% of all rows
    weights = errata.plan_weights(audit, pool, 3).weights_of(pool)
    assert set(weights) == {1, 3}
    assert (weights[planted] == 3).mean() > 0.9


def test_what_to_compare_a_selection_with(found):
    audit, _ = found
    pool = world(3000, 2)
    chance = errata.plan_selection(audit, pool, 100, by="random", seed=1)
    assert len(chance) == 100  # of the class of the slice
    assert chance.ids.tolist() != errata.plan_selection(audit, pool, 100, by="random", seed=2).ids.tolist()
    sure = np.where(pool.labels == pool.predictions, 0.9, 0.2)
    probs = np.where(np.eye(2, dtype=bool)[pool.labels], sure[:, None], 1 - sure[:, None])
    told = Evaluation(labels=pool.labels, probs=probs, ids=pool.ids)
    unsure = errata.plan_selection(audit, told, 50, by="confidence")
    assert (pool.labels != pool.predictions)[unsure.rows_of(pool)].all()
    with pytest.raises(InputError, match="unknown way to select `magic`"):
        errata.plan_selection(audit, pool, by="magic")  # type: ignore[arg-type]


def test_without_a_confirmed_slice_there_is_nothing_to_do():
    quiet = errata.audit(world(1000, 3, hard=0.08), methods=["directions"])
    assert not quiet.confirmed
    for plan in (errata.plan_weights(quiet, world(50, 4)), errata.plan_selection(quiet, world(50, 4))):
        assert not len(plan)
        assert "confirmed; name slices with `slices`" in plan.why
    with pytest.raises(InputError, match="the plan is empty: no slice"):
        errata.correct(quiet, plan, lambda plan: None, lambda model: world(50, 4), world(50, 4))


def test_an_easy_slice_needs_no_cure(found):
    audit, _ = found
    easy = replace(audit, slices=tuple(replace(one, side="easy") for one in audit.slices))
    assert not len(errata.plan_weights(easy, world(50, 4)))


def test_slices_are_named_by_a_list_of_known_ids(found):
    audit, _ = found
    with pytest.raises(InputError, match="unknown slice `s7`"):
        errata.plan_weights(audit, world(50, 4), slices=["s7"])
    with pytest.raises(InputError, match=r"got the text 's1'; write \['s1'\]"):
        errata.plan_weights(audit, world(50, 4), slices="s1")


def test_a_cure_is_seen_on_rows_kept_apart(found):
    audit, apart = found
    trained: list[errata.Plan] = []

    def train(plan: errata.Plan) -> float:
        trained.append(plan)
        return 0.08  # the cured model's error rate in the planted slice

    plan = errata.plan_selection(audit, world(3000, 2))
    cured, seen = errata.correct(audit, plan, train, lambda rate: again(apart, rate), apart)
    assert cured == 0.08
    assert trained == [plan]
    assert (seen["s1"].judgement, seen["rest"].judgement) == ("better", "no change shown")
    assert seen["s1"].n + seen["rest"].n == seen["overall"].n == len(apart)
    inside = errata.apply(audit, apart)["s1"] >= audit.slices[0].threshold
    after = again(apart, 0.08)
    assert seen["s1"].before_errors == apart.errors[inside].sum()
    assert seen["s1"].after_errors == after.errors[inside].sum()
    assert seen["s1"].fixed == (apart.errors & ~after.errors)[inside].sum()
    assert seen["s1"].interval[0] < -0.2 < seen["s1"].interval[1] < 0


def test_the_order_of_the_rows_does_not_matter(found):
    audit, apart = found
    after = again(apart, 0.08)
    shuffled = after.rows(np.random.default_rng(0).permutation(len(after)))
    assert errata.recheck(audit, apart, shuffled).to_json() == errata.recheck(audit, apart, after).to_json()


def test_no_change_is_seldom_called_one(found):
    """Two models that are wrong equally often: any judgement is a false one; 5% a side at most."""
    audit, apart = found
    seen = [errata.recheck(audit, again(apart, HARD, seed).with_representation("seen", apart.representations["seen"]),
            again(apart, HARD, seed + 1)) for seed in range(0, 80, 2)]  # fmt: skip
    false = sum(any(change.judgement != "no change shown" for change in one.changes) for one in seen)
    assert false <= 4


def test_a_model_that_got_worse_is_called_so(found):
    audit, apart = found
    assert errata.recheck(audit, apart, again(apart, 1.0)).changes[-1].judgement == "worse"


def test_rows_of_the_audit_prove_nothing(found):
    audit, _ = found
    rows = audit.evaluation
    with pytest.raises(InputError, match=r"at least \d+ rows of the audit are also in `before`; give rows"):
        errata.recheck(audit, rows, rows)
    with pytest.raises(InputError, match="are also in the pool"):
        errata.plan_selection(audit, rows)


def test_both_models_see_the_same_rows(found):
    audit, apart = found
    after = again(apart, 0.08)
    with pytest.raises(InputError, match="the same rows; 1 ids differ, such as"):
        errata.recheck(audit, apart, after.rows(np.arange(1, len(after))))
    flipped = Evaluation(labels=1 - after.labels, predictions=after.predictions, ids=after.ids)
    with pytest.raises(InputError, match="has different labels in `before` and `after`"):
        errata.recheck(audit, apart, flipped)


def test_losses_are_compared_at_the_tolerance_of_the_audit():
    rng = np.random.default_rng(0)

    def rows(seed: int, hard: float) -> Evaluation:
        X = np.random.default_rng(seed).normal(size=(3000, 4))
        losses = rng.exponential(np.where(X[:, 0] > 1, hard, 1.0))
        return Evaluation(losses=losses, representations={"seen": X}, ids=np.arange(3000) + seed * 10_000)

    audit = errata.audit(rows(1, 6.0), methods=["gmm"])
    assert audit.confirmed
    before, after = rows(2, 6.0), rows(2, 1.0)
    seen = errata.recheck(audit, before, after)
    limit = float(seen.outcome.rpartition(" ")[2])
    assert seen["overall"].before_errors == pytest.approx((before.losses > limit).sum(), abs=1)
    assert seen[audit.confirmed[0].id].judgement == "better"


def test_labels_of_a_row_are_compared_one_at_a_time():
    def rows(seed: int, rates: tuple[float, float]) -> Evaluation:
        rng = np.random.default_rng(seed)
        X, labels = rng.normal(size=(3000, 4)), rng.integers(2, size=(3000, 2))
        hard = (X[:, 0] > 0.8)[:, None] & (labels == 1)
        wrong = rng.random((3000, 2)) < np.where(hard, rates, 0.05)
        return Evaluation(
            labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"seen": X},
            sources={"seen": Source(from_model=False)}, ids=np.arange(3000) + 10_000 * seed, task="multilabel",
            class_names=("sick", "old"),
        )  # fmt: skip

    audit = errata.audit(rows(1, (0.6, 0.6)), methods=["directions"])
    assert {found.task for found in audit.confirmed} == {"sick", "old"}
    seen = errata.recheck(audit, rows(2, (0.6, 0.6)), rows(2, (0.05, 0.6)))
    judged = {change.task: change.judgement for change in seen.changes if change.id.startswith("s")}
    assert judged == {"sick": "better", "old": "no change shown"}


# --- plans as files, and the commands ------------------------------------------------------------------------


def write(rows: Evaluation, path: Path) -> Path:
    arrays = {"labels": rows.labels, "predictions": rows.predictions, "ids": rows.ids}
    arrays |= {f"embedding:{name}": array for name, array in rows.representations.items()}
    np.savez(path, **arrays)
    return path


@pytest.fixture(scope="module")
def folder(found, tmp_path_factory) -> Path:
    audit, apart = found
    home = tmp_path_factory.mktemp("mending")
    errata.save(audit, home / "audit")
    write(world(3000, 2), home / "pool.npz")
    write(apart, home / "before.npz")
    write(again(apart, 0.08), home / "after.npz")
    return home


@pytest.mark.parametrize(("kind", "rows"), [("weights", None), ("select", 30)])
def test_a_plan_is_a_table_that_anybody_can_read(folder, found, tmp_path, kind, rows):
    more = ["--per-class", 30] if kind == "select" else ["--factor", 4]
    done = run("plan", kind, folder / "audit", folder / "pool.npz", "-o", tmp_path / "plan.parquet", *more)
    assert done.code == 0, done.err
    table, plan = pd.read_parquet(tmp_path / "plan.parquet"), errata.store.load_plan(tmp_path / "plan.parquet")
    pool = world(3000, 2)
    direct = errata.plan_selection(found[0], pool, 30) if rows else errata.plan_weights(found[0], pool, 4)
    assert table["id"].tolist() == plan.ids.tolist() == direct.ids.tolist()
    assert table["weight"].tolist() == plan.weights.tolist() == direct.weights.tolist()
    assert plan.to_json() == direct.to_json()
    assert done.out.splitlines() == [plan.why, str(tmp_path / "plan.parquet")]


def test_pictures_to_draw_are_a_table_too(tmp_path):
    plan = errata.Plan("prompts", "draw", prompts=(Prompt("a red cat", 0, 3), Prompt("x", None, 1)))
    errata.store.save_plan(plan, tmp_path / "plan.parquet")
    assert errata.store.load_plan(tmp_path / "plan.parquet").prompts == plan.prompts


def test_an_empty_plan_can_be_saved(tmp_path):
    errata.store.save_plan(errata.Plan("weights", "nothing"), tmp_path / "plan.parquet")
    assert len(errata.store.load_plan(tmp_path / "plan.parquet")) == 0


def test_what_is_no_plan_is_refused(tmp_path):
    pd.DataFrame({"id": [1]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="is not a plan of this version"):
        errata.store.load_plan(tmp_path / "x.parquet")
    (tmp_path / "y.parquet").write_text("no table")
    with pytest.raises(InputError, match="cannot be read as a plan"):
        errata.store.load_plan(tmp_path / "y.parquet")


def test_the_command_says_what_another_model_changed(folder, found, tmp_path):
    done = run("recheck", folder / "audit", folder / "before.npz", folder / "after.npz", "-o", tmp_path / "seen.json")
    assert done.code == 0, done.err
    written = json.loads((tmp_path / "seen.json").read_text())
    audit, apart = found
    assert written == json.loads(json.dumps(errata.recheck(audit, apart, again(apart, 0.08)).to_json()))
    line = next(line for line in done.out.splitlines() if " s1 " in f" {line}")
    assert "better" in line
    assert f"{100 * written['changes'][2]['before_rate']:.1f}%" in line


def test_bad_words_are_one_sentence_and_write_nothing(folder, tmp_path):
    plan = tmp_path / "plan.parquet"
    for words, said in (
        (["plan", "select", folder / "audit", folder / "pool.npz", "-o", plan, "--by", "magic"], "unknown way"),
        (["plan", "weights", folder / "audit", folder / "pool.npz", "-o", plan, "--slice", "s9"], "unknown slice"),
        (
            ["plan", "weights", folder / "audit", folder / "pool.npz", "-o", tmp_path / "x.csv"],
            "must end in .parquet",
        ),
        (["plan", "prompts", folder / "audit", "-o", plan], "no slice has captions to generate images from"),
        (["recheck", folder / "audit", folder / "before.npz", folder / "pool.npz"], "measured on the same rows"),
    ):
        done = run(*words)
        assert done.code == 2
        assert said in done.err
        assert len(done.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
