"""What an audit by default finds on real data with columns, what it calls it, and how well each name fits.

    python benchmarks/names.py adult faces signs objects news reviews wine

Models are small and trained on other rows than those that are audited. Figures in docs/studies/rules.md.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
from PIL import Image
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import errata
from errata import Audit, Evaluation, Slice
from errata.bench.tables import data_folder
from errata.explain.names import Name
from errata.inputs.media import ImageBytes, Texts

Array = np.ndarray
SIGNS = {
    1: "30 km/h", 2: "50 km/h", 4: "70 km/h", 5: "80 km/h", 10: "no passing lorries", 13: "yield", 38: "keep right",
}  # fmt: skip
TOPICS = ("world", "sport", "business", "sci/tech")


def read(name: str) -> pd.DataFrame:
    """A table of the shared data."""
    return pd.read_parquet(data_folder() / name)


def pixels(frame: pd.DataFrame, px: int) -> Array:
    """(n, px * px * 3) in [0, 1]."""
    images = [Image.open(io.BytesIO(data)).convert("RGB").resize((px, px)) for data in frame["image"]]
    return np.stack([np.asarray(image, dtype=np.float32).ravel() for image in images]) / 255


def adult() -> Evaluation:
    """Gradient boosting on census income; columns and no embedding."""
    frame = read("adult.parquet")
    columns = frame.drop(columns=["income", "split"])
    texts = [name for name in columns if columns[name].dtype.kind not in "if"]
    columns[texts] = columns[texts].astype("category")
    train = frame["split"] == "train"
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    model.fit(columns[train], frame["income"][train])
    audited = frame[~train]
    return Evaluation(
        labels=np.searchsorted(model.classes_, audited["income"].to_numpy(str)),
        probs=model.predict_proba(columns[~train]),
        class_names=tuple(model.classes_),
        metadata={name: audited[name].to_numpy() for name in columns},
    )


def faces() -> Evaluation:
    """A woman or a man, by a network on principal axes of the pixels; age and race as columns."""
    frame = read("utkface64.parquet").sample(frac=1, random_state=0).reset_index(drop=True)[:16000]
    X = pixels(frame, 24)
    axes = PCA(96, random_state=0, svd_solver="randomized").fit(X[:7000]).transform(X)
    scaled = axes / axes[:7000].std(axis=0)
    model = MLPClassifier((96,), random_state=0, max_iter=25, early_stopping=True)
    model.fit(scaled[:7000], frame["gender"][:7000].astype(str))
    audited = frame[7000:]
    return Evaluation(
        labels=np.searchsorted(model.classes_, audited["gender"].to_numpy(str)),
        probs=model.predict_proba(scaled[7000:]),
        class_names=tuple(model.classes_),
        representations={"embedding": axes[7000:, :32].astype(np.float32)},
        metadata={"age": audited["age"].to_numpy(), "race": audited["race"].to_numpy(str)},
        media=ImageBytes(pa.chunked_array([pa.array(audited["image"])])),
    )


def signs() -> Evaluation:
    """Seven traffic signs, by a network on principal axes of the pixels; four columns."""
    frame = read("gtsrb32.parquet")
    frame = frame[frame["label"].isin(SIGNS)].sample(frac=1, random_state=0).reset_index(drop=True)
    train = frame[frame["split"] == "train"][:4000]
    audited = frame[frame["split"] == "test"].reset_index(drop=True)
    X = pixels(audited, 16)
    axes = PCA(80, random_state=0).fit(pixels(train, 16))
    model = MLPClassifier((128,), random_state=0, max_iter=120, early_stopping=True)
    model.fit(axes.transform(pixels(train, 16)), train["label"])
    return Evaluation(
        labels=np.searchsorted(model.classes_, audited["label"]),
        probs=model.predict_proba(axes.transform(X)),
        class_names=tuple(SIGNS[label] for label in model.classes_),
        representations={"pixels": axes.transform(X).astype(np.float32)},
        metadata={
            "width": audited["original_width"].to_numpy(),
            "height": audited["original_height"].to_numpy(),
            "brightness": np.round(X.mean(axis=1), 3),
            "contrast": np.round(X.std(axis=1), 3),
        },
        media=ImageBytes(pa.chunked_array([pa.array(audited["image"])])),
    )


def objects() -> Evaluation:
    """Ten kinds of things (CIFAR-10), by a network on principal axes of the pixels; three columns of the images."""
    frame = read("cifar10.parquet").sample(frac=1, random_state=0)
    train = frame[frame["split"] == "train"][:12000]
    audited = frame[frame["split"] == "test"].reset_index(drop=True)
    X = pixels(audited, 32)
    axes = PCA(96, random_state=0, svd_solver="randomized").fit(pixels(train, 32))
    model = MLPClassifier((128,), random_state=0, max_iter=25, early_stopping=True)
    model.fit(axes.transform(pixels(train, 32)), train["label"].astype(str))
    colours = X.reshape(len(X), -1, 3).mean(axis=1)
    return Evaluation(
        labels=np.searchsorted(model.classes_, audited["label"].to_numpy(str)),
        probs=model.predict_proba(axes.transform(X)),
        class_names=tuple(model.classes_),
        representations={"pixels": axes.transform(X)[:, :48].astype(np.float32)},
        metadata={
            "brightness": np.round(X.mean(axis=1), 3),
            "contrast": np.round(X.std(axis=1), 3),
            "blueness": np.round(colours[:, 2] - colours[:, 0], 3),
        },
        media=ImageBytes(pa.chunked_array([pa.array(audited["image"])])),
    )


def texts(train: pd.DataFrame, target: str, audited: pd.DataFrame, class_names: tuple[str, ...]) -> Evaluation:
    """Logistic regression on words; the length of a text as a column, axes of the words as the embedding."""
    words = TfidfVectorizer(min_df=3, sublinear_tf=True)
    X = words.fit_transform(train["text"])
    model = LogisticRegression(max_iter=300).fit(X, train[target])
    inputs = words.transform(audited["text"])
    axes = TruncatedSVD(64, random_state=0).fit(X)
    return Evaluation(
        labels=audited["label"].to_numpy(int),
        probs=model.predict_proba(inputs),
        class_names=class_names,
        representations={"words": axes.transform(inputs).astype(np.float32)},
        metadata={"words_in_text": audited["text"].str.split().str.len().to_numpy()},
        media=Texts(audited["text"].to_numpy(object)),
    )


def news() -> Evaluation:
    """AG News: trained on what annotators said, audited on clean labels."""
    frame = read("agnews.parquet")
    train = frame[frame["split"] == "train"].sample(5000, random_state=0)
    return texts(train, "noisy_label", frame[frame["split"] == "test"].sample(5000, random_state=0), TOPICS)


def reviews() -> Evaluation:
    """SST-2: half of the sentences train the model."""
    frame = read("sst2.parquet").sample(frac=1, random_state=0)
    half = len(frame) // 2
    return texts(frame[:half], "label", frame[half:], ("negative", "positive"))


def wine() -> Evaluation:
    """The quality of wines as a number; columns and no embedding."""
    frame = read("wine.parquet").sample(frac=1, random_state=0).reset_index(drop=True)
    columns = frame.drop(columns="quality")
    inputs = columns.assign(colour=(columns["colour"] == "red").astype(float))
    half = len(frame) // 2
    model = HistGradientBoostingRegressor(random_state=0).fit(inputs[:half], frame["quality"][:half])
    return Evaluation(
        labels=frame["quality"][half:].to_numpy(float),
        predictions=model.predict(inputs[half:]),
        task="regression",
        metadata={name: columns[name][half:].to_numpy() for name in columns},
    )


TABLES: dict[str, Callable[[], Evaluation]] = {
    "adult": adult, "faces": faces, "signs": signs, "objects": objects, "news": news, "reviews": reviews, "wine": wine,
}  # fmt: skip


def contrast_counts(name: Name) -> str:
    """How many members and others have what the members have more or less of."""
    if name.contrast is None:
        return ""
    inside = name.contrast.slice
    outside = name.contrast.rest
    return f"({inside[0]} of {inside[1]} against {outside[0]} of {outside[1]})"


def line(slice_: Slice) -> str:
    """A slice as a row of a table."""
    name = slice_.explanation(Name)
    measured = slice_.confirm
    fits = "its own rule | "
    if name.match is None:
        fits = f"{contrast_counts(name)} | "
    elif not name.own:
        fits = f"{name.match.covers[0]} of {name.match.covers[1]} | {name.match.precise[0]} of {name.match.precise[1]}"
    weak = ", weak" if name.weak else ""
    wrong = f"{measured.errors} of {measured.n}: {measured.rate:.1%} | {measured.rest_rate:.1%}"
    return f"| {slice_.name}{weak} | {', '.join(slice_.found_by)} | {wrong} | {fits} |"


def show(name: str, audit: Audit, seconds: float) -> None:
    """The confirmed slices of an audit."""
    total = audit.overall[0][1]
    print(f"\n{name}: {total.n} rows, {total.confirm_rate:.1%} bad, {audit.settings['tested']} tested, {seconds:.0f} s")
    print("| slice | found by | wrong | rest | covers | precise |\n|---|---|---|---|---|---|")
    for slice_ in audit.confirmed:
        print(line(slice_))


if __name__ == "__main__":
    for table in sys.argv[1:] or TABLES:
        evaluation = TABLES[table]()
        start = time.perf_counter()
        show(table, errata.audit(evaluation), time.perf_counter() - start)
