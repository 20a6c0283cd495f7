"""`bridge`: one space for images and texts, fitted between an image backbone and a sentence encoder.

For when there is no CLIP, or the images are far from what it was trained on. Both sides are linear maps in closed form:
ridge regression of the texts on the image features, or canonical correlations. Only sums over rows are needed, so that
held-out fits cost no second reading. What such a space can say is limited by the texts it was fitted to: `score` says
how often it names rows it was not fitted on, where it can with names that it was not fitted on either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ..core import Array, Evaluation, InputError, Matrix, State, validate
from ..core.blocks import blocks, take, unit
from ..core.gaps import wilson
from .fitted import load_state, save_state

Method = Literal["cca", "ridge"]

NAME = "bridge"
ALPHAS = (0.1, 1.0, 10.0, 100.0)
RANK = 100
TEXT_ALPHA = 1.0  # of the texts' side in "cca"
FOLDS = 5  # the first is scored, the others choose alpha
FEWEST_ROWS = 20
FEWEST_TEXTS = 20  # from here on whole texts are held back, so that scores are about names never fitted to
POOL = 1000  # texts to choose among, and as many rows, where every row has a text of its own
SAME = 1e-12  # cosines closer than this are one


@dataclass(frozen=True)
class ZeroShot:
    """How often the nearest of some names is a row's own, on rows that were not fitted to."""

    accuracy: float
    chance: float
    n: int
    interval: tuple[float, float]  # Wilson, 95%, rows taken as independent
    new_names: bool | None = None  # whether the names of these rows were held back too; None: not recorded


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Of image features x and texts t over some rows: all that a closed form needs."""

    n: int
    x: Array  # (d,)
    t: Array  # (m,)
    xx: Array  # (d, d)
    xt: Array  # (d, m)
    tt: Array  # (m, m)

    @classmethod
    def of(cls, features: Matrix, texts: Array, labels: Array) -> Self:
        """The sums over rows: features (n, d), texts (k, m), labels (n,) the text of each row."""
        d = features.shape[1]
        x = np.zeros(d)
        xx = np.zeros((d, d))
        xt = np.zeros((d, texts.shape[1]))
        for rows, block in blocks(features, 1 << 24):
            X = np.asarray(block, dtype=np.float64)
            x = x + X.sum(axis=0)
            xx = xx + X.T @ X
            xt = xt + X.T @ texts[labels[rows]]
        counts = np.bincount(labels, minlength=len(texts)).astype(np.float64)
        return cls(len(labels), x, counts @ texts, xx, xt, (texts.T * counts) @ texts)

    def __add__(self, other: FeatureSums) -> FeatureSums:
        return FeatureSums(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    def centred(self) -> tuple[Array, Array, Array]:
        """Covariances of x with x, x with t, t with t."""
        x = self.x / self.n
        t = self.t / self.n
        xx = self.xx / self.n - np.outer(x, x)
        xt = self.xt / self.n - np.outer(x, t)
        tt = self.tt / self.n - np.outer(t, t)
        return xx, xt, tt


@dataclass(frozen=True, eq=False)
class Maps:
    """Where image features and texts lie in a space of r columns, rows of length one."""

    images: Array  # (d, r)
    texts: Array  # (m, r)
    image_centre: Array  # (d,)
    text_centre: Array  # (m,)

    def place_images(self, features: Array) -> Array:
        """(n, r) the space's rows for image features (n, d)."""
        return unit((features - self.image_centre) @ self.images)

    def place_texts(self, embeddings: Array) -> Array:
        """(n, r) the space's rows for text embeddings (n, m)."""
        return unit((embeddings - self.text_centre) @ self.texts)


