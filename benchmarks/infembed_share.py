"""How many of a model's errors lie in slices of at most 10% accuracy, and on what that depends (AG News).

    python benchmarks/infembed_share.py rows [--space words] [--seeds 3]       by how many rows the model learnt
    python benchmarks/infembed_share.py settings [--space words] [--seeds 3]   one thing at a time, 10,000 rows

Wang et al. 2023, section 4.4, have 9 such slices of at least 10 rows with 452 rows, of 475 errors. Logistic regression
(C = 10) on MiniLM sentences or on 300 principal axes of the words, of true labels; `infembed`, K = 25, on the 7,600
test rows. A seed draws the rows that are learnt and starts the clustering. Logits times a number change no prediction.
"Of errors": the share that those slices hold; "sure": the mean probability that errors have for their prediction; "one
kind": the share of errors whose label and prediction are one of the commonest four pairs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from errata import Evaluation
from errata.bench.tables import data_folder
from errata.inputs.influence.head import HeadInfluence, InfluenceOptions
from errata.slicers import make
from infembed import sentences, word_axes
from trained import over_runs

Array = np.ndarray
ROWS = (500, 1000, 2500, 5000, 10_000)
MOST = 0.1  # accuracy of a slice
LEAST = 10  # rows of a slice


@dataclass(frozen=True)
class Line:
    """One setting. `C`: of the regression."""

    learnt: int = 10_000
    C: float = 10.0
    sharper: float = 1.0
    preset: str = "recommended"
    options: dict[str, Any] = field(default_factory=lambda: {"slices": 25})
    influence: dict[str, Any] = field(default_factory=dict)


SETTINGS = {
    "as it is": Line(),
    **{f"logits times {t:g}": Line(sharper=t) for t in (0.5, 2, 4, 8)},
    **{f"regression of C = {C:g}": Line(C=C) for C in (1, 100)},
    **{f"K = {k}": Line(options={"slices": k}) for k in (10, 50, 100)},
    **{f"{a} columns a class": Line(options={"slices": 25, "axes": a}) for a in (1, 2, 8)},
    "all columns": Line(options={"slices": 25, "axes": None}),
    "rows of length one": Line(options={"slices": 25, "unit_length": True}),
    "normalised centroids": Line(options={"slices": 25, "clusterer": "normalised"}),
    "as published": Line(preset="as_published"),
    "P = 50": Line(influence={"steps": 50}),
    "D = 16": Line(influence={"rank": 16}),
    "no damping": Line(influence={"damping": 0.0}),
    "ten times the damping": Line(influence={"damping": 10.0}),  # times the regression's own
    "logits times 8, K = 100": Line(sharper=8, options={"slices": 100}),
    "logits times 8, as published": Line(sharper=8, preset="as_published"),
}


@dataclass(frozen=True, eq=False)
class News:
    """What is read and what is true of all rows."""

    X: Array  # (n, d)
    labels: Array  # (n,)
    learnt: Array  # (n,) bool, rows of the training split
    models: dict[tuple[float, bytes], LogisticRegression] = field(default_factory=dict)

    def model(self, C: float, rows: Array) -> LogisticRegression:
        """Trained once on the same rows."""
        key = (C, rows.tobytes())
        if key not in self.models:
            self.models[key] = LogisticRegression(C=C, max_iter=5000).fit(self.X[rows], self.labels[rows])
        return self.models[key]


def read(space: str, cache: Path) -> News:
    frame = pd.read_parquet(data_folder() / "agnews.parquet")
    learnt = (frame["split"] == "train").to_numpy()
    path = cache / ("news-words.npy" if space == "words" else "news.npy")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        X = word_axes(frame["text"], learnt) if space == "words" else sentences(frame["text"].tolist())
        np.save(path, X, allow_pickle=False)
    return News(np.load(path, allow_pickle=False), frame["label"].to_numpy(), learnt)


def low_slices(news: News, line: Line, space: str, seed: int) -> tuple[Evaluation, Array]:
    """Test rows of one model, and (n, s) bool: who is in its slices of low accuracy."""
    rng = np.random.default_rng([seed, 5])
    mine = np.sort(rng.permutation(np.flatnonzero(news.learnt))[: line.learnt])
    model = news.model(line.C, mine)

    def rows(index: Array) -> Evaluation:
        logits = line.sharper * model.decision_function(news.X[index])
        exp = np.exp(logits - logits.max(axis=1, keepdims=True))
        probs = exp / exp.sum(axis=1, keepdims=True)
        return Evaluation(labels=news.labels[index], probs=probs, representations={space: news.X[index]})

    decay = 1 / (line.C * len(mine))
    times = line.influence.get("damping", 1.0)
    fitted = HeadInfluence.fit(rows(mine), InfluenceOptions(rows=None, **{**line.influence, "damping": times * decay}))
    test = fitted.embed(rows(np.flatnonzero(~news.learnt)))
    slicer = make(f"infembed:{line.preset}", seed=seed, options=line.options)
    inside = slicer.fit(test).membership(test) > 0.5
    wrong = np.array([test.errors[members].mean() if members.any() else 0.0 for members in inside.T])
    return test, inside[:, (inside.sum(axis=0) >= LEAST) & (wrong >= 1 - MOST)]


def measured(news: News, line: Line, space: str, seed: int) -> dict[str, float]:
    """The slices of one model."""
    test, inside = low_slices(news, line, space, seed)
    held = inside.any(axis=1)
    errors = np.asarray(test.errors)
    pairs = test.labels[errors] * 4 + test.predictions[errors]
    return {
        "right": 1 - float(errors.mean()),
        "errors": int(errors.sum()),
        "slices": inside.shape[1],
        "rows": int(held.sum()),
        "of errors": float((held & errors).sum() / errors.sum()),
        "sure": float(np.asarray(test.probs)[errors].max(axis=1).mean()),
        "one kind": float(np.sort(np.bincount(pairs, minlength=16))[-4:].sum() / errors.sum()),
    }


def print_lines(news: News, lines: dict[str, Line], space: str, seeds: Sequence[int]) -> None:
    print("| | right | errors | slices | their rows | of errors | sure | one kind |\n" + "|---" * 8 + "|")
    for name, line in lines.items():
        found = [measured(news, line, space, seed) for seed in seeds]
        columns = {key: [each[key] for each in found] for key in found[0]}
        counts = [", ".join(f"{value:,.0f}" for value in columns[key]) for key in ("errors", "slices", "rows")]
        shares = [over_runs(columns[key], 2) for key in ("of errors", "sure", "one kind")]
        print(f"| {name} | {np.mean(columns['right']):.3f} | {' | '.join([*counts, *shares])} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["rows", "settings"])
    parser.add_argument("--space", choices=["minilm", "words"], default="minilm")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    lines = SETTINGS
    if asked.study == "rows":
        lines = {f"{n:,} rows": Line(learnt=n) for n in ROWS}
    print_lines(read(asked.space, asked.cache), lines, asked.space, range(asked.seeds))


if __name__ == "__main__":
    main()
