"""Why a slice fails, in words, shares and rows to look at; each with a measured score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..core import Array, Audit, Captions, Evaluation, Explanation, InputError, Slice
from . import encode as columns_
from .captions import Direction, can_caption, caption_slice
from .descriptions import describe_slice
from .encode import Column, Skipped
from .exemplars import exemplars, extremes
from .features import picture_features
from .grammar import caption_candidates, hyponyms, phrases, reference_captions
from .map import draw_map
from .names import best_name, candidates, unique
from .near import near
from .opponents import REPRESENTATION, can_explain, coherence, opponents, training_rows
from .path import path, path_rule
from .profile import class_profile, metadata_profile
from .relabel import relabel, relabel_candidates
from .sizes import sizes
from .tokens import Words, count_words, token_profile
from .view import View, view_of

__all__ = [
    "caption_candidates",
    "draw_map",
    "explain",
    "hyponyms",
    "opponents",
    "phrases",
    "picture_features",
    "reference_captions",
    "relabel_candidates",
]


def explain(
    audit: Audit,
    *,
    seed: int = 0,
    clusters: Array | None = None,
    train: Evaluation | None = None,
    texts: Captions | None = None,
    arrays: Mapping[str, Mapping[str, Array]] | None = None,
) -> Audit:
    """The audit with names and explanations for every slice; what has no input is left out.

    clusters: (n,) int, the cluster of each row in some plain clustering, drawn beside the slices. train: the rows the
    model learnt from, for opponents and helpers, where both have influence embeddings. texts: candidates for
    describing each slice. arrays: key of a slicer -> what it has learnt, which the rules of its slices name.
    """
    if clusters is not None and clusters.shape != audit.discover.shape:
        raise InputError(
            f"`clusters` must have one whole number a row, shape {audit.discover.shape}; got shape {clusters.shape}"
        )
    tasks = dict(audit.evaluation.tasks())
    if texts is not None:
        texts.check_with(audit.evaluation)
    shared = replace(_prepare(audit, tasks, train, texts), arrays=arrays or {})
    explained = [_explain_slice(view_of(audit, found, tasks), shared, seed) for found in audit.slices]
    slices = _named(explained)
    whole = _of_the_audit(audit, slices, tasks, clusters)
    if shared.train is not None and audit.evaluation.errors is not None and shared.train.task == "classification":
        whole = (*(e for e in whole if e.kind != "relabel"), relabel(audit.evaluation, shared.train))
    return replace(audit, slices=slices, explanations=whole)


@dataclass(frozen=True, eq=False)
class _Shared:
    """What all slices are explained with, computed once."""

    words: Words | None
    metadata: tuple[Column | Skipped, ...]
    classes: Mapping[str, Mapping[str, Column]]  # task -> "labels" and "predictions", where there are any
    train: Evaluation | None  # where its influence can be told
    texts: Captions | None
    arrays: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)  # key of a slicer -> what it has learnt


def _prepare(
    audit: Audit, tasks: Mapping[str, Evaluation], train: Evaluation | None, texts: Captions | None
) -> _Shared:
    evaluation = audit.evaluation
    metadata = [columns_.encode(name, column, audit.discover) for name, column in evaluation.metadata.items()]
    wanted = {found.task for found in audit.slices}
    return _Shared(
        words=count_words(evaluation.media) if evaluation.media is not None and audit.slices else None,
        metadata=tuple(metadata),
        classes={name: _class_columns(task, audit.discover) for name, task in tasks.items() if name in wanted},
        train=train if can_explain(evaluation, train) else None,
        texts=texts,
    )


def _class_columns(evaluation: Evaluation, searched: Array) -> dict[str, Column]:
    given = {"labels": evaluation.labels, "predictions": evaluation.predictions}
    found = {
        name: columns_.classes(name, evaluation, column, searched)
        for name, column in given.items()
        if column is not None
    }
    return {name: column for name, column in found.items() if isinstance(column, Column)}


def _explain_slice(view: View, shared: _Shared, seed: int) -> Slice:
    """The slice with its explanations, the name last; one made before is replaced."""
    classes = shared.classes[view.slice.task]
    made = [exemplars(view, seed)]
    if view.evaluation.representations:
        made.append(near(view, seed))
    if classes:
        made.append(class_profile(view, classes.get("labels"), classes.get("predictions")))
    if view.evaluation.errors is not None and path_rule(view.slice.rule) is not None:
        made.append(path(view, seed))
    if shared.metadata:
        made.append(metadata_profile(view, shared.metadata))
    if shared.words is not None:
        made.append(token_profile(view, shared.words))
    if shared.texts is not None:
        made.append(describe_slice(view, shared.texts))
        if view.slice.slicer in shared.arrays and can_caption(view.slice, shared.texts):
            direction = Direction.of(view.slice, shared.arrays[view.slice.slicer])
            made.append(caption_slice(view, shared.texts, direction))
    if view.slice.rule.get("kind") == "direction":
        made.append(extremes(view))
    if REPRESENTATION in view.evaluation.representations:
        made.append(coherence(view, seed))
    if shared.train is not None:
        made.append(training_rows(view, shared.train))
    by_kind = {explanation.kind: explanation for explanation in made}
    columns = {**classes, **{f"metadata:{c.name}": c for c in shared.metadata if isinstance(c, Column)}}
    made.append(best_name(view, candidates(view, by_kind, columns, shared.words), _fallback(view.slice)))
    kinds = {explanation.kind for explanation in made}
    kept = [explanation for explanation in view.slice.explanations if explanation.kind not in kinds]
    return replace(view.slice, explanations=(*kept, *made))


def _fallback(found: Slice) -> str:
    """ "spotlight 2": the second slice of its method."""
    return found.method if found.column < 0 else f"{found.method} {found.column + 1}"


def _named(slices: Sequence[Slice]) -> tuple[Slice, ...]:
    names = [next(e.data["text"] for e in found.explanations if e.kind == "name") for found in slices]
    return tuple(replace(found, name=name) for found, name in zip(slices, unique(names), strict=True))


def _of_the_audit(
    audit: Audit, slices: Sequence[Slice], tasks: Mapping[str, Evaluation], clusters: Array | None
) -> tuple[Explanation, ...]:
    """Size against loss, one for each task that has slices."""
    drawn = []
    for name in tasks:
        views = [view_of(audit, found, tasks) for found in slices if found.task == name]
        drawn += [sizes(views, clusters)] if views else []
    kept = [explanation for explanation in audit.explanations if explanation.kind != "sizes"]
    return (*kept, *(explanation for explanation in drawn if explanation is not None))
