"""Why a slice fails, in words, shares and rows to look at; each with a measured score.

One kind of explanation is one module with one typed class. `SLICE_EXPLANATIONS`, `AUDIT_EXPLANATIONS` and
`EXPLANATIONS` below are the only lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any

from ..core import Array, Audit, Captions, Evaluation, Explanation, InputError, Slice
from ..core.audit import UnknownExplanation
from ..core.extensions import load_extensions
from .captions import DirectionCaptions
from .classes import Classes
from .coherence import Coherence
from .context import Context
from .descriptions import Descriptions
from .error_names import name_error_types
from .exemplars import Exemplars
from .extremes import Extremes
from .features import Features, draw_features
from .grammar import caption_candidates, hyponyms, phrases, reference_captions
from .group_trees import GroupTrees, add_trees
from .kinds import AuditExplanation, SliceExplanation
from .map import RowMap, draw_map
from .metadata import Metadata
from .metrics import SliceMetrics
from .names import Name, named_beside, with_unique_names
from .near import Near
from .own_label import OwnLabel
from .path import TreePath
from .relabel import Relabel, relabel_candidates
from .rule import Rule
from .sizes import Sizes
from .text_phrases import check_vocabulary
from .tokens import Tokens
from .training_opponents import Opponents, opponents
from .training_rows import has_influence
from .view import SliceView, view_of

__all__ = [
    "EXPLANATIONS",
    "AuditExplanation",
    "Context",
    "SliceExplanation",
    "SliceView",
    "add_trees",
    "caption_candidates",
    "check_vocabulary",
    "draw_features",
    "draw_map",
    "explain",
    "explain_added",
    "hyponyms",
    "opponents",
    "phrases",
    "reference_captions",
    "registry",
    "relabel_candidates",
    "restore_explanation",
]

# In the order in which they are made and written; a name reads those before it.
KINDS: tuple[type[Explanation], ...] = (
    Exemplars,
    Near,
    Classes,
    TreePath,
    Metadata,
    Rule,
    SliceMetrics,
    Tokens,
    Descriptions,
    DirectionCaptions,
    Extremes,
    Coherence,
    Opponents,
    OwnLabel,
    Features,
    Name,
    Sizes,
    Relabel,
    GroupTrees,
    RowMap,
)
EXPLANATIONS: dict[str, type[Explanation]] = {cls.kind: cls for cls in KINDS}


def registry() -> dict[str, type[Explanation]]:
    """Our kinds, and those that outside packages offer through the entry point `errata.explanations`.

    Those of outside packages come first, so that a name can still be the last word on a slice.
    """
    outside = load_extensions(entry_points(group="errata.explanations"), ("kind",))
    return {**outside, **EXPLANATIONS}


def explain(
    audit: Audit,
    *,
    seed: int = 0,
    clusters: Array | None = None,
    train: Evaluation | None = None,
    texts: Captions | None = None,
    vocabulary: Sequence[str] | None = None,
    arrays: Mapping[str, Mapping[str, Array]] | None = None,
    own: Mapping[str, Array] | None = None,
) -> Audit:
    """The audit with names and explanations for every slice; an explanation whose input is missing is left out.

    seed: of the rows drawn at random. clusters: (n,) int, the cluster of each row in a plain clustering, drawn beside
    the slices. train: the rows the model was trained on, for opponents and helpers, where both have influence
    embeddings. texts: candidates for describing each slice. vocabulary: words and phrases of the rows' texts that may
    describe one; default: all. arrays: key of a slicer -> its fitted arrays, which the rules of its slices name.
    own: id of a slice that is an approximation -> (n,) bool, the rows that the method itself would take.
    """
    if clusters is not None and clusters.shape != audit.discover.shape:
        raise InputError(
            f"`clusters` must have one whole number a row, shape {audit.discover.shape}; got shape {clusters.shape}"
        )
    if texts is not None:
        texts.check_with(audit.evaluation)
    known_train = train if has_influence(audit.evaluation, train) else None
    phrases = None if vocabulary is None else check_vocabulary(vocabulary, audit.evaluation)
    context = Context(audit, seed, clusters, known_train, texts, phrases, arrays or {}, own or {})
    kinds = registry().values()
    views = [_explain_slice(view_of(audit, slice_, context.tasks), context, kinds) for slice_ in audit.slices]
    slices = with_unique_names([_explained(view) for view in views], views, context)
    named = replace(audit, slices=slices, error_types=name_error_types(context))
    return _explain_whole(named, context, kinds)


def explain_added(audit: Audit, added: Slice, *, seed: int = 0, clusters: Array | None = None) -> Audit:
    """The audit with one more slice, explained and last; what was said of the others stays.

    added: not explained yet. seed, clusters: as of `explain`.
    """
    kinds = registry().values()
    alone = Context(replace(audit, slices=(added,)), seed, clusters)
    view = _explain_slice(view_of(alone.audit, added, alone.tasks), alone, kinds)
    (named,) = with_unique_names([_explained(view)], [view], alone)
    whole = replace(audit, slices=(*audit.slices, named_beside(named, audit.slices)))
    return _explain_whole(whole, Context(whole, seed, clusters), kinds)


def _explain_slice(view: SliceView, context: Context, kinds: Iterable[type[Explanation]]) -> SliceView:
    """The view of a slice with its explanations."""
    for kind in kinds:
        if not issubclass(kind, SliceExplanation) or not context.has(view.evaluation, kind.needs):
            continue
        explanation = kind.explain(view, context)
        if explanation is not None:
            view = replace(view, earlier={**view.earlier, kind.kind: explanation})
    return view


def _explained(view: SliceView) -> Slice:
    """The slice with its explanations; one made before is replaced."""
    others = [explanation for explanation in view.slice.explanations if explanation.kind not in view.earlier]
    return replace(view.slice, explanations=(*others, *view.earlier.values()))


def _explain_whole(audit: Audit, context: Context, kinds: Iterable[type[Explanation]]) -> Audit:
    """The audit with explanations of itself; one made before is replaced."""
    explanations = audit.explanations
    for kind in kinds:
        if issubclass(kind, AuditExplanation) and context.has(audit.evaluation, kind.needs):
            others = (explanation for explanation in explanations if explanation.kind != kind.kind)
            explanations = (*others, *kind.explain(audit, context))
    return replace(audit, explanations=explanations)


def restore_explanation(data: Mapping[str, Any]) -> Explanation:
    """An explanation from its JSON; one of a kind that is not registered keeps its JSON."""
    fields = dict(data)
    kind = fields.pop("kind")
    known = registry()
    if kind not in known:
        return UnknownExplanation(kind, fields)
    return known[kind].from_json(fields)
