"""Tables that slice settings are made from, and models that learn from their rows.

A table has a binary target, binary attributes, and a representation that is foreign to every model trained on it.
For images it is the penultimate layer of a small network trained on finer labels than the target, on rows that are
then left out of the table; the literature uses CLIP, which is not available offline.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core import Array, InputError, require
from ..core.errors import unknown
from ..inputs.decoding import open_image
from ..store import atomic_file
from .scenes import sample_scenes, sample_world
from .worlds import TARGET

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# (rows to learn from, their labels, rows wanted) -> probability of 1 and penultimate layer of the rows wanted
Train = Callable[[Array, Array, Array], tuple[Array, Array]]

PX = 32
ENCODER_SHARE = 0.4  # of the rows, which train the representation and are then left out
EPOCHS = 4
ANIMALS = ("bird", "cat", "deer", "dog", "frog", "horse")
AGES = (0, 18, 30, 45, 60, 200)
MOST_VALUES = 20  # of a column that is an attribute
MOST_TEXTS = 200  # different ones of a column that is a feature


@dataclass(frozen=True, eq=False)
class Table:
    """Row i of every array is one example. Checked once, here."""

    name: str
    target: Array  # (n,) 0 or 1
    attributes: Mapping[str, Array]  # name -> (n,) bool
    features: Array  # (n, d) a representation that no model under test has made
    features_name: str
    images: Array | None = None  # (n, px, px, 3) uint8
    groups: Array | None = None  # (n,) rows that are never split apart

    def __post_init__(self) -> None:
        n = len(self.target)
        if not np.isin(self.target, (0, 1)).all() or len(np.unique(self.target)) < 2:
            raise InputError(
                f"`target` of table `{self.name}` must be 0 or 1, and both; got {np.unique(self.target)[:5]}"
            )
        columns: dict[str, Any] = {**self.attributes, "features": self.features}
        columns |= {"images": self.images, "groups": self.groups}
        for name, values in columns.items():
            if values is not None and len(values) != n:
                raise InputError(f"`{name}` of table `{self.name}` has {len(values)} rows where `target` has {n}")

    def __len__(self) -> int:
        return len(self.target)

    @cached_property
    def fingerprint(self) -> str:
        """Of what settings are made from; a folder of answers is no use to a file that has changed."""
        digest = hashlib.blake2b(digest_size=8)
        for name, column in {"": self.target, **self.attributes}.items():
            digest.update(name.encode() + np.packbits(column.astype(bool)).tobytes())
        digest.update(np.ascontiguousarray(self.features, dtype=np.float64).tobytes())
        return digest.hexdigest()

    def attribute(self, name: str) -> Array:
        """The column of one attribute; InputError where the table does not have it."""
        if name not in self.attributes:
            raise unknown(f"attribute of table `{self.name}`", name, self.attributes)
        return self.attributes[name]


def data_folder() -> Path:
    """ERRATA_DATA, or ../shared/data beside the clone."""
    return Path(os.environ.get("ERRATA_DATA", Path(__file__).parents[4] / "shared" / "data"))


def from_scenes(n: int = 6000, *, seed: int = 0, px: int = PX) -> Table:
    """Scenes of one SpotCheck world: is there a square? Attributes: all else that varies, where a square or not."""
    world = sample_world(seed)
    scenes = sample_scenes(world, n, seed)
    at = {name: scenes.features[:, i] == 1 for i, name in enumerate(world.features) if name in world.enabled}
    target = at.pop(TARGET).astype(np.int64)
    # The attributes themselves would be the answer; a little noise keeps mixtures from collapsing on a cube's corners.
    noise = np.random.default_rng(seed).normal(0, 0.2, (n, len(at) + 1))
    features = np.column_stack([target, *at.values()]) + noise
    return Table(f"scenes-{seed}", target, at, features, "scene description with noise", scenes.images(None, px))


def cifar10(
    folder: Path | None = None,
    *,
    positive: Literal["animal", "vehicle"] = "animal",
    rows: int | None = None,
    seed: int = 0,
    cache: Path | None = None,
) -> Table:
    """Animal or vehicle? Attributes: the ten classes, and three properties of the pixels that cross the target."""
    frame = sample_rows(read_parquet(folder, "cifar10.parquet"), rows, seed)
    images = _cached(cache, f"cifar10-{len(frame)}-{seed}-images", lambda: decoded(frame["image"]))
    names, fine = np.unique(frame["label"].to_numpy(str), return_inverse=True)
    rest, features = _encode(images, fine, seed, cache, f"cifar10-{len(frame)}-{seed}")
    images = images[rest]
    fine = fine[rest]
    attributes = {str(name): fine == i for i, name in enumerate(names)} | pixel_attributes(images)
    target = (np.isin(names[fine], ANIMALS) == (positive == "animal")).astype(np.int64)
    return Table(
        f"cifar10-{positive}", target, attributes, features, "small network trained on the ten classes", images
    )


def utkface(folder: Path | None = None, *, rows: int | None = None, seed: int = 0, cache: Path | None = None) -> Table:
    """A woman or a man? Attributes: bands of age and groups of race, as the data set names them."""
    frame = sample_rows(read_parquet(folder, "utkface64.parquet"), rows, seed)
    images = _cached(cache, f"utkface-{len(frame)}-{seed}-images", lambda: decoded(frame["image"]))
    band = np.digitize(frame["age"].to_numpy(), AGES[1:-1])
    races, race = np.unique(frame["race"].to_numpy(str), return_inverse=True)
    target = (frame["gender"].to_numpy(str) == "female").astype(np.int64)
    fine = (band * len(races) + race) * 2 + target
    rest, features = _encode(images, fine, seed, cache, f"utkface-{len(frame)}-{seed}")
    bands = [f"age {low}-{high - 1}" for low, high in pairwise(AGES[:-1])] + [f"age {AGES[-2]}+"]
    attributes = {name: band[rest] == i for i, name in enumerate(bands)}
    attributes |= {str(name): race[rest] == i for i, name in enumerate(races)}
    words = "small network trained on age band, race and gender"
    return Table("utkface", target[rest], attributes, features, words, images[rest])


def pixel_attributes(images: Array) -> dict[str, Array]:
    """Above the median of all images: brightness, red over blue, and contrast."""
    pixels = images.astype(np.float32)
    values = {
        "bright": pixels.mean(axis=(1, 2, 3)),
        "warm": pixels[..., 0].mean(axis=(1, 2)) - pixels[..., 2].mean(axis=(1, 2)),
        "contrasty": pixels.mean(axis=3).std(axis=(1, 2)),
    }
    return {name: value > np.median(value) for name, value in values.items()}


def from_frame(frame: DataFrame, target: str, attributes: Sequence[str], *, name: str = "table") -> Table:
    """A user's own table. Attributes of several values become one a value; all other columns are the features."""
    import pandas as pd

    answers, marks = from_columns(frame, target, attributes)
    rest = frame.drop(columns=[target, *attributes])
    if rest.shape[1] == 0:
        raise InputError("no columns are left for the features: a model needs something besides target and attributes")
    for column in rest.select_dtypes(exclude=["number", "bool"]):
        if rest[column].nunique() > MOST_TEXTS:
            raise InputError(f"column `{column}` has {rest[column].nunique():,} different texts; drop it or bin it")
    rest = pd.get_dummies(rest, dtype=float)
    X = rest.to_numpy(dtype=np.float64)
    if not np.isfinite(X).all():
        column = rest.columns[~np.isfinite(X).all(axis=0)][0]
        raise InputError(f"column `{column}` has missing or infinite values; drop it or impute first")
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    return Table(name, answers, marks, X, "standardised columns")


