"""How many slices of audits by default have a name, over data sets, models and seeds.

    python benchmarks/name_shares.py 1 2 3

Models are small networks, trained on other rows than those that are audited; slices are searched for in their hidden
layer and, of images, in the principal axes of the pixels. Seed 0 of the faces was looked at while the limits of names
were chosen: figures in docs/studies/rules.md are of seeds 1 to 3.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.neural_network import MLPClassifier

import errata
from errata import Evaluation
from errata.explain.names import Name
from names import SIGNS, TOPICS, pixels, read, texts

Array = np.ndarray
FACES = 6000  # that train a model; 9,000 others are audited


def hidden(model: MLPClassifier, X: Array) -> Array:
    """The hidden layer of a network."""
    return np.maximum(X @ model.coefs_[0] + model.intercepts_[0], 0).astype(np.float32)


@cache
def face_pixels() -> Array:
    """(n, 1728) all faces, small."""
    return pixels(read("utkface64.parquet"), 24)


def face_labels(frame: pd.DataFrame, task: str) -> Array:
    """(n,) text; empty where a face has no part in a task."""
    if task == "gender":
        return frame["gender"].to_numpy(str)
    if task == "old or young":
        return np.select([frame["age"] >= 45, frame["age"].between(12, 30)], ["old", "young"], "")
    bounds = [frame["age"] < 13, frame["age"] < 30, frame["age"] < 55]
    return np.select(bounds, ["child", "young", "middle"], "old")


def faces(task: str, space: str, seed: int) -> Evaluation:
    """Faces by a network on principal axes of the pixels; age, gender and race as columns."""
    frame = read("utkface64.parquet")
    labels = face_labels(frame, task)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(labels != ""))
    train = order[:FACES]
    rows = order[FACES : FACES + 9000]
    axes = PCA(96, random_state=seed, svd_solver="randomized").fit(face_pixels()[train])
    scale = axes.transform(face_pixels()[train]).std(axis=0)
    model = MLPClassifier((96,), random_state=seed, max_iter=25, early_stopping=True)
    model.fit(axes.transform(face_pixels()[train]) / scale, labels[train])
    X = axes.transform(face_pixels()[rows])
    places = hidden(model, X / scale) if space == "hidden layer" else X[:, :32].astype(np.float32)
    columns = frame.iloc[rows]
    return Evaluation(
        labels=np.searchsorted(model.classes_, labels[rows]),
        probs=model.predict_proba(X / scale),
        class_names=tuple(model.classes_),
        representations={space: places},
        metadata={
            "age": columns["age"].to_numpy(),
            "gender": columns["gender"].to_numpy(str),
            "race": columns["race"].to_numpy(str),
        },
    )


def signs(space: str, seed: int) -> Evaluation:
    """Traffic signs of seven classes; size, brightness and contrast as columns."""
    frame = read("gtsrb32.parquet")
    frame = frame[frame["label"].isin(SIGNS)].sample(frac=1, random_state=seed).reset_index(drop=True)
    train = frame[frame["split"] == "train"][:4000]
    audited = frame[frame["split"] == "test"].reset_index(drop=True)
    images = pixels(audited, 16)
    axes = PCA(80, random_state=seed).fit(pixels(train, 16))
    model = MLPClassifier((128,), random_state=seed, max_iter=120, early_stopping=True)
    model.fit(axes.transform(pixels(train, 16)), train["label"])
    X = axes.transform(images)
    return Evaluation(
        labels=np.searchsorted(model.classes_, audited["label"]),
        probs=model.predict_proba(X),
        class_names=tuple(SIGNS[label] for label in model.classes_),
        representations={space: hidden(model, X) if space == "hidden layer" else X.astype(np.float32)},
        metadata={
            "width": audited["original_width"].to_numpy(),
            "height": audited["original_height"].to_numpy(),
            "brightness": np.round(images.mean(axis=1), 3),
            "contrast": np.round(images.std(axis=1), 3),
        },
    )


def adult(seed: int) -> Evaluation:
    """Census income by a network on its columns, and its hidden layer."""
    frame = read("adult.parquet").sample(frac=1, random_state=seed).reset_index(drop=True)
    columns = frame.drop(columns=["income", "split"])
    X = pd.get_dummies(columns).astype(np.float32).to_numpy()
    X = np.clip((X - X[:12000].mean(axis=0)) / (X[:12000].std(axis=0) + 1e-6), -5, 5)
    model = MLPClassifier((64,), random_state=seed, max_iter=15, early_stopping=True)
    model.fit(X[:12000], frame["income"][:12000].astype(str))
    rows = slice(12000, 26000)
    return Evaluation(
        labels=np.searchsorted(model.classes_, frame["income"][rows].to_numpy(str)),
        probs=model.predict_proba(X[rows]),
        class_names=tuple(model.classes_),
        representations={"hidden layer": hidden(model, X[rows])},
        metadata={name: columns[name][rows].to_numpy() for name in columns},
    )


def news(seed: int) -> Evaluation:
    """AG News: trained on what annotators said, audited on clean labels; the length of a text as a column."""
    frame = read("agnews.parquet")
    train = frame[frame["split"] == "train"].sample(5000, random_state=seed)
    return texts(train, "noisy_label", frame[frame["split"] == "test"].sample(5000, random_state=seed), TOPICS)


def evaluations(seeds: list[int]) -> Iterator[tuple[str, Evaluation]]:
    """Every audited set, by the line of the table that it counts in."""
    for seed in seeds:
        for space in ("hidden layer", "pixels"):
            for task in ("old or young", "gender", "four ages"):
                yield f"faces, {task}", faces(task, space, seed)
            yield "traffic signs", signs(space, seed)
        yield "census income", adult(seed)
        yield "news", news(seed)


def shares(evaluation: Evaluation) -> Array:
    """(5,) slices, those named by a rule or a description, weak ones of them; confirmed slices, named ones."""
    counts = np.zeros(5, dtype=int)
    for slice_ in errata.audit(evaluation).slices:
        name = slice_.explanation(Name)
        confirmed = slice_.verdict == "confirmed"
        named = name.match is not None
        counts += [1, named, name.weak, confirmed, confirmed and named]
    return counts


def main() -> None:
    """Count slices and named ones, and print a table."""
    totals: dict[str, Array] = {}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", type=int, nargs="*", default=[1, 2, 3])
    for line, evaluation in evaluations(parser.parse_args().seeds):
        totals[line] = totals.get(line, 0) + shares(evaluation)
    print("| data | named | of them weak | confirmed and named |\n|---|---|---|---|")
    for line, (n, named, weak, confirmed, both) in totals.items():
        print(f"| {line} | {named} of {n} | {weak} | {both} of {confirmed} |")


if __name__ == "__main__":
    main()
