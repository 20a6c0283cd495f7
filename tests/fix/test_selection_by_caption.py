"""Rows of a pool nearest to the hardest caption of a slice, in Python and by the command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import errata
from errata import Captions, Evaluation, Source
from errata.core import InputError
from errata.explain.captions import DirectionCaptions
from errata.fix.selection import by_both, by_caption
from support.command import run

D = 6
AXIS = np.eye(D)  # 0 cat, 1 dog, 2 snow, 3 grass
TEXTS = Captions(
    ["a cat", "a dog", "a dog in snow", "a dog on grass"],
    np.array([AXIS[0], AXIS[1], AXIS[1] + AXIS[2], AXIS[1] + AXIS[3]]),
    "clip",
    references=["a cat", "a dog"],
)


def world(n: int, seed: int, hard: float = 0.7) -> Evaluation:
    """Cats and dogs in snow or on grass; dogs in snow are mostly wrong."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    snow = rng.random(n) < 0.3
    X = 3 * AXIS[labels] + 3 * AXIS[np.where(snow, 2, 3)] + 0.7 * rng.normal(size=(n, D))
    wrong = rng.random(n) < np.where(snow & (labels == 1), hard, 0.05)
    return Evaluation(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        class_names=("cat", "dog"),
        representations={"clip": X},
        sources={"clip": Source(from_model=False)},
        ids=np.arange(n) + 10_000 * seed,
    )


@pytest.fixture(scope="module")
def audit() -> errata.Audit:
    found = errata.audit(world(2000, 1), methods=["directions"], texts=TEXTS)
    assert [slice_.rule["scope"]["label"] for slice_ in found.confirmed] == [1]
    return found


def cosines_to_snow(pool: Evaluation) -> np.ndarray:
    X = pool.representations["clip"]
    return X @ (AXIS[1] + AXIS[2]) / np.linalg.norm(X, axis=1) / 2**0.5


def test_the_rows_of_its_class_nearest_to_the_caption_are_taken(audit):
    pool = world(1000, 2)
    plan = errata.plan_selection(audit, pool, 50, by="caption", texts=TEXTS)
    dogs = np.flatnonzero(pool.labels == 1)
    nearest = dogs[np.argsort(-cosines_to_snow(pool)[dogs])[:50]]
    assert plan.rows_of(pool).tolist() == nearest.tolist()
    assert plan.ids.tolist() != errata.plan_selection(audit, pool, 50).ids.tolist()
    (target,) = audit.confirmed
    assert plan.slices == (target.id,)
    assert plan.facts == {"by": "caption", "captions": {target.id: "a dog in snow"}, "per_class": 50}
    assert plan.why == (
        f"add 50 of 1,000 rows of the pool, at most 50 a class, nearest to “a dog in snow” ({target.id})"
    )


def test_the_hardest_caption_is_that_of_the_lowest_score_wherever_the_page_has_it(audit):
    (target,) = audit.confirmed
    told = target.explanation(DirectionCaptions)
    second = replace(told.hard[0], text="a dog", score=told.hard[0].score / 2)
    captions = replace(told, hard=(second, *told.hard))
    turned = replace(audit, slices=(replace(target, explanations=(captions,)),))
    plan = errata.plan_selection(turned, world(500, 2), by="caption", texts=TEXTS)
    assert plan.facts["captions"] == {target.id: "a dog in snow"}


def test_two_slices_of_a_class_share_its_rows_by_the_nearer_of_their_captions(audit):
    (target,) = audit.confirmed
    told = target.explanation(DirectionCaptions)
    grass = replace(told.hard[0], text="a dog on grass")
    second = replace(target, id="s9", explanations=(replace(told, hard=(grass,)),))
    long = Captions(TEXTS.texts, TEXTS.embeddings * np.array([[1], [1], [1], [5]]), "clip")  # a length says nothing
    pool = world(200, 2)
    X = pool.representations["clip"]
    to_grass = X @ (AXIS[1] + AXIS[3]) / np.linalg.norm(X, axis=1) / 2**0.5
    expected = np.where(pool.labels == 1, np.maximum(cosines_to_snow(pool), to_grass), -np.inf)
    np.testing.assert_allclose(by_caption(pool, [target, second], long), expected, atol=1e-6)


def test_slices_without_captions_are_named(audit):
    (target,) = audit.confirmed
    bare = replace(target, id="s9", explanations=())
    both = replace(audit, slices=(target, bare))
    plan = errata.plan_selection(both, world(500, 2), by="caption", texts=TEXTS)
    assert plan.slices == (target.id,)
    assert plan.why.endswith("; without captions: s9")


def test_what_a_selection_by_caption_lacks_is_one_sentence(audit):
    pool = world(500, 2)
    (target,) = audit.confirmed
    bare = replace(audit, slices=(replace(target, explanations=()),))
    told = replace(target.explanation(DirectionCaptions), hard=())
    easy = replace(audit, slices=(replace(target, explanations=(told,)),))
    other = Captions(TEXTS.texts, TEXTS.embeddings, "clap")
    fewer = Captions(["a cat", "a dog"], TEXTS.embeddings[:2], "clip")
    narrow = Captions(TEXTS.texts, TEXTS.embeddings[:, :3], "clip")
    elsewhere = pool.with_representation("clap", pool.representations["clip"], Source(from_model=False))
    for given, rows, more, sentence in (
        (audit, pool, {"by": "caption"}, "selection by caption needs `texts`, since an audit stores captions without"),
        (audit, pool, {"texts": TEXTS}, "`texts` are read by by='caption' and by='both' alone; got by='slices'"),
        (audit, pool, {"by": "both"}, "selection by both needs `texts`, since an audit stores captions without"),
        (easy, pool, {"by": "caption", "texts": TEXTS}, "no caption lies on the hard side of s1; select by='slices'"),
        (bare, pool, {"by": "caption", "texts": TEXTS}, "no slice has captions to select by; audit with `texts`"),
        (audit, pool, {"by": "caption", "texts": fewer}, "caption “a dog in snow” of slice s1 is not among `texts`"),
        (audit, pool, {"by": "caption", "texts": narrow}, "the texts have 3 columns where `embedding:clip` has 6"),
        (audit, elsewhere, {"by": "caption", "texts": other}, "captions of slice s1 lie in `clip` and `texts`"),
    ):
        with pytest.raises(InputError, match=sentence):
            errata.plan_selection(given, rows, **more)


