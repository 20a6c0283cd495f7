"""The approximation: a slice that does not know the outcome, in place of one that does.

A method that reads the outcome finds 100% error by construction. Its slices may still point at a real group: so
membership is predicted from what is known before the outcome (the representation, and the prediction), and that
predicted set is measured, saved, shown and applied instead.

No row is judged by itself, a copy of it or a row of its group: each has a key of its values or its group, and what
shares the key has no vote. So search rows, held-out rows and new rows are judged alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ..core import Array, Evaluation, State
from ..core.scope import rows_in_scope
from .contract import Slicer, check_columns
from .neighbours import References, keys_of_groups, keys_of_rows
from .numerics import principal_components

FEWEST_MEMBERS = 5
FOLDS = 5
NEIGHBOURS = 15
MOST_REFERENCES = 10_000  # of more rows most votes would be the same, and cost time in proportion
AXES = 32
BLOCK_ROWS = 16_384
PENALTY = 1.0
MEMBERS_PER_COEFFICIENT = 10  # the usual rule for a regression; with fewer it learns one fragment of a group by heart
ONE_PREDICTION = 0.9  # of a slice's search rows: only then may its approximation read the prediction
PREFERENCE = 0.05  # how much better another learner must match than a plain vote, to be taken instead

VOTE = "vote"
VOTE_WITHIN_PREDICTION = "vote within the prediction"
REGRESSION = "regression"

FITTED_ARRAYS = (
    "columns_",
    "thresholds_",
    "centre_",
    "axes_",
    "scale_",
    "classes_",
    "references_",
    "reference_keys_",
    "reference_classes_",
    "reference_members_",
    "coefficients_",
    "intercepts_",
)


_Block = tuple[Array, Array, Array]  # coordinates, keys and predicted classes of some rows


class Approximation:
    """Sets that match a slicer's own and do not know the outcome: votes of the nearest search rows, or a regression.

    Fitted on search rows. A slice with too few members there has no approximation. Of three learners the one is taken
    whose set matches the slice best (F1, out of fold): the share of members among the 15 nearest search rows; the
    same among those with the row's prediction, beside a foreign representation, where nearly all of the slice have one;
    a logistic regression, where the slice has ten members for each coefficient. The set is cut where it matches best.

    Parameters
    ----------
    method
        The name of the method that is approximated, for messages.
    seed
        Of the sample of search rows that vote, where they are more than 10,000.

    Attributes
    ----------
    columns_
        (s,) columns of the slicer that have an approximation.
    thresholds_
        (s,) scores from which a row is a member: those at which the set matches the slice best.
    learners_
        The learner of each.
    match_
        (s,) F1 of each with the slice, out of fold.
    centre_
        (d,) mean of the representation.
    axes_
        (d, r) principal axes of the representation, of common scale; their columns are the coordinates that votes read.
    scale_
        (r,) standard deviations of the coordinates: what a regression reads is standardised.
    classes_
        (c,) predicted classes in the search rows; empty where the prediction is not read, since the representation is
        the model's own, or since all rows have one label and it is the outcome.
    references_
        (m, r) coordinates of the search rows that vote.
    reference_keys_, reference_classes_, reference_members_
        (m,) and (m, s) their keys, predicted classes and slices.
    coefficients_, intercepts_
        (folds, s, f) and (folds, s) of the regressions; zero where another learner was taken.
    folds_
        Of keys, for regressions: a row is judged by the one that was fitted on the other folds.
    representation_
        The representation that is read; None where every one reads the outcome.
    rules_
        One for each approximation, with the slice's own rule under "of".
    """

    name: ClassVar[str] = "approximation"

    columns_: Array
    thresholds_: Array
    learners_: tuple[str, ...]
    match_: tuple[float, ...]
    centre_: Array
    axes_: Array
    scale_: Array
    classes_: Array
    references_: Array
    reference_keys_: Array
    reference_classes_: Array
    reference_members_: Array
    coefficients_: Array
    intercepts_: Array
    folds_: int
    representation_: str | None
    rules_: tuple[Mapping[str, Any], ...]
    _voters: References

    def __init__(self, method: str, seed: int = 0):
        self.method = method
        self.seed = seed

    @property
    def _who(self) -> str:
        return f"the approximation of `{self.method}`"

    def fit(self, slicer: Slicer, evaluation: Evaluation, columns: Sequence[int] | None = None) -> Self:
        """Learn the hard sets of a fitted slicer from search rows; of some of its columns. Default: of all."""
        evaluation = evaluation.by_id()
        self.representation_ = _blind_representation(evaluation)
        self.folds_ = 1 if self.representation_ is None else FOLDS
        if len(evaluation) > MOST_REFERENCES:
            chosen = np.random.default_rng(self.seed).permutation(len(evaluation))[:MOST_REFERENCES]
            evaluation = evaluation.rows(np.sort(chosen))
        hard = _hard_sets(slicer, evaluation)
        self._fit_coordinates(evaluation)
        self.columns_ = self._able_columns(hard, columns)
        self.reference_members_ = hard[:, self.columns_]
        self._fit_learners()
        self.rules_ = tuple(self._rule(j, slicer.rules_[column]) for j, column in enumerate(self.columns_))
        return self

    def _rule(self, j: int, own: Mapping[str, Any]) -> dict[str, Any]:
        """What is saved of an approximation; one that reads the prediction is limited to it, and compared within it."""
        rule = {
            "kind": self.name,
            "of": dict(own),
            "representation": self.representation_,
            "learner": self.learners_[j],
            "match": round(self.match_[j], 4),
        }
        if self.learners_[j] == VOTE_WITHIN_PREDICTION:
            rule["scope"] = {"prediction": self._one_prediction(j)}
        return rule

    def _one_prediction(self, j: int) -> int | None:
        """The predicted class of nearly all members of a slice; None where they have several."""
        counts = np.bincount(self.reference_classes_[self.reference_members_[:, j]], minlength=len(self.classes_))
        if counts.max() < ONE_PREDICTION * counts.sum():
            return None
        return int(self.classes_[counts.argmax()])

    def _fit_coordinates(self, evaluation: Evaluation) -> None:
        """Axes from the representation, and the references in them."""
        self.classes_ = _predicted_classes(evaluation, self.representation_)
        if self.representation_ is None:
            self.centre_ = np.empty(0)
            self.axes_ = np.empty((0, 0))
        else:
            X = np.asarray(evaluation.representations[self.representation_], dtype=np.float32)
            components = principal_components(X, AXES, self.seed)
            self.centre_ = components.mean_.astype(np.float64)
            # One scale for all axes: an axis of little variance says little, and must not count like the first.
            size = float(np.sqrt(components.explained_variance_.mean())) if len(X) > 1 else 0.0
            self.axes_ = components.components_.T.astype(np.float64) / max(size, 1e-12)
        parts = list(self._blocks(evaluation, self._class_positions(evaluation)))
        self.references_ = np.concatenate([coordinates for coordinates, _, _ in parts]).astype(np.float32)
        self.scale_ = np.maximum(self.references_.std(axis=0, dtype=np.float64), 1e-12)
        self.reference_keys_ = np.concatenate([keys for _, keys, _ in parts])
        self.reference_classes_ = np.concatenate([classes for _, _, classes in parts]).astype(np.int32)
        self._voters = References(self.references_, self.reference_keys_)

    def _able_columns(self, hard: Array, columns: Sequence[int] | None) -> Array:
        """Columns with enough members and enough others, where there is something to read."""
        sizes = hard.sum(axis=0)
        readable = self.references_.shape[1] > 0 or len(self.classes_) > 1
        able = (sizes >= FEWEST_MEMBERS) & (len(hard) - sizes >= FEWEST_MEMBERS) & readable
        if columns is not None:
            able &= np.isin(np.arange(len(sizes)), columns)
        return np.flatnonzero(able)

    def _fit_learners(self) -> None:
        """For each slice the learner whose out-of-fold scores of the references match it best, and its threshold."""
        members = self.reference_members_
        s = members.shape[1]
        self._fit_regressions(members.sum(axis=0) >= self._members_for_regression)
        references = self._references
        scores = {learner: self._score_by(learner, references) for learner in self._candidates}
        self.learners_ = ()
        self.match_ = ()
        self.thresholds_ = np.empty(s)
        for j in range(s):
            able = [name for name in scores if name != VOTE_WITHIN_PREDICTION or self._one_prediction(j) is not None]
            matches = {learner: best_match(scores[learner][:, j], members[:, j]) for learner in able}
            learner = max(matches, key=lambda name: matches[name][1] + PREFERENCE * (name == VOTE))
            self.thresholds_[j] = matches[learner][0]
            self.learners_ += (learner,)
            self.match_ += (matches[learner][1],)
        other = np.array([learner != REGRESSION for learner in self.learners_], dtype=bool)
        self.coefficients_[:, other] = 0.0
        self.intercepts_[:, other] = 0.0

    @property
    def _members_for_regression(self) -> int:
        """Members that a slice needs for a regression; any are enough where the prediction is all there is to read."""
        if not self.references_.shape[1]:
            return 0
        return MEMBERS_PER_COEFFICIENT * self._coefficients

    @property
    def _coefficients(self) -> int:
        """Coefficients of a regression: of the coordinates, or of predictions where there is no representation."""
        return len(self.scale_) or len(self.classes_)

    def _fit_regressions(self, able: Array) -> None:
        """(folds, s) regressions, each on the references of the other folds."""
        from sklearn.linear_model import LogisticRegression

        s = len(able)
        self.coefficients_ = np.zeros((self.folds_, s, self._coefficients))
        self.intercepts_ = np.zeros((self.folds_, s))
        if not able.any():
            return
        coordinates, keys, classes = self._references
        folds = self._folds(keys)
        F = self._features(coordinates, classes)
        for fold in range(self.folds_):
            rows = (folds != fold) | (self.folds_ == 1)
            for j in np.flatnonzero(able):
                member = self.reference_members_[rows, j]
                if member.any() and not member.all():
                    regression = LogisticRegression(C=PENALTY, max_iter=1000).fit(F[rows], member)
                    self.coefficients_[fold, j] = regression.coef_[0]
                    self.intercepts_[fold, j] = regression.intercept_[0]

    @property
    def _references(self) -> _Block:
        return self.references_.astype(np.float64), self.reference_keys_, self.reference_classes_

    @property
    def _candidates(self) -> list[str]:
        """The learners that have something to read."""
        votes = [VOTE]
        if len(self.classes_) > 1:
            votes.append(VOTE_WITHIN_PREDICTION)
        if not self.references_.shape[1]:
            return [REGRESSION]
        if self.coefficients_.any():
            return [*votes, REGRESSION]
        return votes

    def _score_by(self, learner: str, block: _Block) -> Array:
        """(n, s) scores of a block of rows."""
        if learner == VOTE:
            return self._votes(block)
        if learner == VOTE_WITHIN_PREDICTION:
            return self._votes_within_prediction(block)
        return self._regress(block)

    def _votes(self, block: _Block) -> Array:
        """(n, s) share of members among the nearest references."""
        coordinates, keys, _ = block
        return self._count(self._voters.nearest(coordinates, keys, NEIGHBOURS))

    def _votes_within_prediction(self, block: _Block) -> Array:
        """(n, s) the same among references with the prediction of the row; among all where they are too few."""
        coordinates, keys, classes = block
        near = np.full((len(coordinates), NEIGHBOURS), -1, dtype=np.int64)
        for predicted in np.unique(classes):
            rows = np.flatnonzero(classes == predicted)
            among = self.reference_classes_ == predicted
            near[rows] = self._voters.nearest(coordinates[rows], keys[rows], NEIGHBOURS, among)
        few = np.flatnonzero(near[:, -1] < 0)
        near[few] = self._voters.nearest(coordinates[few], keys[few], NEIGHBOURS)
        return self._count(near)

    def _count(self, near: Array) -> Array:
        present = near >= 0
        votes = self.reference_members_[near] & present[:, :, None]
        shares: Array = votes.sum(axis=1) / np.maximum(present.sum(axis=1), 1)[:, None]
        return shares

    def _regress(self, block: _Block) -> Array:
        """(n, s) probabilities by the regression of the row's fold."""
        coordinates, keys, classes = block
        folds = self._folds(keys)
        F = self._features(coordinates, classes)
        scores = np.zeros((len(F), self.coefficients_.shape[1]))
        for fold in range(self.folds_):
            rows = folds == fold
            scores[rows] = _sigmoid(F[rows] @ self.coefficients_[fold].T + self.intercepts_[fold])
        return scores

    def _folds(self, keys: Array) -> Array:
        return np.asarray(keys % np.uint64(self.folds_)).astype(np.int64)

    def _features(self, coordinates: Array, classes: Array) -> Array:
        """(n, f) standardised coordinates; a one-hot prediction where a regression reads that. No label, no loss."""
        standard = coordinates / self.scale_
        if not self._regression_reads_prediction:
            return standard
        return np.hstack([standard, classes[:, None] == np.arange(len(self.classes_))])

    @property
    def _regression_reads_prediction(self) -> bool:
        return bool(self.coefficients_.shape[2] > len(self.scale_))

    def _blocks(self, evaluation: Evaluation, classes: Array) -> Iterator[_Block]:
        """Coordinates, keys and positions of predicted classes, a block of rows at a time."""
        X: Any = np.empty((len(evaluation), 0))
        if self.representation_ is not None:
            X = evaluation.representations[evaluation.representation(self.representation_, self._who)]
            check_columns(X, len(self.centre_), self._who)
        for start in range(0, len(evaluation), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            values = np.asarray(X[rows])
            if evaluation.groups is None:
                keys = keys_of_rows(values)
            else:
                keys = keys_of_groups(np.asarray(evaluation.groups[rows]))
            yield (values.astype(np.float64) - self.centre_) @ self.axes_, keys, classes[rows]

    def _class_positions(self, evaluation: Evaluation) -> Array:
        """(n,) position of the predicted class in `classes_`; -1 where it is not among them."""
        if len(self.classes_) < 2:
            return np.full(len(evaluation), -1, dtype=np.int64)
        evaluation.need(frozenset({"predictions"}), self._who)
        assert evaluation.predictions is not None
        positions = np.searchsorted(self.classes_, evaluation.predictions)
        positions = np.minimum(positions, len(self.classes_) - 1)
        return np.where(self.classes_[positions] == evaluation.predictions, positions, -1)

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) scores of belonging, known before the outcome is."""
        classes = np.full(len(evaluation), -1, dtype=np.int64)
        # A plain vote reads no prediction, and asks for none.
        if VOTE_WITHIN_PREDICTION in self.learners_ or self._regression_reads_prediction:
            classes = self._class_positions(evaluation)
        parts = [self._score(block) for block in self._blocks(evaluation, classes)]
        return np.concatenate([np.empty((0, len(self.columns_))), *parts])

    def _score(self, block: _Block) -> Array:
        scores = np.empty((len(block[0]), len(self.columns_)))
        for learner in set(self.learners_):
            columns = [j for j, name in enumerate(self.learners_) if name == learner]
            scores[:, columns] = self._score_by(learner, block)[:, columns]
        return scores

    def to_state(self) -> State:
        """What is saved."""
        facts = {
            "method": self.method,
            "seed": self.seed,
            "representation": self.representation_,
            "rules": list(self.rules_),
            "folds": self.folds_,
        }
        return State(self.name, facts, {name: getattr(self, name) for name in FITTED_ARRAYS})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """A fitted approximation from what was saved, also by versions that knew the regression alone."""
        new = cls(state.facts["method"], state.facts["seed"])
        new.representation_ = state.facts["representation"]
        new.rules_ = tuple(state.facts["rules"])
        new.folds_ = state.facts.get("folds", 1)
        new.learners_ = tuple(rule.get("learner", REGRESSION) for rule in new.rules_)
        new.match_ = tuple(rule.get("match", 0.0) for rule in new.rules_)
        arrays = state.arrays
        if "references_" not in arrays:
            arrays = _arrays_of_regressions(arrays)
        for name, array in arrays.items():
            setattr(new, name, array)
        new._voters = References(new.references_, new.reference_keys_)
        return new


def best_match(scores: Array, member: Array) -> tuple[float, float]:
    """The score at which {scores >= it} matches a set best, and F1 there; infinity where no row has a score."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    hits = np.cumsum(member[order])
    f1 = 2 * hits / (np.arange(1, len(scores) + 1) + member.sum())
    last_of_ties = np.append(ordered[1:] < ordered[:-1], True)
    f1 = np.where(last_of_ties & (ordered > 0), f1, 0.0)
    best = int(np.argmax(f1))
    if not f1[best]:
        return float("inf"), 0.0
    return float(ordered[best]), float(f1[best])