class Bridge:
    """A fitted space; `transform_images` and `transform_texts` give rows of length one in it.

    method: "cca", or "ridge", whose space is that of the texts. alpha: ridge on the image side, in units of the mean
    variance of a column. score: on rows held back while it was fitted.
    """

    name: ClassVar[str] = NAME

    def __init__(self, maps: Maps, facts: dict[str, Any]):
        self.maps = maps
        self.facts = facts
        score = facts["score"]
        self.score = ZeroShot(**{**score, "interval": tuple(score["interval"])})

    @classmethod
    def fit(
        cls,
        features: Any,
        texts: Any,
        labels: Any = None,
        *,
        method: Method = "cca",
        rank: int = RANK,
        alphas: Sequence[float] = ALPHAS,
        seed: int = 0,
    ) -> Self:
        """From captioned rows, or rows with a class each.

        features: (n, d). texts: (n, m) one caption a row; or, with labels (n,), (k, m) one name a class. rank: columns
        of "cca" at most. alphas: tried on rows held back, with their texts where there are at least 20; the best mean
        reciprocal rank of the right text wins, and `facts["tried"]` has them all.
        """
        X, T, y = _checked(features, texts, labels, method, rank, alphas)
        folds, new_names = _folds(y, seed)
        parts = [FeatureSums.of(take(X, rows), T, y[rows]) for rows in folds]
        fits = partial(_fits, method=method, rank=rank)
        tried = []
        for f in range(1, FOLDS):
            maps = fits(_sum(parts, without=(0, f)), alphas)
            tried.append([_reciprocal(*_placed(X, T, y, folds[f], each)) for each in maps])
        ranks = np.mean(tried, axis=0)
        alpha = float(alphas[int(ranks.argmax())])
        (judge,) = fits(_sum(parts, without=(0,)), [alpha])
        score = _zero_shot(*_placed(X, T, y, folds[0], judge), new_names)
        (whole,) = fits(_sum(parts), [alpha])
        facts = {
            "method": method,
            "alpha": alpha,
            "rows": len(X),
            "texts": len(T),
            "seed": seed,
            "score": asdict(score),
            "tried": np.stack([alphas, ranks], axis=1).tolist(),
        }
        return cls(whole, facts)

    @classmethod
    def from_weights(cls, weights: Any, names: Any, **options: Any) -> Self:
        """From a classifier's weight vectors (k, d) and the embeddings of its classes' names (k, m); no images.

        Weights say where classes lie, not where images do: follow with `recentred`.
        """
        return cls.fit(weights, names, **options)

    def recentred(self, features: Any) -> Self:
        """The same maps with the middle of other images (n, d), which need no labels, as the middle."""
        X = self._matrix(features)
        centre = sum(np.asarray(block).sum(axis=0, dtype=np.float64) for _, block in blocks(X)) / len(X)
        return type(self)(replace(self.maps, image_centre=np.asarray(centre)), self.facts)

    def transform_images(self, features: Any) -> Array:
        """(n, r) float32."""
        X = self._matrix(features)
        placed = np.empty((len(X), self.maps.images.shape[1]), dtype=np.float32)
        for rows, block in blocks(X):
            placed[rows] = self.maps.place_images(block)
        return placed

    def transform_texts(self, embeddings: Any) -> Array:
        """(m, r) float32."""
        T = validate.representation("texts", embeddings, len(embeddings))
        _check_columns("texts", T, len(self.maps.text_centre))
        return self.maps.place_texts(np.asarray(T)).astype(np.float32)

    def zero_shot(self, features: Any, labels: Any, names: Any) -> ZeroShot:
        """On rows it was not fitted to: features (n, d), class indices (n,), embeddings of the class names (k, m)."""
        placed = self.transform_images(features)
        texts = self.transform_texts(names)
        return _zero_shot(placed, texts, _checked_labels(labels, len(placed), len(texts)))

    def embed(self, evaluation: Evaluation, representation: str | None = None) -> Evaluation:
        """The evaluation with the representation "bridge", which comes from where the features do."""
        of = evaluation.representation(representation, "a bridge")
        placed = self.transform_images(evaluation.representations[of])
        return evaluation.with_representation(NAME, placed, evaluation.sources.get(of))

    def to_state(self) -> State:
        """What is saved: facts and arrays."""
        return State(self.name, self.facts, dict(vars(self.maps)))

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The bridge that `to_state` described."""
        if state.name != cls.name:
            raise InputError(f"a saved bridge is called `{cls.name}`; got {state.name!r}")
        return cls(Maps(**state.arrays), dict(state.facts))

    def save(self, path: str | Path) -> Path:
        """One .safetensors file, facts and all."""
        return save_state(self.to_state(), path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a bridge from the file that `save` wrote."""
        return cls.from_state(load_state(path, "bridge", "save one with Bridge.save"))

    def _matrix(self, features: Any) -> Matrix:
        X = validate.representation("features", features, len(features))
        _check_columns("features", X, len(self.maps.image_centre))
        return X


def _fits(sums: FeatureSums, alphas: Sequence[float], method: Method, rank: int) -> list[Maps]:
    """The maps for every alpha; the eigenvectors serve all of them."""
    xx, xt, tt = sums.centred()
    values, vectors = np.linalg.eigh(xx)
    values = np.maximum(values, 0.0)
    mean = float(values.mean())
    if mean <= 0:
        raise InputError("`features` never vary: all rows are alike; give the features of a backbone")
    side = _text_side(tt, method)
    pairs = [_pair(vectors, values + alpha * mean, vectors.T @ xt @ side, method, rank) for alpha in alphas]
    return [Maps(images, side @ turn, sums.x / sums.n, sums.t / sums.n) for images, turn in pairs]


def _text_side(tt: Array, method: Method) -> Array:
    """(m, m) what the texts are multiplied by first: whitened, but for a ridge, where canonical correlations are."""
    if method == "ridge":
        return np.eye(len(tt))
    values, vectors = np.linalg.eigh(tt)
    values = np.maximum(values, 0.0)
    scaled: Array = vectors / np.sqrt(values + TEXT_ALPHA * max(float(values.mean()), 1e-300))
    return scaled


