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
from ..explain.captions import CaptionRow, DirectionCaptions
from ..explain.descriptions import unit_products
from .targets import check_whole, no_caption, no_targets, place_targets, refuse_audited, target_slices

By = Literal["slices", "caption", "both", "confidence", "random"]
BY_CAPTION = ("caption", "both")
BASELINES = ("confidence", "random")
NO_SPREAD = 1e-12  # of a ranking within a class: all its rows are equally hard


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
    by : {"slices", "caption", "both", "confidence", "random"}
        How rows are ranked: "slices", by weight over threshold; "caption", by the cosine to the hardest caption of a
        slice of their class; "both", by the mean of these two, each standardised within a class; and two baselines,
        "confidence", the least sure of the label first, and "random". A baseline reads of the slices only which rows
        they are within (their class), so that it adds rows of the same classes; without a slice to fix it takes all.
    texts : Captions, optional
        The texts that the audit was made with, which "caption" and "both" need: an audit stores captions without
        embeddings.
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
    check_whole("per_class", per_class, least=1)  # also where nothing is to be selected
    check_whole("seed", seed, least=0)
    check_way(by, texts)
    targets = target_slices(audit, slices)
    refuse_audited(audit, pool, "in the pool")
    if by in BASELINES:
        return select_baseline(targets, pool, by, per_class, seed)
    if not targets:
        return Plan("select", no_targets(audit))
    if texts is not None:
        return select_by_caption(audit, targets, pool, texts, per_class, by)
    depth = by_depth(audit, targets, pool)
    return select(pool, depth, per_class, least=0.0, slices=ids_of(targets), facts={"by": by})


def ids_of(slices: Sequence[Slice]) -> tuple[str, ...]:
    """Return the ids of slices."""
    return tuple(slice_.id for slice_ in slices)


def check_way(by: str, texts: Captions | None) -> None:
    """Raise for an unknown way to rank rows, and where it lacks texts or has no use for them."""
    if by not in get_args(By):
        raise unknown("way to select", by, get_args(By))
    if by in BY_CAPTION and texts is None:
        raise InputError(
            f"selection by {by} needs `texts`, since an audit stores captions without embeddings; give the texts "
            "that it was made with"
        )
    if texts is not None:
        check_captions(texts)
    if by not in BY_CAPTION and texts is not None:
        raise InputError(f"`texts` are read by by='caption' and by='both' alone; got by={by!r}; leave one of them out")


def select_baseline(slices: Sequence[Slice], pool: Evaluation, by: str, per_class: int, seed: int) -> Plan:
    """Select rows by confidence or at random among those that the slices are within; among all where there is none."""
    facts: dict[str, Any] = {"by": by}
    if by == "random":
        facts["seed"] = seed
        order = by_chance(pool, seed)
    else:
        order = by_confidence(pool, [slice_.task for slice_ in slices])
    inside = np.ones(len(pool), dtype=bool)
    if slices:
        inside = np.any([own_rows(pool, slice_) for slice_ in slices], axis=0)
    plan = select(pool, np.where(inside, order, -np.inf), per_class, slices=ids_of(slices), facts=facts)
    if inside.all():
        return plan
    return replace(plan, why=f"{plan.why}, among the {int(inside.sum()):,} in the classes of {', '.join(plan.slices)}")


def own_rows(rows: Evaluation, slice_: Slice) -> Array:
    """Return the rows that a slice is within, those of its class: (n,) bool."""
    return rows_in_scope(dict(rows.tasks()).get(slice_.task, rows), slice_.rule.get("scope"))


def by_depth(audit: Audit, slices: Sequence[Slice], rows: Evaluation) -> Array:
    """Rank rows by the largest weight over threshold in any of the slices. Returns (n,) numbers of at least 0."""
    weights = place_targets(audit, slices, rows)
    depth: Array = np.max([weights[slice_.id] / slice_.threshold for slice_ in slices], axis=0)
    return depth


def select_by_caption(
    audit: Audit, slices: Sequence[Slice], pool: Evaluation, texts: Captions, per_class: int, by: str
) -> Plan:
    """Select by the hardest captions of slices, and by depth too where `by` is "both".

    Slices without a hard caption are named in the plan's sentence, and captions whose rows were not seen to fail more.
    """
    captions = {slice_.id: caption for slice_ in slices if (caption := hardest_caption(slice_)) is not None}
    if not captions:
        raise InputError(no_caption(slices, "select by", "hard", "select by='slices'"))
    captioned = [slice_ for slice_ in slices if slice_.id in captions]
    order = by_caption(pool, captioned, texts)
    if by == "both":
        order = by_both(order, by_depth(audit, captioned, pool), classes_of(pool))
    named = {id: row.text for id, row in captions.items()}
    plan = select(pool, order, per_class, slices=tuple(captions), facts={"by": by, "captions": named})
    why = plan.why
    if by == "both":
        why += f", deepest in {', '.join(captions)} and"
    else:
        why += ","
    why += " nearest to " + ", ".join(f"“{text}” ({id})" for id, text in named.items())
    for slice_ in captioned:
        why += doubt_of_caption(slice_, captions[slice_.id])
    without = [slice_.id for slice_ in slices if slice_.id not in captions]
    if without:
        why += f"; without captions: {', '.join(without)}"
    return replace(plan, why=why)


