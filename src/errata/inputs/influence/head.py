"""Influence embeddings of the last layer, in closed form from what it saw and what it said.

The gradient of a row is its residual times its features, and the loss curves in the logits only: no model and no
autograd are needed, so a file with an embedding, probabilities and labels is enough. Signs: the product of two
embeddings is g' H⁻¹ g, positive where more of the one row would lower the loss of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ...core import Array, Evaluation, InputError, Matrix, Source, State
from .lanczos import Factor, factor, krylov_blocks

# The embedding of a labelled row is its gradient: it reads the label, and beside a layer of the model the outcome.
SOURCE = Source(from_model=True, reads=frozenset({"label"}))
NAME = "influence"
ROWS = 5000  # of which the mean Hessian is taken: the paper's number
BLOCK = 1 << 24  # numbers held at a time while rows are projected,
WIDE = 512  # for so many columns of a product
TOGETHER = 4  # vectors multiplied at a time: more is hardly faster, and leaves the last eigenvalues less settled

Tell = Callable[[float], None]


@dataclass(frozen=True)
class Options:
    """P and D of the paper as `steps` and `rank`.

    tolerance: eigenvalues below this share of the largest are left out. damping: added to every eigenvalue; the
    weight decay that the model was trained with is the natural one. rows: of the Hessian, chosen by seed; None: all.
    """

    steps: int = 500
    rank: int = 100
    tolerance: float = 1e-5
    damping: float = 0.0
    rows: int | None = ROWS
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "rank"):
            if getattr(self, name) < 1:
                raise InputError(f"`{name}` must be at least 1; got {getattr(self, name)}")
        if not 0 <= self.tolerance < 1:
            raise InputError(f"`tolerance` is a share of the largest eigenvalue, from 0 to 1; got {self.tolerance}")
        if not self.damping >= 0:
            raise InputError(f"`damping` must not be negative; got {self.damping}")
        if self.rows is not None and self.rows < 1:
            raise InputError(f"`rows` must be at least 1, or None for all; got {self.rows}")

    def chosen(self, n: int) -> Array:
        """Rows of the Hessian, in order."""
        if self.rows is None or self.rows >= n:
            return np.arange(n)
        return np.sort(np.random.default_rng(self.seed).choice(n, self.rows, replace=False))


class HeadInfluence:
    """A factor of the last layer's mean Hessian; `transform` gives the embeddings of any labelled rows.

    values: (D,) eigenvalues. least, negative: the smallest one seen, and how many curve downwards.
    """

    name: ClassVar[str] = "influence of the last layer"

    def __init__(self, found: Factor, representation: str, bias: bool, options: Options, model: str | None = None):
        self.values, self.least, self.negative = found.values, found.least, found.negative
        self.directions: Array = np.asarray(found.directions)  # (D, (d + bias) * k)
        self.representation, self.bias, self.options = representation, bias, options
        self.model = model  # the fingerprint of its weights, where it is known

    @classmethod
    def fit(
        cls,
        evaluation: Evaluation,
        options: Options | None = None,
        *,
        representation: str | None = None,
        bias: bool = True,
        tell: Tell = lambda share: None,
    ) -> Self:
        """From rows the model learnt from, or others like them: the curvature reads no labels."""
        options = options or Options()
        name = _features_of(evaluation, representation)
        rows = evaluation.rows(options.chosen(len(evaluation)))
        X = _with_ones(rows.representations[name], bias)
        curve, k = _curvature(rows)

        def product(V: Array) -> Array:
            """(b, p): both readings of X are of one wide matrix, which costs as much as a narrow one."""
            b, d = len(V), X.shape[1]
            Z = X @ V.reshape(b, d, k).transpose(1, 0, 2).reshape(d, b * k)
            bent = X.T @ curve(Z.reshape(-1, b, k)).reshape(-1, b * k)
            return bent.reshape(d, b, k).transpose(1, 0, 2).reshape(b, d * k) / np.float32(len(X))

        def draw(j: int) -> Array:
            numbers: Array = np.random.default_rng([options.seed, j]).standard_normal(X.shape[1] * k, dtype=np.float32)
            return numbers

        found = krylov_blocks(product, draw, options.steps, max(1, min(TOGETHER, WIDE // k)), tell=tell)
        made = factor(found, options.rank, tolerance=options.tolerance, damping=options.damping)
        return cls(made, name, bias, options, evaluation.origin.model)

    def transform(self, evaluation: Evaluation) -> Array:
        """(n, D) float32."""
        if self.model and evaluation.origin.model and self.model != evaluation.origin.model:
            raise InputError("this influence was fitted on other weights than these rows come from; fit it again")
        X = evaluation.representations[evaluation.representation(self.representation, self.name)]
        residuals = _residuals(evaluation)
        d, k = X.shape[1] + self.bias, residuals.shape[1]
        if self.directions.shape[1] != d * k:
            raise InputError(
                f"the influence was fitted on {self.directions.shape[1]:,} weights; these rows have {X.shape[1]:,} "
                f"columns and {k} outputs; give the same representation of the same model"
            )
        R = self.directions.reshape(-1, d, k)
        out = np.empty((len(X), len(R)), dtype=np.float32)
        step = max(1, BLOCK // max(d, k, WIDE))
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            out[rows] = _pairs(_with_ones(X[rows], self.bias), residuals[rows], R)
        return out

    def embed(
        self, evaluation: Evaluation, model: Any = None, loader: Any = None, device: Any = None, progress: bool = True
    ) -> Evaluation:
        """The evaluation with its influence embeddings; it holds all they are made of."""
        return evaluation.with_representation(NAME, self.transform(evaluation), SOURCE)

    def to_state(self) -> State:
        facts = {
            "representation": self.representation, "bias": self.bias, "options": vars(self.options),
            "least": self.least, "negative": self.negative, "model": self.model,
        }  # fmt: skip
        return State(self.name, facts, {"directions": self.directions, "values": self.values})

    @classmethod
    def from_state(cls, state: State) -> Self:
        facts = state.facts
        found = Factor(state.arrays["directions"], state.arrays["values"], facts["least"], facts["negative"])
        return cls(found, facts["representation"], facts["bias"], Options(**facts["options"]), facts["model"])


def _features_of(evaluation: Evaluation, representation: str | None) -> str:
    """What the last layer saw: the representation named, or the first that is the model's and reads no outcome."""
    if representation is not None:
        return evaluation.representation(representation, "influence")
    own = [name for name in evaluation.representations if not evaluation.source(name).reads]
    own = [name for name in own if evaluation.source(name).from_model] or own
    if not own:
        raise InputError("influence needs the input of the model's last layer; add it as a representation")
    return own[0]