def _pair(vectors: Array, values: Array, cross: Array, method: Method, rank: int) -> tuple[Array, Array]:
    """Ridge: (X'X + aI)^-1 X'T. CCA: the singular vectors of the whitened X'T, each side times its correlation, so
    that a direction which images and texts hardly share hardly counts."""
    if method == "ridge":
        return vectors @ (cross / values[:, None]), np.eye(cross.shape[1])
    root = np.sqrt(values)[:, None]
    left, correlations, right = np.linalg.svd(cross / root, full_matrices=False)
    r = max(1, min(rank, int((correlations > 1e-9 * correlations[0]).sum())))
    return vectors @ (left[:, :r] / root) * correlations[:r], right[:r].T * correlations[:r]


def _sum(parts: Sequence[FeatureSums], without: Sequence[int] = ()) -> FeatureSums:
    first, *others = (part for f, part in enumerate(parts) if f not in without)
    total = first
    for other in others:
        total = total + other
    return total


def _folds(labels: Array, seed: int) -> tuple[list[Array], bool]:
    """Rows of each fold, and whether whole texts were kept together: a fold's names are then new to the others."""
    used, index = np.unique(labels, return_inverse=True)
    together = len(used) >= FEWEST_TEXTS
    count = len(used) if together else len(labels)
    fold = np.random.default_rng(seed).permutation(count) % FOLDS
    fold = fold[index] if together else fold
    return [np.flatnonzero(fold == f) for f in range(FOLDS)], together


def _placed(X: Matrix, T: Array, y: Array, rows: Array, maps: Maps) -> tuple[Array, Array, Array]:
    """Rows held back and the names to choose among, both in the space; where captions abound, some of both."""
    pool = np.arange(len(T))
    if len(T) > POOL:
        rows = rows[:POOL]
        pool = np.unique(y[rows])
    return maps.place_images(np.asarray(X[rows])), maps.place_texts(T[pool]), np.searchsorted(pool, y[rows])


def _ranks(placed: Array, texts: Array, labels: Array) -> Iterator[tuple[Array, Array]]:
    """Of blocks of rows: how many names lie nearer than a row's own, and how many others as near."""
    for rows, block in blocks(placed):
        cosines = np.asarray(block, dtype=np.float64) @ np.asarray(texts, dtype=np.float64).T
        own = cosines[np.arange(len(block)), labels[rows]][:, None]
        nearer = (cosines > own + SAME).sum(axis=1)
        yield nearer, (cosines >= own - SAME).sum(axis=1) - nearer - 1


def _reciprocal(placed: Array, texts: Array, labels: Array) -> float:
    """Mean reciprocal rank of the right text: as top-1, but smoother."""
    ranks = _ranks(placed, texts, labels)
    return float(np.mean(np.concatenate([1 / (1 + nearer + ties / 2) for nearer, ties in ranks])))


def _zero_shot(placed: Array, texts: Array, labels: Array, new_names: bool | None = None) -> ZeroShot:
    """Names that lie equally near share the point: a space that maps everything to one place is right by chance."""
    hits = float(sum(((nearer == 0) / (1 + ties)).sum() for nearer, ties in _ranks(placed, texts, labels)))
    n = len(placed)
    return ZeroShot(hits / n, 1 / len(texts), n, wilson(hits, n), new_names)


def _checked(
    features: Any, texts: Any, labels: Any, method: str, rank: int, alphas: Sequence[float]
) -> tuple[Matrix, Array, Array]:
    if method not in ("cca", "ridge"):
        raise InputError(f"`method` must be `cca` or `ridge`; got {method!r}")
    if rank < 1:
        raise InputError(f"`rank` must be at least 1; got {rank}")
    if not len(alphas) or min(alphas) <= 0:
        raise InputError(f"`alphas` must be positive numbers, at least one; got {list(alphas)}")
    X = validate.representation("features", features, len(features))
    T = np.asarray(validate.representation("texts", texts, len(texts)), dtype=np.float64)
    if len(X) < FEWEST_ROWS or len(T) < 2:
        raise InputError(f"a bridge needs {FEWEST_ROWS} rows and two texts; got {len(X)} rows and {len(T)} texts")
    if labels is None and len(T) != len(X):
        raise InputError(
            f"`texts` must have one row for each of `features`, {len(X)}; got {len(T)}; "
            "or give `labels` beside the names of the classes"
        )
    if labels is None:
        return X, T, np.arange(len(X))
    return X, T, _checked_labels(labels, len(X), len(T))


def _checked_labels(labels: Any, n: int, k: int) -> Array:
    y = validate.vector("labels", labels, n)
    if (y != np.round(y)).any():
        raise InputError("`labels` must be class indices; number the classes from 0 in the order of their names")
    bad = (y < 0) | (y >= k)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(f"`labels` must name one of the {k} texts, from 0 to {k - 1}; got {y[row]} at row {row}")
    return y.astype(np.int64)


def _check_columns(name: str, array: Matrix, columns: int) -> None:
    if array.shape[1] != columns:
        raise InputError(
            f"the bridge was fitted on {columns} columns of `{name}`; got {array.shape[1]}; use the same encoder"
        )