def doubt_of_caption(slice_: Slice, caption: CaptionRow) -> str:
    """Return what the audit measured where rows near a caption were not seen to fail more than their class, else ""."""
    captions = slice_.explanation(DirectionCaptions)
    assert captions is not None
    low, high = caption.matches.interval
    class_rate = captions.class_rate.outcome.error_rate
    outcome = caption.matches.match.outcome
    if class_rate is None or low > class_rate:
        return ""
    return (
        f"; held-out rows near “{caption.text}” were not seen to fail more often than their class: "
        f"{outcome.error_rate:.2f} ({low:.2f} to {high:.2f}, n = {outcome.n:,}) beside {class_rate:.2f}"
    )


def by_both(nearness: Array, depth: Array, classes: Array) -> Array:
    """Return the sum of two rankings, (n,) each, both standardised within a class; -inf where a row has no nearness."""
    order = np.full(len(nearness), -np.inf)
    for value in np.unique(classes):
        own = (classes == value) & np.isfinite(nearness)
        if own.any():
            order[own] = standardised(nearness[own]) + standardised(depth[own])
    return order


def standardised(values: Array) -> Array:
    """Return numbers less their mean, over their spread."""
    scaled: Array = (values - values.mean()) / max(float(values.std()), NO_SPREAD)
    return scaled


def hardest_caption(slice_: Slice) -> CaptionRow | None:
    """Return the hard caption of the lowest score; None where a slice has none.

    The page has captions in the order of their measured error. The study of selection took the lowest score.
    """
    captions = slice_.explanation(DirectionCaptions)
    if captions is None or not captions.hard:
        return None
    return min(captions.hard, key=lambda row: row.score)


def by_caption(rows: Evaluation, slices: Sequence[Slice], texts: Captions) -> Array:
    """Rank rows by the largest cosine to the hardest caption of a slice of their class.

    Every slice has captions. Returns (n,) numbers, larger for rows to take earlier; -inf for rows of other classes.
    """
    texts.check_space(rows)
    nearness = np.full(len(rows), -np.inf)
    for slice_ in slices:
        own = own_rows(rows, slice_)
        embedding = _caption_embedding(slice_, texts)
        cosines = unit_products(rows.representations[texts.representation], unit(embedding[None]))[:, 0]
        nearness[own] = np.maximum(nearness[own], cosines[own])
    return nearness


def _caption_embedding(slice_: Slice, texts: Captions) -> Array:
    """(d,) of a slice's hardest caption."""
    caption = hardest_caption(slice_)
    assert caption is not None
    if slice_.rule["representation"] != texts.representation:
        raise InputError(
            f"captions of slice {slice_.id} lie in `{slice_.rule['representation']}` and `texts` in "
            f"`{texts.representation}`; give the texts that the audit was made with"
        )
    if caption.text not in texts.texts:
        raise InputError(
            f"caption “{caption.text}” of slice {slice_.id} is not among `texts`; give the texts that the audit was "
            "made with"
        )
    embedding: Array = texts.embeddings[list(texts.texts).index(caption.text)]
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
    check_whole("per_class", per_class, least=1)
    classes = classes_of(pool)
    order = np.lexsort((pool.row_ids, -hardness))
    order = order[hardness[order] > least]
    rows = np.concatenate([order[classes[order] == value][:per_class] for value in np.unique(classes)])
    ids = pool.row_ids[rows]
    why = f"add {len(ids):,} of {len(pool):,} rows of the pool, at most {per_class:,} a class"
    facts = {"per_class": per_class, **(facts or {})}
    return Plan("select", why, ids, np.ones(len(ids)), slices=slices, facts=facts)


def classes_of(pool: Evaluation) -> Array:
    """Return (n,) labels, or predictions where there are no labels; zeros where neither is one class a row."""
    classes = pool.labels
    if classes is None:
        classes = pool.predictions
    if classes is None or classes.ndim != 1 or classes.dtype.kind == "f":
        return np.zeros(len(pool), dtype=np.int64)
    return classes


def by_confidence(rows: Evaluation, tasks: Sequence[str] = ()) -> Array:
    """Rank rows by how unsure the model is of the label; without labels, of its own prediction.

    A model trained with generalised cross-entropy (learning from failure) or stopped early (just train twice) is
    ranked by its own confidence: give its evaluation. Of several labels a row the largest doubt counts, among those
    that `tasks` names; by default among all. Returns (n,) numbers, larger for rows to take earlier.
    """
    rows.need(frozenset({"probs"}), "a ranking by confidence")
    assert rows.probs is not None
    if rows.labels is None:
        unsure: Array = 1 - rows.probs.max(axis=1).astype(np.float64)
        return unsure
    views = dict(rows.tasks())
    chosen = [view for name, view in views.items() if name in tasks] or list(views.values())
    doubt: Array = np.max([_doubt(view) for view in chosen], axis=0)
    return doubt


def _doubt(rows: Evaluation) -> Array:
    """(n,) one less the probability of the label."""
    assert rows.probs is not None
    assert rows.labels is not None
    doubt: Array = 1 - rows.probs[np.arange(len(rows)), rows.labels].astype(np.float64)
    return doubt


def by_chance(rows: Evaluation, seed: int = 0) -> Array:
    """Rank rows at random. By id, so that the order of the rows does not matter. Returns (n,) numbers."""
    check_whole("seed", seed, least=0)
    order = np.argsort(rows.row_ids, kind="stable")
    ranks = np.empty(len(rows))
    ranks[order] = np.random.default_rng(seed).random(len(rows))
    return ranks