def _arrays_of_regressions(old: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays of an approximation that was saved by a version up to 0.2: regressions on all columns, standardised."""
    d = len(old["scale_"])
    s = len(old["thresholds_"])
    classes = old["classes_"]
    if len(classes) < 2:  # one class was no column
        classes = np.empty(0, dtype=np.int64)
    return {
        "columns_": old["columns_"],
        "thresholds_": old["thresholds_"],
        "centre_": old["centre_"],
        "axes_": np.eye(d),
        "scale_": old["scale_"],
        "classes_": classes,
        "references_": np.empty((0, d), dtype=np.float32),
        "reference_keys_": np.empty(0, dtype=np.uint64),
        "reference_classes_": np.empty(0, dtype=np.int32),
        "reference_members_": np.empty((0, s), dtype=bool),
        "coefficients_": old["coefficients_"][None],
        "intercepts_": old["intercepts_"][None],
    }


def _hard_sets(slicer: Slicer, evaluation: Evaluation) -> Array:
    """(n, s) bool: the members of each slice, within its scope."""
    hard = slicer.membership(evaluation) >= slicer.thresholds_
    scopes = [rows_in_scope(evaluation, rule.get("scope")) for rule in slicer.rules_]
    return hard & np.stack(scopes, axis=1) if scopes else hard


def _predicted_classes(evaluation: Evaluation, representation: str | None) -> Array:
    """Classes whose prediction is read beside the representation; none where that adds nothing, or too much.

    A representation of the model contains its prediction. Where all rows have one label, the prediction is the outcome.
    """
    predictions = evaluation.predictions
    labels = evaluation.labels
    one_label = labels is not None and labels.ndim == 1 and len(np.unique(labels)) == 1
    own = representation is not None and evaluation.source(representation).from_model
    if predictions is None or predictions.dtype.kind not in "iu" or one_label or own:
        return np.empty(0, dtype=np.int64)
    return np.unique(np.asarray(predictions))


def _blind_representation(evaluation: Evaluation) -> str | None:
    """The first representation that reads no outcome itself, nor the prediction of rows that were chosen by label."""
    blind = [name for name in evaluation.representations if not evaluation.source(name).reads]
    if evaluation.label_is_given:
        blind = [name for name in blind if not evaluation.source(name).from_model]
    return blind[0] if blind else None


def _sigmoid(x: Array) -> Array:
    share: Array = 1 / (1 + np.exp(-np.clip(x, -500, 500)))
    return share