def _with_ones(X: Matrix, bias: bool) -> Array:
    """(n, d) float32, with a column of ones where the layer has a bias."""
    whole = np.ones((len(X), X.shape[1] + bias), dtype=np.float32)
    whole[:, : X.shape[1]] = X
    return whole


def _pairs(X: Array, residuals: Array, R: Array) -> Array:
    """(b, D) products of each row's gradient, its features times its residuals, with directions (D, d, k).

    The larger of the two sides is summed over first, for as many directions at a time as make a wide product.
    """
    if residuals.shape[1] > X.shape[1]:
        X, residuals, R = residuals, X, R.transpose(0, 2, 1)
    (n, k), D = residuals.shape, len(R)
    out = np.empty((n, D), dtype=np.float32)
    at_once = max(1, WIDE // k)
    for j in range(0, D, at_once):
        some = R[j : j + at_once]
        wide = X @ some.transpose(1, 0, 2).reshape(X.shape[1], -1)
        out[:, j : j + at_once] = np.einsum("njk,nk->nj", wide.reshape(n, len(some), k), residuals)
    return out


def _residuals(evaluation: Evaluation) -> Array:
    """(n, k) float32: how the loss changes with each logit."""
    labels = evaluation.labels
    if labels is None:
        raise InputError("the influence of a row is the gradient of its loss and needs its label; add `labels`")
    if evaluation.task == "regression":
        evaluation.need(frozenset({"predictions"}), NAME)
        return np.asarray(2 * (np.asarray(evaluation.predictions) - labels), dtype=np.float32)[:, None]
    P = _logit_probs(evaluation)
    if evaluation.task == "multilabel":
        return np.asarray((P - labels) / P.shape[1], dtype=np.float32)
    if P.shape[1] == 1:
        return P - labels[:, None].astype(np.float32)
    P = P.copy()
    P[np.arange(len(P)), labels] -= 1
    return P


def _curvature(evaluation: Evaluation) -> tuple[Callable[[Array], Array], int]:
    """The second derivative of the loss in the logits, for some vectors at a time: (n, b, k) -> (n, b, k); and k."""
    if evaluation.task == "regression":
        return lambda Z: np.float32(2) * Z, 1
    P = _logit_probs(evaluation)[:, None]
    k = P.shape[2]
    if evaluation.task == "multilabel" or k == 1:
        weights = P * (1 - P) / np.float32(k)
        return lambda Z: weights * Z, k

    def softmax(Z: Array) -> Array:
        PZ = P * Z
        bent: Array = PZ - P * PZ.sum(axis=2, keepdims=True)
        return bent

    return softmax, k


def _logit_probs(evaluation: Evaluation) -> Array:
    """(n, k) float32. Two classes are one logit: the second column of two says all, and influence is the same."""
    evaluation.need(frozenset({"probs"}), NAME)
    P = np.asarray(evaluation.probs, dtype=np.float32)
    return P[:, 1:] if evaluation.task == "classification" and P.shape[1] == 2 else P


def with_influence(
    evaluation: Evaluation, train: Evaluation | None = None, rows: Array | None = None, options: Options | None = None
) -> tuple[Evaluation, Evaluation | None]:
    """Both with the last layer's influence embeddings, in closed form, where they have none.

    Training rows give the curvature; without them `rows` ((n,) bool) of the evaluation do, or all.
    """
    if NAME in evaluation.representations:
        return evaluation, train
    name = _features_of(evaluation, None)
    able = train is not None and name in train.representations
    able = able and train is not None and (train.probs is not None or train.task == "regression")
    source = train if able and train is not None else evaluation if rows is None else evaluation.rows(rows)
    fitted = HeadInfluence.fit(source, options, representation=name)
    embedded = fitted.embed(train) if able and train is not None and train.labels is not None else train
    return fitted.embed(evaluation), embedded
