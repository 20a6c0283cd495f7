"""The embedded examples: models with weaknesses that nobody labelled, and what an audit should find.

`scenes`: painted pictures as in SpotCheck, and a small network that is blind to some of their combinations.
`digits`: handwritten digits, asked only whether the digit is five or more, with one digit almost missing from
the training rows; needs no torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

from ..bench.worlds import POSITION
from ..core import Array, Audit, Evaluation, MissingExtra, Slice, require
from ..inputs import ImageArrays, collect

WORLD = 3  # has one blindspot, which is found; of worlds with two or three usually only the largest is
HIDDEN = 7
KEPT = 0.1  # of the hidden digit's training rows
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
class Example:
    evaluation: Evaluation
    planted: Mapping[str, Array]  # name -> (n,) bool: the groups that the model fails on
    story: str
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


Progress = Callable[[str, float], None]  # what is being done, and the share of the training done


def scenes(seed: int, progress: Progress) -> Example:
    """Train a small network on painted scenes whose blindspots are labelled wrongly, and collect it on fresh ones."""
    torch = _require_torch()
    from ..bench.recipes import RECIPES, train
    from ..bench.scenes import sample_world
    from ..train import outputs

    seed += WORLD
    recipe, world = RECIPES["small"], sample_world(seed)
    with _one_thread(torch):
        trained = train(world, recipe, seed=seed, progress=progress)
        test = trained.splits["test"]
        images = test.images(px=recipe.px)
        logits, penultimate = outputs(trained.model, images)
    columns = {name: test.features[:, i] for i, name in enumerate(world.features)}
    shown = [name for name in world.features if name in world.enabled or name == POSITION]
    evaluation = Evaluation(
        labels=test.truth,
        probs=1 / (1 + np.exp(-logits[:, 0].astype(np.float64))),
        representations={"penultimate": penultimate},
        class_names=("no square", "square"),
        metadata={_plain(name): _in_words(name, columns[name]) for name in shown},
        media=ImageArrays(images),
    )
    planted = {_blindspot_words(spot): test.blindspot[:, b] for b, spot in enumerate(world.blindspots)}
    story = f"Planted by wrong labels in training: {len(planted)}. The audit was not told."
    return Example(evaluation, planted, story)


def _require_torch() -> ModuleType:
    try:
        return require("torch", "torch")
    except MissingExtra as error:
        raise MissingExtra(f"{error}; or use `--example digits`, which runs without it") from error


@contextmanager
def _one_thread(torch: ModuleType) -> Iterator[None]:
    """So small a network gains nothing from a second thread, and so learns the same on every number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _plain(name: str) -> str:
    """ "square", "text colour"; the position, a feature of the background in the paper, is the square's."""
    return "square position" if name == POSITION else name.removesuffix("_presence").replace("_", " ")


def _words(name: str) -> tuple[str, str]:
    layer, _, attribute = name.partition("_")
    words = BACKGROUND[attribute] if layer == "background" else WORDS[attribute]
    return (words[1], words[0]) if name == "text_size" else words  # the word is small first


def _in_words(name: str, values: Array) -> Array:
    words: Array = np.array([*_words(name), "no square"])[values]  # -1, of the position, is the last
    return words


def _blindspot_words(spot: Mapping[str, int]) -> str:
    return ", ".join(f"{_plain(name)} {_words(name)[value]}" for name, value in spot.items())


def digits(seed: int, progress: Progress) -> Example:
    """Train the small network and collect what it does on rows it never saw."""
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    pixels, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    in_train = rng.random(len(digit)) < TRAIN_SHARE
    kept = in_train & ((digit != HIDDEN) | (rng.random(len(digit)) < KEPT))
    model = MLPClassifier((32,), max_iter=60, random_state=seed)
    progress("training a small network", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sixty rounds are enough to fail for one reason
        model.fit(pixels[kept] / 16, digit[kept] >= 5)
    test = ~in_train
    evaluation = replace(
        collect(model, (pixels[test] / 16, digit[test] >= 5), features=False),
        class_names=("below five", "five or more"),
        metadata={"digit": digit[test].astype(str)},
        media=ImageArrays(1 - pixels[test].reshape(-1, 8, 8) / 16),
    )
    few = int((kept & (digit == HIDDEN)).sum())
    story = f"The model saw {few} of {int(kept.sum())} training rows with the digit {HIDDEN}; the audit was not told."
    # Of some 1,350 test rows half are searched: 2% would be 13.
    return Example(evaluation, {f"digit {HIDDEN}": digit[test] == HIDDEN}, story, {"spotlight": {"size": 0.05}})


EXAMPLES: dict[str, Callable[[int, Progress], Example]] = {"scenes": scenes, "digits": digits}


def answer(example: Example, audit: Audit) -> str:
    """Which planted groups were found, confirmed, and by which method, counted on confirm rows."""
    lines = [example.story]
    for name, group in example.planted.items():
        lines.append(f"- {name}: {_found(group, audit)}")
    return "\n".join(lines)


def _found(group: Array, audit: Audit) -> str:
    rows = ~audit.discover
    held = int((group & rows).sum())
    precise = [s for s in audit.slices if _share(s, group, rows) >= PRECISE]
    if not precise:
        return f"not found ({held} confirm rows)."
    best = max(precise, key=lambda s: (s.verdict == "confirmed", int((s.members & group & rows).sum())))
    both, n = int((best.members & group & rows).sum()), int((best.members & rows).sum())
    said = "found and confirmed" if best.verdict == "confirmed" else f"found, {best.verdict},"
    return f"{said} as {best.id} by {', '.join(best.found_by)}: {both} of its {n} confirm rows, of {held} in all."


def _share(found: Slice, group: Array, rows: Array) -> float:
    inside = found.members & rows
    return float(group[inside].mean()) if inside.any() else 0.0