def from_columns(frame: DataFrame, target: str, attributes: Sequence[str]) -> tuple[Array, dict[str, Array]]:
    """(n,) 0 or 1, where 1 is the larger of the target's two values, and the attributes as name -> (n,) bool."""
    for column in (target, *attributes):
        if column not in frame.columns:
            raise unknown("column", column, map(str, frame.columns))
    values = np.unique(frame[target].dropna())
    if len(values) != 2 or frame[target].isna().any():
        raise InputError(f"`{target}` must have two values and none missing; got {len(values)} values")
    marks: dict[str, Array] = {}
    for column in attributes:
        marks |= _indicators(frame[column], column)
    return (frame[target] == values[1]).to_numpy(np.int64), marks


def _indicators(column: Series[Any], name: str) -> dict[str, Array]:
    """Two values: the second, by the column's name; more: one a value."""
    values = np.unique(column.dropna().to_numpy())
    if not 2 <= len(values) <= MOST_VALUES:
        raise InputError(f"attribute `{name}` has {len(values)} values; bin it to between 2 and {MOST_VALUES}")
    if len(values) == 2:
        named = {name: values[1]}
    else:
        named = {f"{name}={value}": value for value in values}
    return {key: (column == value).to_numpy(bool) for key, value in named.items()}


def train_network(
    images: Array, *, network: str = "small", epochs: int = 10, batch: int = 128, lr: float = 1e-3, seed: int = 0
) -> Train:
    """A network of `errata.train` on images (n, px, px, 3); the representation is its penultimate layer."""
    require("torch", "torch")
    return partial(_train_network, images, network=network, epochs=epochs, batch=batch, lr=lr, seed=seed)


