"""The embedded examples: models with weaknesses that no label names, and what an audit should find.

`scenes`: painted images as in SpotCheck, and a small network that is blind to some of their combinations.
`digits`: handwritten digits, classified as below five or not, with one digit almost missing from the training rows;
needs no torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from ..bench.worlds import POSITION
from ..core import Array, Audit, Evaluation, MissingExtra, Progress, Slice, Source, require
from ..inputs import ImageArrays, collect

WORLD = 3  # has one blindspot, which is found; of worlds with two or three usually only the largest is
HIDDEN = 7
HIDDEN_SHARE = 0.1  # of the hidden digit's training rows that are used
TRAIN_SHARE = 0.25
PRECISE = 0.5  # of a confirmed slice must lie in a planted group for the group to count as found
WORDS = {  # what the values 0 and 1 of a feature look like
    "presence": ("absent", "present"),
    "size": ("large", "small"),
    "colour": ("blue", "orange"),
    "texture": ("solid", "striped"),
    "number": ("one", "two"),
}
BACKGROUND = {"colour": ("white", "grey"), "texture": ("plain", "speckled"), "position": ("low", "high")}


@dataclass(frozen=True, eq=False)
class DemoExample:
    """A model's outcomes with the groups that it was made to fail on."""

    evaluation: Evaluation
    planted: Mapping[str, Array]  # name -> (n,) bool: the groups that the model fails on
    description: str


def scenes(seed: int, progress: Progress) -> DemoExample:
    """Train a small network on painted scenes whose blindspots are labelled wrongly, and collect it on fresh ones."""
    torch = _require_torch()
    from ..bench.recipes import RECIPES, train
    from ..bench.scenes import sample_world
    from ..train import outputs

    seed += WORLD
    recipe = RECIPES["small"]
    world = sample_world(seed)
    with _one_thread(torch):
        trained = train(world, recipe, seed=seed, progress=progress)
        test = trained.splits["test"]
        images = test.images(px=recipe.px)
        logits, penultimate = outputs(trained.model, images)
    columns = {name: test.features[:, i] for i, name in enumerate(world.features)}
    visible = [name for name in world.features if name in world.enabled or name == POSITION]
    evaluation = Evaluation(
        labels=test.truth,
        probs=1 / (1 + np.exp(-logits[:, 0].astype(np.float64))),
        representations={"penultimate": penultimate},
        sources={"penultimate": Source(from_model=True)},
        class_names=("no square", "square"),
        metadata={_plain(name): _in_words(name, columns[name]) for name in visible},
        media=ImageArrays(images),
    )
    planted = {_blindspot_words(spot): test.blindspot[:, b] for b, spot in enumerate(world.blindspots)}
    description = f"Planted by wrong labels in training: {len(planted)}. The audit does not know about it."
    return DemoExample(evaluation, planted, description)


def _require_torch() -> ModuleType:
    try:
        return require("torch", "torch")
    except MissingExtra as error:
        raise MissingExtra(f"{error}; or use `--example digits`, which runs without it") from error


@contextmanager
def _one_thread(torch: ModuleType) -> Iterator[None]:
    """Use one thread: so small a network gains nothing from a second, and learns the same on any number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _plain(name: str) -> str:
    """Return "square", "text colour"; the position, a feature of the background in the paper, is the square's."""
    if name == POSITION:
        return "square position"
    return name.removesuffix("_presence").replace("_", " ")


def _words(name: str) -> tuple[str, str]:
    layer, _, attribute = name.partition("_")
    words = BACKGROUND[attribute] if layer == "background" else WORDS[attribute]
    return (words[1], words[0]) if name == "text_size" else words  # the word is small first


def _in_words(name: str, values: Array) -> Array:
    words: Array = np.array([*_words(name), "no square"])[values]  # -1, of the position, is the last
    return words


def _blindspot_words(spot: Mapping[str, int]) -> str:
    return ", ".join(f"{_plain(name)} {_words(name)[value]}" for name, value in spot.items())


def digits(seed: int, progress: Progress) -> DemoExample:
    """Train a small network and collect its outcomes on rows that it was not trained on."""
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    pixels, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    in_train = rng.random(len(digit)) < TRAIN_SHARE
    rows = in_train & ((digit != HIDDEN) | (rng.random(len(digit)) < HIDDEN_SHARE))
    model = MLPClassifier((32,), max_iter=60, random_state=seed)
    progress("training a small network", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sixty rounds are enough to fail for one reason
        model.fit(pixels[rows] / 16, digit[rows] >= 5)
    test = ~in_train
    evaluation = replace(
        collect(model, (pixels[test] / 16, digit[test] >= 5), features=False),
        class_names=("below five", "five or more"),
        metadata={"digit": digit[test].astype(str)},
        media=ImageArrays(1 - pixels[test].reshape(-1, 8, 8) / 16),
    )
    few = int((rows & (digit == HIDDEN)).sum())
    description = f"Of {int(rows.sum())} training rows, {few} had the digit {HIDDEN}. The audit does not know about it."
    return DemoExample(evaluation, {f"digit {HIDDEN}": digit[test] == HIDDEN}, description)


EXAMPLES: dict[str, Callable[[int, Progress], DemoExample]] = {"scenes": scenes, "digits": digits}


def answer(example: DemoExample, audit: Audit) -> str:
    """Return which planted groups were found and confirmed, and by which method, counted on held-out rows."""
    lines = [example.description]
    for name, group in example.planted.items():
        lines.append(f"- {name}: {_search_result(group, audit)}")
    return "\n".join(lines)


def _search_result(group: Array, audit: Audit) -> str:
    held_out = ~audit.discover
    total = int((group & held_out).sum())
    precise = [slice_ for slice_ in audit.slices if _precision(slice_, group, held_out) >= PRECISE]
    if not precise:
        return f"not found ({total} held-out rows)."

    def rank(slice_: Slice) -> tuple[bool, int]:
        return slice_.verdict == "confirmed", int((slice_.members & group & held_out).sum())

    best = max(precise, key=rank)
    confirmed, both = rank(best)
    verdict = "found and confirmed" if confirmed else f"found, {best.verdict},"
    n = int((best.members & held_out).sum())
    methods = ", ".join(best.found_by)
    return f"{verdict} as {best.id} by {methods}: {both} of its {n} held-out rows, of {total} in all."


def _precision(slice_: Slice, group: Array, held_out: Array) -> float:
    """Return the share of a slice's held-out rows that lie in a group."""
    inside = slice_.members & held_out
    return float(group[inside].mean()) if inside.any() else 0.0
