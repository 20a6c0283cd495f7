"""Plans that read influence: the audit's rows and the training rows are embedded by one factor, made anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import fix
from ..core import Audit, Evaluation, InputError, Plan
from ..core.evaluation import INFLUENCE
from ..core.searched import ERROR, OF_CLASSES, against_the_rest
from ..explain.training_rows import has_influence
from ..inputs.influence import InfluenceOptions, embed_all, has_two_logits

MADE_WITH = ("steps", "rank", "tolerance", "damping", "rows", "seed", "basis")


def plan_labels(
    audit: Audit,
    train: Evaluation,
    count: int = 200,
    *,
    action: fix.LabelAction = "relabel",
    by: fix.LabelOrder = "opponents",
    slices: Sequence[str] | None = None,
    seed: int = 0,
) -> Plan:
    """Plan which training rows to relabel or drop: opponents of the slices whose neighbours have another label.

    Parameters
    ----------
    audit : Audit
        The audit whose slices are to be fixed. Its rows choose, so the fix must be proven on others.
    train : Evaluation
        The training rows, with labels, the model's outputs and the input of its last layer.
    count : int
        Rows to change, at most.
    action : {"relabel", "drop"}
        Give them the commonest label of their ten nearest neighbours, or the weight 0.
    by : {"opponents", "loss", "random"}
        What order rows are taken in; the last two are baselines.
    slices : list of str, optional
        Slices to fix: ids, "accepted", "confirmed" or "all". Default: those that people accepted where there are any
        (`load(..., judged=True)`), else the confirmed ones.
    seed : int
        Of the random order.

    Returns
    -------
    Plan
        `plan.labels_of(train)` are the labels to train with, `plan.weights_of(train)` the weights.

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, share):
    ...     group = rng.integers(0, 4, n)
    ...     x = 4 * np.eye(4)[group] + rng.normal(size=(n, 4))
    ...     mistaken = (group == 0) & (rng.random(n) < share)
    ...     return x, np.where(mistaken, 1, group % 2)
    >>> x, labels = draw(1000, share=0.6)  # most of a group was labelled by mistake
    >>> model = LogisticRegression().fit(x, labels)
    >>> def rows(x, labels, first_id):
    ...     ids = np.arange(len(x)) + first_id
    ...     return errata.Evaluation(labels=labels, probs=model.predict_proba(x), representations={"x": x}, ids=ids)
    >>> train = rows(x, labels, 5000)
    >>> audit = errata.audit(rows(*draw(1000, share=0), 0), methods=["gmm"], train=train)
    >>> errata.plan_labels(audit, train, count=20, action="drop").kind
    'labels'
    """
    if by == "opponents":
        audit, train = with_influence(audit, train)
    return fix.plan_labels(audit, train, count, action=action, by=by, slices=slices, seed=seed)


def make_plan(plan: fix.PlanFunction, audit: Audit, values: dict[str, Any]) -> Plan:
    """Call a plan of the registry with the audit and its other arguments; influence is made where it is read."""
    if plan is fix.plan_labels and values["by"] == "opponents":
        audit, values["train"] = with_influence(audit, values["train"])
    return plan(audit, **values)


def with_influence(audit: Audit, train: Evaluation) -> tuple[Audit, Evaluation]:
    """Return both with influence embeddings of one factor: as they are, or of the last layer, as the audit made it.

    Of an audit of `fnr` or `fpr`, all training rows are embedded: those of one class could not tell which are doubtful.
    """
    if has_influence(audit.evaluation, train):
        return audit, train
    made: dict[str, Any] = audit.settings.get("influence") or {}
    evaluation = audit.evaluation
    if made.get("curvature") == "given":
        raise InputError(
            "the audit's influence embeddings came with its rows; give training rows with those of the same "
            "errata.inputs.fit_influence"
        )
    others = {name: array for name, array in evaluation.representations.items() if name != INFLUENCE}
    sources = {name: source for name, source in evaluation.sources.items() if name != INFLUENCE}
    bare = replace(evaluation, representations=others, sources=sources)
    metric = audit.settings.get("metric", ERROR)
    view = train
    if metric in OF_CLASSES:  # whose rows are of one class against the rest
        made = {name: value for name, value in made.items() if name != "rows"}
        view = against_the_rest(train, metric, audit.settings.get("positive"))
    embedded = embed_all(bare, view, None, _options_made_with(made, bare))
    if embedded.train is None or INFLUENCE not in embedded.train.representations:
        raise InputError("training rows need labels, predictions and the representation that the audit searched")
    influence = embedded.train.representations[INFLUENCE]
    train = train.with_representation(INFLUENCE, influence, embedded.train.source(INFLUENCE))
    return replace(audit, evaluation=embedded.evaluation), train


def _options_made_with(made: Mapping[str, Any], evaluation: Evaluation) -> InfluenceOptions:
    """The options that an audit recorded, in so far as they hold for training rows."""
    options = {name: made[name] for name in MADE_WITH if name in made}
    if made.get("curvature") != "training rows":
        options.pop("rows", None)  # so many search rows there were: no choice of the user's, and none of training rows
    if "damping" in options and "basis" not in made and has_two_logits(evaluation):
        options["damping"] *= 2  # it counted double up to version 0.7.0, which recorded no basis
    return InfluenceOptions(**options)