def test_both_adds_the_standardised_depth_and_nearness_of_a_class(audit):
    pool = world(1000, 2)
    plan = errata.plan_selection(audit, pool, 50, by="both", texts=TEXTS)
    (target,) = audit.confirmed
    dogs = np.flatnonzero(pool.labels == 1)
    order = np.zeros(len(dogs))
    for values in (errata.apply(audit, pool)[target.id][dogs], cosines_to_snow(pool)[dogs]):
        order += (values - values.mean()) / values.std()
    assert plan.rows_of(pool).tolist() == dogs[np.argsort(-order, kind="stable")[:50]].tolist()
    for by in ("slices", "caption"):
        texts = TEXTS if by == "caption" else None
        assert set(plan.ids.tolist()) != set(errata.plan_selection(audit, pool, 50, by=by, texts=texts).ids.tolist())
    assert plan.facts == {"by": "both", "captions": {target.id: "a dog in snow"}, "per_class": 50}
    assert plan.why.endswith(f"at most 50 a class, deepest in {target.id} and nearest to “a dog in snow” ({target.id})")


def test_each_class_is_standardised_by_itself():
    nearness = np.array([1.0, 2.0, 3.0, 101.0, 102.0, -np.inf])
    depth = np.array([3.0, 2.0, 2.5, 7.0, 7.0, 9.0])
    order = by_both(nearness, depth, np.array([0, 0, 0, 1, 1, 1]))
    spread = np.array([0.5, -0.5, 0.0]) / np.std([3, 2, 2.5])
    np.testing.assert_allclose(order[:3], np.array([-1, 0, 1]) / np.std([1, 2, 3]) + spread)
    np.testing.assert_allclose(order[3:], [-1, 1, -np.inf])


def test_a_caption_whose_rows_were_measured_as_easy_is_said_to_be(audit):
    (target,) = audit.confirmed
    told = target.explanation(DirectionCaptions)
    hardest = told.hard[0]
    matches = replace(hardest.matches, interval=(0.02, told.class_rate.outcome.error_rate))
    turned = replace(told, hard=(replace(hardest, matches=matches),))
    easy = replace(audit, slices=(replace(target, explanations=(turned,)),))
    plan = errata.plan_selection(easy, world(500, 2), by="caption", texts=TEXTS)
    measured = hardest.matches.match.outcome
    class_rate = told.class_rate.outcome.error_rate
    assert plan.why.endswith(
        "; held-out rows near “a dog in snow” were not seen to fail more often than their class: "
        f"{measured.error_rate:.2f} (0.02 to {class_rate:.2f}, n = {measured.n}) beside {class_rate:.2f}"
    )


def test_the_command_takes_the_texts_of_the_audit(audit, tmp_path: Path):
    pool = world(1000, 2)
    errata.save(audit, tmp_path / "audit")
    np.savez(
        tmp_path / "pool.npz",
        labels=pool.labels,
        predictions=pool.predictions,
        ids=pool.ids,
        **{"embedding:clip": pool.representations["clip"]},
    )
    np.savez(tmp_path / "texts.npz", texts=np.array(TEXTS.texts), **{"embedding:clip": TEXTS.embeddings})
    words = ["plan", "select", tmp_path / "audit", tmp_path / "pool.npz", "-o", tmp_path / "plan.parquet"]
    done = run(*words, "--by", "caption", "--texts", tmp_path / "texts.npz", "--per-class", 50)
    assert done.code == 0, done.err
    plan = errata.store.load_plan(tmp_path / "plan.parquet")
    direct = errata.plan_selection(audit, pool, 50, by="caption", texts=TEXTS)
    assert plan.ids.tolist() == direct.ids.tolist()
    assert plan.to_json() == direct.to_json()
    (tmp_path / "plan.parquet").unlink()
    both = run(*words, "--by", "both", "--texts", tmp_path / "texts.npz", "--per-class", 50)
    assert both.code == 0, both.err
    plan = errata.store.load_plan(tmp_path / "plan.parquet")
    assert plan.ids.tolist() == errata.plan_selection(audit, pool, 50, by="both", texts=TEXTS).ids.tolist()
    (tmp_path / "plan.parquet").unlink()
    refused = run(*words, "--by", "caption")
    assert refused.code == 2
    assert "needs `texts`" in refused.err


def test_texts_that_are_a_path_are_refused(audit):
    with pytest.raises(InputError, match=r"`texts` must be errata\.Captions; got 'x\.npz'; read a file with"):
        errata.plan_selection(audit, world(500, 2), by="caption", texts="x.npz")
    with pytest.raises(InputError, match=r"`texts` must be errata\.Captions; got 'x\.npz'; read a file with"):
        errata.audit(world(500, 2), methods=["directions"], texts="x.npz")
