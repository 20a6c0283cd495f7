"""Whether near influence embeddings have near influence explanations (Wang et al. 2023, Lemma 1 and equation 7).

    python benchmarks/infembed_explanations.py [--seeds 3]       AG News, less than a minute of a core

An explanation of a test row is its influence with every training row; the lemma bounds the squared distance of two of
them by a constant times that of the rows' embeddings, and equation 7 therefore clusters the embeddings. The least such
constant is the largest eigenvalue of T'T, T the training rows' embeddings. Logistic regression (C = 1) on 100 principal
axes of the words, of the annotators' labels of 8,000 of the 10,000 training rows; a seed draws them and starts k-means;
explanations have those 8,000 numbers. P = 500, D = 100, 7,600 test rows.

"Ratio": squared distance of explanations, of that of embeddings, of the constant, over 20,000 random pairs. "Left": the
share of the k-means objective that is left by 25 clusters, of the embeddings, which is what is minimised, and of the
explanations, which is what is meant; "more": of the latter, than by k-means of all columns, seed by seed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from bridge import table
from errata import Evaluation
from errata.bench.tables import data_folder
from errata.inputs.influence.head import HeadInfluence, InfluenceOptions
from errata.slicers import make
from infembed_share import News, read
from trained import over_runs

Array = np.ndarray
AXES = 100  # principal axes of the words
LEARNT = 8_000
PAIRS = 20_000
CLUSTERS = 25
SURROGATE = "k-means of all columns"
FOUR_A_CLASS = 16  # columns that `recommended` clusters


def embed(news: News, said: Array, seed: int) -> tuple[Evaluation, Array]:
    """Test rows with influence embeddings, and those of the training rows."""
    rng = np.random.default_rng([seed, 7])
    mine = np.sort(rng.permutation(np.flatnonzero(news.learnt))[:LEARNT])
    X = news.X[:, :AXES]
    model = LogisticRegression(max_iter=5000).fit(X[mine], said[mine])

    def rows(index: Array, labels: Array) -> Evaluation:
        return Evaluation(
            labels=labels[index], probs=model.predict_proba(X[index]), representations={"words": X[index]}
        )

    train = rows(mine, said)
    fitted = HeadInfluence.fit(train, InfluenceOptions(rows=None))
    test = fitted.embed(rows(np.flatnonzero(~news.learnt), news.labels))
    return test, np.asarray(fitted.embed(train).representations["influence"], dtype=np.float64)


def as_explanations(E: Array, T: Array) -> tuple[Array, float]:
    """Explanations E T', turned so that they have as many columns as embeddings and the same distances, and C."""
    sizes, directions = np.linalg.eigh(T.T @ T)
    return E @ (directions * np.sqrt(np.maximum(sizes, 0))), float(sizes[-1])


def compare_pairs(E: Array, explanations: Array, constant: float, rows: Array, seed: int) -> list[float]:
    """Rank correlation of squared distances, and the largest and the median ratio, of the constant."""
    rng = np.random.default_rng(seed)
    first = rng.choice(rows, PAIRS)
    second = rng.choice(rows, PAIRS)
    apart = first != second
    near = np.square(E[first[apart]] - E[second[apart]]).sum(axis=1)
    meant = np.square(explanations[first[apart]] - explanations[second[apart]]).sum(axis=1)
    ratio = meant / near / constant
    return [float(spearmanr(near, meant)[0]), float(ratio.max()), float(np.median(ratio))]


def left(X: Array, clusters: Array) -> float:
    """The share of the sum of squares that is within clusters."""
    total = np.square(X - X.mean(axis=0)).sum()
    parts = [X[clusters == k] for k in np.unique(clusters)]
    return float(sum(np.square(part - part.mean(axis=0)).sum() for part in parts) / total)


def clusterings(test: Evaluation, E: Array, explanations: Array, seed: int) -> dict[str, Array]:
    """(n,) clusters by name."""
    found = {}
    sources = {
        SURROGATE: E,
        "k-means of the first 16 columns": E[:, :FOUR_A_CLASS],
        "k-means of the explanations": explanations,
    }
    for name, X in sources.items():
        found[name] = KMeans(CLUSTERS, n_init=1, max_iter=100, random_state=seed).fit_predict(X)
    for preset in ("recommended", "as_published"):
        slicer = make(f"infembed:{preset}", seed=seed, options={"slices": CLUSTERS}).fit(test)
        found[f"infembed, {preset}"] = slicer.membership(test).argmax(axis=1)
    found["label x prediction, 16 groups"] = np.asarray(test.labels) * 4 + np.asarray(test.predictions)
    found["random"] = np.random.default_rng(seed).integers(0, CLUSTERS, len(E))
    return found


def measure(seeds: int, cache: Path) -> None:
    news = read("words", cache)
    said = pd.read_parquet(data_folder() / "agnews.parquet")["noisy_label"].to_numpy().astype(int)
    distances: dict[str, list[list[float]]] = {"all": [], "wrong": []}
    objectives: dict[str, list[list[float]]] = {}
    for seed in range(seeds):
        test, T = embed(news, said, seed)
        E = np.asarray(test.representations["influence"], dtype=np.float64)
        explanations, constant = as_explanations(E, T)
        wrong = np.asarray(test.errors)
        print(f"seed {seed}: {E.shape[1]} columns, {1 - wrong.mean():.3f} right, constant {constant:.4g}", flush=True)
        distances["all"].append(compare_pairs(E, explanations, constant, np.arange(len(E)), seed))
        distances["wrong"].append(compare_pairs(E, explanations, constant, np.flatnonzero(wrong), seed))
        found = clusterings(test, E, explanations, seed)
        meant = left(explanations, found[SURROGATE])
        for name, clusters in found.items():
            own = left(explanations, clusters)
            objectives.setdefault(name, []).append([left(E, clusters), own, own - meant])
    print_means(["pairs of rows", "Spearman", "largest ratio", "median ratio"], distances)
    print_means(["25 clusters by", "left, of embeddings", "left, of explanations", "more"], objectives)


def print_means(header: Sequence[str], lines: dict[str, list[list[float]]]) -> None:
    rows = []
    for name, of_seeds in lines.items():
        rows.append([name, *(over_runs(values) for values in zip(*of_seeds, strict=True))])
    table(list(header), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    measure(asked.seeds, asked.cache)


if __name__ == "__main__":
    main()
