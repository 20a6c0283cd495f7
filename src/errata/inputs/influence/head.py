"""Influence embeddings of the last layer, in closed form from its input and output.

The gradient of a row is its residual times its features, and the loss curves in the logits only: no model and no
autograd are needed, so a file with an embedding, probabilities and labels is enough. Signs: the product of two
embeddings is g' H⁻¹ g, positive where more of the one row would lower the loss of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ...core import Array, Evaluation, InputError, Matrix, Progress, Source, State, silent
from ...core.evaluation import INFLUENCE
from ...core.soften import class_probs
from ...core.words import memory_size
from .lanczos import Factor, factor, krylov

# The embedding of a labelled row is its gradient: it reads the label, and beside a layer of the model the outcome.
SOURCE = Source(from_model=True, reads=frozenset({"label"}))
HESSIAN_ROWS = 5000  # of which the mean Hessian is taken: the paper's number
BLOCK_NUMBERS = 1 << 24  # numbers held at a time while rows are projected,
WIDE = 512  # for so many columns of a product
# R² of the logits within labels on the last layer's input: 1 but for rounding (.994 with probabilities of four digits).
# Earlier layers, pixels and layers of other networks had at most .987 on the digits, which are nearly linear.
LAST_LAYER_R2 = 0.99
R2_ROWS = 4000  # that are looked at
R2_ROWS_A_COLUMN = 2  # of the fit, below which any columns would do
ROUNDED = 1e-6  # a probability so near to 0 or 1 has lost its logit in single precision
VECTORS_AT_ONCE = 4  # more is hardly faster, and leaves the last eigenvalues less settled
BASIS = 4 << 30  # bytes of Lanczos' vectors: P = 500 of 2 million weights; 150 of the 7 million of a layer of BERT-base


@dataclass(frozen=True)
class InfluenceOptions:
    """How a factor of the mean Hessian is computed.

    steps: products with the Hessian, P of the paper. rank: eigenvalues at most, D of the paper. tolerance: eigenvalues
    below this share of the largest are left out. damping: added to every eigenvalue; the weight decay that the model
    was trained with is the natural one, and twice it for a file of two classes whose model has one output. rows: of the
    Hessian, chosen by seed; None: all. seed: of rows and vectors. basis: bytes of vectors held at a time; where `steps`
    of them need more, it restarts with the leading ones.
    """

    steps: int = 500
    rank: int = 100
    tolerance: float = 1e-5
    damping: float = 0.0
    rows: int | None = HESSIAN_ROWS
    seed: int = 0
    basis: int = BASIS

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

    def vectors(self, weights: int, block: int = 1, itemsize: int = 4) -> dict[str, int]:
        """How many basis vectors are held at a time, and kept at a restart: `most` and `keep` of `krylov`.

        They take `itemsize * weights * most` bytes, and the directions take the place of the first of them. Beside
        them stand a few vectors for each that is multiplied at a time.
        """
        steps = min(self.steps, weights)
        wanted = min(self.rank, steps)
        most = min(steps, self.basis // (itemsize * weights))
        fewest = min(steps, wanted + max(2 * block, wanted // 10))
        if most < fewest:
            raise InputError(
                f"{wanted} directions of {weights:,} weights need {memory_size(itemsize * weights * fewest)} of "
                f"vectors, and `basis` allows {memory_size(self.basis)}; give more, a smaller `rank`, or fewer layers"
            )
        return {"most": most, "keep": wanted + max(0, most - wanted - block) // 3}

    def choose_rows(self, n: int) -> Array:
        """Indices of the rows of the Hessian among n, in order."""
        if self.rows is None or self.rows >= n:
            return np.arange(n)
        return np.sort(np.random.default_rng(self.seed).choice(n, self.rows, replace=False))


class HeadInfluence:
    """A factor of the last layer's mean Hessian; `transform` gives the embeddings of any labelled rows.

    values: (D,) eigenvalues. least: the smallest eigenvalue met. negative: how many were below zero.
    directions: (D, (d + bias) * k). representation: the input of the last layer. bias: whether that layer has one.
    options: what it was fitted with. model: the fingerprint of the model's weights, None where it is not known.
    """

    name: ClassVar[str] = "influence of the last layer"

    def __init__(
        self, factor: Factor, representation: str, bias: bool, options: InfluenceOptions, model: str | None = None
    ):
        self.values = factor.values
        self.least = factor.least
        self.negative = factor.negative
        self.directions: Array = np.asarray(factor.directions)
        self.representation = representation
        self.bias = bias
        self.options = options
        self.model = model

    @classmethod
    def fit(
        cls,
        evaluation: Evaluation,
        options: InfluenceOptions | None = None,
        *,
        representation: str | None = None,
        bias: bool = True,
        outputs: int | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Fit on rows the model was trained on, or others like them: the curvature reads no labels.

        representation: the input of the last layer. Default: the first that comes from the model. bias: whether the
        last layer has one. outputs: how many the last layer has. Default: one for each class, which is all that
        probabilities can say.
        """
        options = options or InfluenceOptions()
        name = _features_of(evaluation, representation)
        rows = evaluation.rows(options.choose_rows(len(evaluation)))
        check_last_layer(rows, name)
        X = _with_ones(rows.representations[name], bias)
        curve, k = _curvature(rows)

        def product(V: Array) -> Array:
            """(b, p): both readings of X are of one wide matrix, which costs as much as a narrow one."""
            b = len(V)
            d = X.shape[1]
            Z = X @ V.reshape(b, d, k).transpose(1, 0, 2).reshape(d, b * k)
            bent = X.T @ curve(Z.reshape(-1, b, k)).reshape(-1, b * k)
            return bent.reshape(d, b, k).transpose(1, 0, 2).reshape(b, d * k) / np.float32(len(X))

        def draw(j: int) -> Array:
            numbers: Array = np.random.default_rng([options.seed, j]).standard_normal(X.shape[1] * k, dtype=np.float32)
            return numbers

        block = max(1, min(VECTORS_AT_ONCE, WIDE // k))
        held = options.vectors(X.shape[1] * k, block)
        basis = krylov(product, draw, options.steps, block=block, **held, checkpoint=None, progress=progress)
        damping = options.damping
        if has_two_logits(evaluation) and outputs != 1:
            # Two logits are fitted as their difference, which curves half as much: half the damping does the same.
            damping /= 2
        eigenpairs = factor(basis, options.rank, tolerance=options.tolerance, damping=damping, in_place=True)
        return cls(eigenpairs, name, bias, options, evaluation.origin.model)

    def transform(self, evaluation: Evaluation) -> Array:
        """(n, D) float32, the influence embeddings of labelled rows."""
        if self.model and evaluation.origin.model and self.model != evaluation.origin.model:
            raise InputError("this influence was fitted on other weights than these rows come from; fit it again")
        X = evaluation.representations[evaluation.representation(self.representation, self.name)]
        residuals = _residuals(evaluation)
        d = X.shape[1] + self.bias
        k = residuals.shape[1]
        if self.directions.shape[1] != d * k:
            raise InputError(
                f"the influence was fitted on {self.directions.shape[1]:,} weights; these rows have {X.shape[1]:,} "
                f"columns and {k} outputs; give the same representation of the same model"
            )
        R = self.directions.reshape(-1, d, k)
        out = np.empty((len(X), len(R)), dtype=np.float32)
        step = max(1, BLOCK_NUMBERS // max(d, k, WIDE))
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            out[rows] = _pairs(_with_ones(X[rows], self.bias), residuals[rows], R)
        return out

    def embed(
        self,
        evaluation: Evaluation,
        model: Any = None,
        loader: Any = None,
        device: Any = None,
        progress: Progress = silent,
    ) -> Evaluation:
        """The evaluation with its influence embeddings, computed from its own arrays alone."""
        return evaluation.with_representation(INFLUENCE, self.transform(evaluation), SOURCE)

    def record(self, curvature: str, rows: int) -> dict[str, Any]:
        """How it was made, for the settings of an audit: of whose rows the curvature is, and of how many."""
        options = self.options
        used = rows if options.rows is None else min(rows, options.rows)
        return {
            "curvature": curvature,
            "rows": used,
            "representation": self.representation,
            "weights": int(self.directions.shape[1]),
            "steps": options.steps,
            "rank": options.rank,
            "directions": len(self.directions),
            "damping": options.damping,
            "tolerance": options.tolerance,
            "seed": options.seed,
            "basis": options.basis,
            "negative": self.negative,
        }

    def to_state(self) -> State:
        """What a file needs to hold."""
        facts = {
            "representation": self.representation,
            "bias": self.bias,
            "options": vars(self.options),
            "least": self.least,
            "negative": self.negative,
            "model": self.model,
        }
        return State(self.name, facts, {"directions": self.directions, "values": self.values})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The fitted influence that `to_state` described."""
        facts = state.facts
        eigenpairs = Factor(state.arrays["directions"], state.arrays["values"], facts["least"], facts["negative"])
        return cls(
            eigenpairs, facts["representation"], facts["bias"], InfluenceOptions(**facts["options"]), facts["model"]
        )


def _features_of(evaluation: Evaluation, representation: str | None) -> str:
    """The input of the last layer: the representation named, or the first that is the model's and reads no outcome."""
    if representation is not None:
        return evaluation.representation(representation, "influence")
    own = [name for name in evaluation.representations if not evaluation.source(name).reads]
    own = [name for name in own if evaluation.source(name).from_model] or own
    if not own:
        raise InputError("influence needs the input of the model's last layer; add it as a representation")
    return own[0]


def check_last_layer(evaluation: Evaluation, name: str) -> None:
    """Raise where the representation is not the input of the last layer: the logits are not linear in it.

    A linear fit on half of the rows must give the logits of the others. Nothing is checked where the logits are not
    known, or where there are too few rows to tell.
    """
    r2 = last_layer_r2(evaluation, name)
    if r2 is not None and r2 < LAST_LAYER_R2:
        raise InputError(
            f"influence needs the input of the model's last layer, of which the logits are a linear function; `{name}` "
            f"gives them with an R² of {r2:.2f} where the last layer has 1; give that layer as the first embedding"
        )


def last_layer_r2(evaluation: Evaluation, name: str) -> float | None:
    """Share of the logits' variance within labels, on half of the rows, that a linear fit on the other half explains.

    Within labels, since any good representation tells the labels, and so most of the logits.
    """
    order = np.argsort(evaluation.row_ids, kind="stable")  # row order never matters
    rows = evaluation.rows(order[np.sort(np.random.default_rng(0).permutation(len(order))[:R2_ROWS])])
    logits = _known_logits(rows)
    if logits is None:
        return None
    X = _with_ones(rows.representations[name], bias=True).astype(np.float64)
    usable = np.isfinite(logits).all(axis=1)
    X = X[usable]
    logits = logits[usable]
    if rows.task == "classification" and rows.labels is not None:
        X = _within(X, rows.labels[usable])
        logits = _within(logits, rows.labels[usable])
    half = np.arange(len(X)) % 2 == 0
    if half.sum() < R2_ROWS_A_COLUMN * X.shape[1]:
        return None
    weights, *_ = np.linalg.lstsq(X[half], logits[half], rcond=None)
    left = np.square(logits[~half] - X[~half] @ weights).sum()
    whole = np.square(logits[~half] - logits[half].mean(axis=0)).sum()
    if whole <= 0:
        return None
    return float(1 - left / whole)


def _within(array: Array, labels: Array) -> Array:
    """Differences from the mean of each label."""
    _, index, counts = np.unique(labels, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), array.shape[1]))
    np.add.at(sums, index, array)
    within: Array = array - (sums / counts[:, None])[index]
    return within


def _known_logits(rows: Evaluation) -> Array | None:
    """(n, k) logits up to a constant a row, NaN where rounding has lost them; None where nothing tells them."""
    if rows.task == "regression":
        return None if rows.predictions is None else np.asarray(rows.predictions, dtype=np.float64)[:, None]
    if rows.probs is None:
        return None
    P = np.asarray(rows.probs, dtype=np.float64)
    if rows.task == "multilabel" or P.shape[1] == 2:
        P = P if rows.task == "multilabel" else P[:, 1:]
        sure = (P < ROUNDED) | (P > 1 - ROUNDED)
        bounded = np.clip(P, ROUNDED, 1 - ROUNDED)
        return np.where(sure, np.nan, np.log(bounded) - np.log1p(-bounded))
    logits = np.log(np.where(P > 0, P, np.nan))
    centred: Array = logits - logits.mean(axis=1, keepdims=True)
    return centred


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
        return _pairs(residuals, X, R.transpose(0, 2, 1))
    n, k = residuals.shape
    out = np.empty((n, len(R)), dtype=np.float32)
    at_once = max(1, WIDE // k)
    for j in range(0, len(R), at_once):
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
        evaluation.need(frozenset({"predictions"}), INFLUENCE)
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
    P = np.asarray(class_probs(evaluation, INFLUENCE), dtype=np.float32)
    if has_two_logits(evaluation):
        return P[:, 1:]
    return P


def has_two_logits(evaluation: Evaluation) -> bool:
    """Whether these are rows of two classes, whose two logits say no more than their difference."""
    return evaluation.task == "classification" and class_probs(evaluation, INFLUENCE).shape[1] == 2


def add_influence(
    evaluation: Evaluation,
    train: Evaluation | None = None,
    rows: Array | None = None,
    options: InfluenceOptions | None = None,
) -> tuple[Evaluation, Evaluation | None]:
    """Add the last layer's influence embeddings, in closed form, to an evaluation and its training rows.

    Training rows give the curvature; without them `rows` ((n,) bool) of the evaluation do, or all. An evaluation that
    has the representation "influence" already is returned as it is.
    """
    embedded = embed_all(evaluation, train, rows, options)
    return embedded.evaluation, embedded.train


@dataclass(frozen=True, eq=False)
class Embedded:
    """Rows with influence embeddings, and how these were made."""

    evaluation: Evaluation
    train: Evaluation | None
    record: dict[str, Any]


def embed_all(
    evaluation: Evaluation, train: Evaluation | None, rows: Array | None, options: InfluenceOptions | None
) -> Embedded:
    """As `add_influence`, with a record of the options, and of whose curvature it is."""
    if INFLUENCE in evaluation.representations:
        return Embedded(evaluation, train, {"curvature": "given"})
    options = options or InfluenceOptions()
    name = _features_of(evaluation, None)
    source = evaluation
    whose = "all rows"
    if train is not None and _has_outputs(train, name):
        source = train
        whose = "training rows"
    elif rows is not None:
        source = evaluation.rows(rows)
        whose = "search rows"
    fitted = HeadInfluence.fit(source, options, representation=name)
    if train is source and train.labels is not None:
        train = fitted.embed(train)
    return Embedded(fitted.embed(evaluation), train, fitted.record(whose, len(source)))


def last_layer_weights(evaluation: Evaluation, train: Evaluation) -> int:
    """How many weights the last layer has; InputError where these rows do not show its input and output."""
    name = _features_of(evaluation, None)
    if not _has_outputs(train, name) or train.labels is None:
        raise InputError(f"they need labels, predictions and the representation `{name}`")
    outputs = 1
    if evaluation.task != "regression":
        outputs = _logit_probs(evaluation.rows(np.arange(1))).shape[1]
    return int((evaluation.representations[name].shape[1] + 1) * outputs)


def _has_outputs(evaluation: Evaluation, name: str) -> bool:
    """Whether the rows have the representation and the model's outputs, which the curvature needs."""
    return name in evaluation.representations and evaluation.predictions is not None
