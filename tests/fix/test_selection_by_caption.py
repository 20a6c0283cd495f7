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
from errata.fix.selection import by_caption
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
    other = Captions(TEXTS.texts, TEXTS.embeddings, "clap")
    fewer = Captions(["a cat", "a dog"], TEXTS.embeddings[:2], "clip")
    narrow = Captions(TEXTS.texts, TEXTS.embeddings[:, :3], "clip")
    elsewhere = pool.with_representation("clap", pool.representations["clip"], Source(from_model=False))
    for given, rows, more, sentence in (
        (audit, pool, {"by": "caption"}, "selection by caption needs `texts`, since an audit stores captions without"),
        (audit, pool, {"texts": TEXTS}, "`texts` are read by by='caption' alone; got by='slices'"),
        (bare, pool, {"by": "caption", "texts": TEXTS}, "no slice has captions to select by; audit with `texts`"),
        (audit, pool, {"by": "caption", "texts": fewer}, "caption “a dog in snow” of slice s1 is not among `texts`"),
        (audit, pool, {"by": "caption", "texts": narrow}, "the texts have 3 columns where `embedding:clip` has 6"),
        (audit, elsewhere, {"by": "caption", "texts": other}, "captions of slice s1 lie in `clip` and `texts`"),
    ):
        with pytest.raises(InputError, match=sentence):
            errata.plan_selection(given, rows, **more)


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
    refused = run(*words, "--by", "caption")
    assert refused.code == 2
    assert "needs `texts`" in refused.err


def test_texts_that_are_a_path_are_refused(audit):
    with pytest.raises(InputError, match=r"`texts` must be errata\.Captions; got 'x\.npz'; read a file with"):
        errata.plan_selection(audit, world(500, 2), by="caption", texts="x.npz")
    with pytest.raises(InputError, match=r"`texts` must be errata\.Captions; got 'x\.npz'; read a file with"):
        errata.audit(world(500, 2), methods=["directions"], texts="x.npz")
