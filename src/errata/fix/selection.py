"""The plan `select`: rows of a pool to add to the training rows, the hardest of each class first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from ..core import Array, Audit, Captions, Evaluation, InputError, Plan, Slice
from ..core.blocks import unit
from ..core.captions import check_captions
from ..core.errors import unknown
from ..core.scope import rows_in_scope
from ..explain.captions import DirectionCaptions
from ..explain.descriptions import unit_products
from .targets import no_targets, place_targets, refuse_audited, target_slices

By = Literal["slices", "caption", "confidence", "random"]


def plan_selection(
    audit: Audit,
    pool: Evaluation,
    per_class: int = 100,
    *,
    slices: Sequence[str] | None = None,
    by: By = "slices",
    texts: Captions | None = None,
    seed: int = 0,
) -> Plan:
    """Select the rows of a pool that lie deepest in a slice, or nearest to its hardest caption.

    Parameters
    ----------
    audit : Audit
        The audit whose slices are to be fixed.
    pool : Evaluation
        Rows that could be added to the training rows, with the representations that the slices read.
    per_class : int
        Rows of each class to add, at most.
    slices : list of str, optional
        Slices to fix: ids, "accepted", "confirmed" or "all". Default: those that people accepted where there are any
        (`load(..., judged=True)`), else the confirmed ones.
    by : {"slices", "caption", "confidence", "random"}
        How rows are ranked: "slices", by weight over threshold; "caption", by the cosine to the hardest caption of a
        slice of their class. "confidence" (least confident of the label first) and "random" are baselines that ignore
        the slices.
    texts : Captions, optional
        The texts that the audit was made with, which "caption" needs: an audit stores captions without embeddings.
    seed : int
        Seed of "random".

    Returns
    -------
    Plan
        Ids of the rows to add; `plan.rows_of(pool)` gives their positions.

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> def rows(first_id, n=1000):
    ...     rng = np.random.default_rng(first_id)
    ...     x = rng.normal(size=(n, 2))
    ...     labels = rng.integers(0, 2, n)
    ...     wrong = rng.random(n) < np.where(x[:, 0] > 1, 0.8, 0.05)
    ...     predictions = np.where(wrong, 1 - labels, labels)
    ...     ids = np.arange(n) + first_id
    ...     return errata.Evaluation(labels=labels, predictions=predictions, representations={"x": x}, ids=ids)
    >>> audit = errata.audit(rows(0), methods=["gmm"])
    >>> pool = rows(5000)
    >>> plan = errata.plan_selection(audit, pool, per_class=10)
    >>> bool(pool.representations["x"][plan.rows_of(pool), 0].min() > 0.5)
    True
    """
    check_count(per_class)  # also where nothing is to be selected
    check_way(by, texts)
    if by == "confidence":
        return select(pool, by_confidence(pool), per_class, facts={"by": by})
    if by == "random":
        return select(pool, by_chance(pool, seed), per_class, facts={"by": by, "seed": seed})
    targets = target_slices(audit, slices)
    if not targets:
        return Plan("select", no_targets(audit))
    refuse_audited(audit, pool, "in the pool")
    if texts is not None:
        return select_by_caption(targets, pool, texts, per_class)
    weights = place_targets(audit, targets, pool)
    depth = np.max([weights[slice_.id] / slice_.threshold for slice_ in targets], axis=0)
    ids = tuple(slice_.id for slice_ in targets)
    return select(pool, depth, per_class, least=0.0, slices=ids, facts={"by": by})


def check_count(per_class: int) -> None:
    """Raise for what is no number of rows."""
    if per_class < 1:
        raise InputError(f"`per_class` must be at least 1; got {per_class}")


def check_way(by: str, texts: Captions | None) -> None:
    """Raise for an unknown way to rank rows, and where it lacks texts or has no use for them."""
    if by not in get_args(By):
        raise unknown("way to select", by, get_args(By))
    if by == "caption" and texts is None:
        raise InputError(
            "selection by caption needs `texts`, since an audit stores captions without embeddings; give the texts "
            "that it was made with"
        )
    if texts is not None:
        check_captions(texts)
    if by != "caption" and texts is not None:
        raise InputError(f"`texts` are read by by='caption' alone; got by={by!r}; leave one of them out")


def select_by_caption(slices: Sequence[Slice], pool: Evaluation, texts: Captions, per_class: int) -> Plan:
    """Select the rows nearest to the hardest captions of slices; those without one are named in the plan's sentence."""
    captions = {slice_.id: caption for slice_ in slices if (caption := hardest_caption(slice_)) is not None}
    if not captions:
        raise InputError("no slice has captions to select by; audit with `texts` and method `directions`")
    captioned = [slice_ for slice_ in slices if slice_.id in captions]
    facts = {"by": "caption", "captions": captions}
    plan = select(pool, by_caption(pool, captioned, texts), per_class, slices=tuple(captions), facts=facts)
    why = f"{plan.why}, nearest to " + ", ".join(f"“{text}” ({id})" for id, text in captions.items())
    without = [slice_.id for slice_ in slices if slice_.id not in captions]
    if without:
        why += f"; without captions: {', '.join(without)}"
    return replace(plan, why=why)