def _train_network(
    images: Array, rows: Array, labels: Array, wanted: Array, *, network: str, seed: int, **settings: Any
) -> tuple[Array, Array]:
    from .. import train

    model = train.network(network, px=images.shape[1], seed=seed)
    train.fit(model, images[rows], labels, seed=seed, **settings)
    logits, penultimate = train.outputs(model, images[wanted])
    return 1 / (1 + np.exp(-logits[:, 0].astype(np.float64))), penultimate


def train_logistic(X: Array, *, C: float = 1.0) -> Train:
    """Logistic regression on columns (n, d); what its only layer sees are the columns themselves, standardised."""
    return partial(_train_logistic, X, C=C)


def _train_logistic(X: Array, rows: Array, labels: Array, wanted: Array, *, C: float) -> tuple[Array, Array]:
    from sklearn.linear_model import LogisticRegression

    centre = X[rows].mean(axis=0)
    spread = np.maximum(X[rows].std(axis=0), 1e-12)
    model = LogisticRegression(C=C, max_iter=1000).fit((X[rows] - centre) / spread, labels)
    scaled = (X[wanted] - centre) / spread
    return model.predict_proba(scaled)[:, 1], scaled


def read_parquet(folder: Path | None, file: str) -> DataFrame:
    """A file of the data folder; InputError where it is not there."""
    import pandas as pd

    path = (folder or data_folder()) / file
    if not path.exists():
        raise InputError(f"no `{file}` in the data folder `{path.parent}`; set ERRATA_DATA to the folder that has it")
    return pd.read_parquet(path)


def sample_rows(frame: DataFrame, rows: int | None, seed: int) -> DataFrame:
    """So many rows, in random order, so that the first of them are like the rest."""
    order = np.random.default_rng(seed).permutation(len(frame))[:rows]
    return frame.iloc[order].reset_index(drop=True)


def decoded(column: Sequence[bytes] | Series[Any]) -> Array:
    """(n, px, px, 3) uint8 from JPEG or PNG bytes."""
    from PIL import Image

    images = np.empty((len(column), PX, PX, 3), dtype=np.uint8)
    for i, data in enumerate(column):
        with open_image(io.BytesIO(data)) as image:
            small = image.convert("RGB")
            if small.size != (PX, PX):
                small = small.resize((PX, PX), Image.Resampling.BOX)
            images[i] = np.asarray(small)
    return images


def _encode(images: Array, fine: Array, seed: int, cache: Path | None, name: str) -> tuple[Array, Array]:
    """The rows that were not trained on, and (n, d) their features by a network trained on `fine` of the others."""
    from ..train import fit, network, outputs

    count = int(ENCODER_SHARE * len(images))
    rest = np.arange(count, len(images))

    def features() -> Array:
        model = network("small", px=PX, outputs=int(fine.max()) + 1, seed=seed)
        fit(model, images[:count], fine[:count], epochs=EPOCHS, batch=128, lr=3e-3, seed=seed)
        return outputs(model, images[rest])[1]

    return rest, _cached(cache, f"{name}-features", features)


def _cached(cache: Path | None, name: str, make: Callable[[], Array]) -> Array:
    """From the cache, or computed and put there."""
    if cache is None:
        return make()
    path = cache / f"{name}.npy"
    if not path.exists():
        made = make()
        with atomic_file(path, replace=True) as partial:
            np.save(partial, made, allow_pickle=False)
    loaded: Array = np.load(path, allow_pickle=False)
    return loaded