def hardest_caption(slice_: Slice) -> str | None:
    """Return the hard caption of the lowest score; None where a slice has none.

    The page has captions in the order of their measured error. The study of selection took the lowest score.
    """
    captions = slice_.explanation(DirectionCaptions)
    if captions is None or not captions.hard:
        return None
    return min(captions.hard, key=lambda row: row.score).text


def by_caption(rows: Evaluation, slices: Sequence[Slice], texts: Captions) -> Array:
    """Rank rows by the largest cosine to the hardest caption of a slice of their class.

    Every slice has captions. Returns (n,) numbers, larger for rows to take earlier; -inf for rows of other classes.
    """
    texts.check_space(rows)
    tasks = dict(rows.tasks())
    nearness = np.full(len(rows), -np.inf)
    for slice_ in slices:
        own = rows_in_scope(tasks.get(slice_.task, rows), slice_.rule["scope"])
        embedding = _caption_embedding(slice_, texts)
        cosines = unit_products(rows.representations[texts.representation], unit(embedding[None]))[:, 0]
        nearness[own] = np.maximum(nearness[own], cosines[own])
    return nearness


def _caption_embedding(slice_: Slice, texts: Captions) -> Array:
    """(d,) of a slice's hardest caption."""
    caption = hardest_caption(slice_)
    if slice_.rule["representation"] != texts.representation:
        raise InputError(
            f"captions of slice {slice_.id} lie in `{slice_.rule['representation']}` and `texts` in "
            f"`{texts.representation}`; give the texts that the audit was made with"
        )
    if caption not in texts.texts:
        raise InputError(
            f"caption “{caption}” of slice {slice_.id} is not among `texts`; give the texts that the audit was made "
            "with"
        )
    embedding: Array = texts.embeddings[list(texts.texts).index(caption)]
    return embedding


def select(
    pool: Evaluation,
    hardness: Array,
    per_class: int,
    *,
    least: float = -np.inf,
    slices: tuple[str, ...] = (),
    facts: Mapping[str, Any] | None = None,
) -> Plan:
    """Select the `per_class` rows of each class with the largest hardness; ties are broken by id.

    Classes are labels, or predictions where the pool has no labels; without either, all rows are one class.

    Parameters
    ----------
    pool : Evaluation
        The rows to select from.
    hardness : array of shape (n,)
        Larger for rows to take earlier.
    per_class : int
        Rows of each class, at most.
    least : float
        Rows with this hardness or less are never taken.
    slices : tuple of str
        Ids of the slices that the plan is for.
    facts : mapping, optional
        Further facts that the plan records.
    """
    check_count(per_class)
    classes = pool.labels
    if classes is None:
        classes = pool.predictions
    if classes is None or classes.ndim != 1 or classes.dtype.kind == "f":
        classes = np.zeros(len(pool), dtype=np.int64)
    order = np.lexsort((pool.row_ids, -hardness))
    order = order[hardness[order] > least]
    rows = np.concatenate([order[classes[order] == value][:per_class] for value in np.unique(classes)])
    ids = pool.row_ids[rows]
    why = f"add {len(ids):,} of {len(pool):,} rows of the pool, at most {per_class:,} a class"
    facts = {"per_class": per_class, **(facts or {})}
    return Plan("select", why, ids, np.ones(len(ids)), slices=slices, facts=facts)


def by_confidence(rows: Evaluation) -> Array:
    """Rank rows by how unsure the model is of the label; without labels, of its own prediction.

    A model trained with generalised cross-entropy (learning from failure) or stopped early (just train twice) is
    ranked by its own confidence: give its evaluation. Returns (n,) numbers, larger for rows to take earlier.
    """
    rows.need(frozenset({"probs"}), "a ranking by confidence")
    assert rows.probs is not None
    if rows.labels is None:
        confidence = rows.probs.max(axis=1)
    else:
        confidence = rows.probs[np.arange(len(rows)), rows.labels]
    doubt: Array = 1 - confidence.astype(np.float64)
    return doubt


def by_chance(rows: Evaluation, seed: int = 0) -> Array:
    """Rank rows at random. By id, so that the order of the rows does not matter. Returns (n,) numbers."""
    order = np.argsort(rows.row_ids, kind="stable")
    ranks = np.empty(len(rows))
    ranks[order] = np.random.default_rng(seed).random(len(rows))
    return ranks
