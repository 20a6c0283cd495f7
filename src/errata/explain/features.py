"""What the features of a path look like: heat maps and feature attacks on the rows that raise them most (Barlow).

A feature means something to people where it is a robust model's; nothing here asks how the model was trained.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Array, Audit, Evaluation, Explanation, InputError, Slice, require
from ..core.audit import of_kind
from ..core.errors import unknown
from ..core.record import Record, json_key
from .examples import FeatureImage
from .group_trees import GroupTree, GroupTrees, TopFeature
from .path import PathFeature, TreePath, path_rule
from .thumbnails import address, overlay

if TYPE_CHECKING:
    import torch

    from ..tensors import Attribution, Ball, Prepare

STEPS = 100
MOST_INFORMATIVE = 10  # features of a group that an audit records
CHANGE = 0.1  # of an attack without a radius: so much of every value of an image, in the mean square
CLOSE = 0.05  # of the largest value: features of the same model differ by less, also in half precision


@dataclass(frozen=True)
class FeatureImages(Record):
    """The images of one feature."""

    feature: int
    name: str
    images: tuple[FeatureImage, ...] = field(metadata=json_key("pictures"))


@dataclass(frozen=True)
class Features(Explanation):
    """What the features of a path look like, and how far the attacks went."""

    kind = "features"

    representation: str
    radius: float
    step: float
    steps: int
    features: tuple[FeatureImages, ...]


def draw_features(
    audit: Audit,
    model: torch.nn.Module,
    images: Sequence[Any] | Array,
    *,
    representation: str | None = None,
    prepare: Prepare | None = None,
    layer: str | None = None,
    maps: str | None = None,
    radius: float | None = None,
    step: float | None = None,
    steps: int = STEPS,
    informative: int = 0,
    device: torch.device | str | None = None,
) -> Audit:
    """The audit with heat maps and feature attacks for every path that method `barlow` found in features of `model`.

    audit: its slices of other kinds stay as they are. model: the one that made the features. images: (n, h, w, 3) or
    (n, h, w), or anything that gives the image of row i; bytes, or floats in [0, 1]. representation: which one the
    model made; needed where paths were found in several. prepare: from pixels (b, c, h, w) in [0, 1] to what the model
    takes (`errata.train.normalise_pixels` for ours). Default: pixels as they are. layer: the one that was collected, if
    it had a name. maps: the module whose maps make heat maps. Default: the last. radius, step, steps: of the attack, L2
    in units of [0, 1] pixels. Default: the radius is .1 for every value of an image and the step 2.5 radius / steps.
    The paper has step 1, 500 steps and no radius that ever binds. informative: of every group, a class say, so many of
    the features that say most about its failures are drawn too, up to ten; the paper's crowd saw ten. device: where the
    model runs. Where nothing is drawn, a warning says why.
    """
    require("torch", "torch")
    from ..tensors import Attribution, Ball

    if len(images) != len(audit.evaluation):
        raise InputError(f"`images` has {len(images)} rows and the audit {len(audit.evaluation)}; give one a row")
    if not 0 <= informative <= MOST_INFORMATIVE:
        raise InputError(f"`informative` must be from 0 to {MOST_INFORMATIVE}; got {informative}")
    name = _representation(audit, representation, informative)
    if name is None:
        warnings.warn(_nothing_to_draw(audit, name, informative), stacklevel=2)
        return audit
    attribution = Attribution(model, prepare=prepare, layer=layer, maps=maps, device=device)
    first = np.asarray(images[0])
    size = CHANGE * math.sqrt(first.size) if radius is None else radius
    studio = _Studio(audit.evaluation, name, attribution, images, Ball(size, steps, step))
    slices = tuple(studio.explain(slice_) for slice_ in audit.slices)
    explanations = tuple(studio.explain_trees(explanation, informative) for explanation in audit.explanations)
    if not studio.has_drawn:
        warnings.warn(_nothing_to_draw(audit, name, informative), stacklevel=2)
    return replace(audit, slices=slices, explanations=explanations)


def _representation(audit: Audit, name: str | None, informative: int) -> str | None:
    """The one that what is drawn was found in; None where there is nothing to draw."""
    if name is not None:
        if name not in audit.evaluation.representations:
            raise unknown("representation", name, audit.evaluation.representations)
        return name
    rules = [rule for slice_ in audit.slices if (rule := path_rule(slice_.rule)) is not None]
    trees = of_kind(audit.explanations, GroupTrees) if informative else ()
    names = sorted({*(rule["representation"] for rule in rules), *(grown.representation for grown in trees)})
    if len(names) > 1:
        raise InputError(f"paths were found in {' and '.join(names)}; name the one that `model` made, `representation`")
    return next(iter(names), None)


def _nothing_to_draw(audit: Audit, name: str | None, informative: int) -> str:
    """The sentence of a call that draws nothing: why, and what draws something."""
    cure = "audit with method `barlow` on the features of `model`"
    trees = [tree for tree in of_kind(audit.explanations, GroupTrees) if name in (None, tree.representation)]
    # Audits of versions that did not record features have trees without them.
    if not informative and any(group.features for tree in trees for group in tree.groups):
        cure = "the features that say most about each class are drawn with `informative=10`"
    return f"nothing is drawn, since no slice is a path through features of `model`; {cure}"


class _Studio:
    """Makes the images of one audit; those of a feature and some rows once."""

    def __init__(self, evaluation: Evaluation, name: str, attribution: Attribution, images: Any, ball: Ball):
        self._evaluation = evaluation
        self._name = name
        self._attribution = attribution
        self._images = images
        self._ball = ball
        self._done: dict[tuple[int, ...], tuple[FeatureImage, ...]] = {}

    @property
    def has_drawn(self) -> bool:
        """Whether there is an image of any feature."""
        return any(self._done.values())

    def explain(self, slice_: Slice) -> Slice:
        """The slice with the images of its path's features; as it is where it is no path of this representation."""
        rule = path_rule(slice_.rule)
        path = slice_.explanation(TreePath)
        if rule is None or rule["representation"] != self._name or path is None:
            return slice_
        features = Features(
            representation=self._name,
            radius=self._ball.radius,
            step=self._ball.stride,
            steps=self._ball.steps,
            features=tuple(self._feature(feature) for feature in path.features),
        )
        others = [explanation for explanation in slice_.explanations if explanation.kind != Features.kind]
        return replace(slice_, explanations=(*others, features))

    def _feature(self, feature: PathFeature) -> FeatureImages:
        rows = [row.row for row in feature.activating]
        return FeatureImages(feature.feature, feature.name, self._images_of(feature.feature, rows))

    def explain_trees(self, trees: Explanation, informative: int) -> Explanation:
        """The trees with images of their most informative features; anything else as it is."""
        if not isinstance(trees, GroupTrees) or trees.representation != self._name or not informative:
            return trees
        return replace(trees, groups=tuple(self._group(group, informative) for group in trees.groups))

    def _group(self, group: GroupTree, informative: int) -> GroupTree:
        if group.features is None:
            return group
        drawn = [self._top_feature(feature) for feature in group.features[:informative]]
        return replace(group, features=(*drawn, *group.features[informative:]))

    def _top_feature(self, feature: TopFeature) -> TopFeature:
        return replace(feature, images=self._images_of(feature.feature, feature.rows))

    def _images_of(self, feature: int, rows: Sequence[int]) -> tuple[FeatureImage, ...]:
        key = (feature, *rows)
        if key not in self._done:
            self._done[key] = self._draw(feature, rows) if rows else ()
        return self._done[key]

    def _draw(self, feature: int, rows: Sequence[int]) -> tuple[FeatureImage, ...]:
        images = _stacked(self._images, rows)
        self._check(images, rows)
        heats = self._attribution.heat(images, feature)
        attacked, before, after, moved = self._attribution.attack(images, feature, self._ball)
        plain = images / 255 if images.dtype == np.uint8 else images
        overlays = [overlay(image, heat) for image, heat in zip(plain, heats, strict=True)]
        return tuple(
            FeatureImage(
                row=int(row),
                image=address(plain[i]),
                heat=overlays[i],
                attack=address(attacked[i]),
                before=float(before[i]),
                after=float(after[i]),
                moved=float(moved[i]),
            )
            for i, row in enumerate(rows)
        )

    def _check(self, images: Array, rows: Sequence[int]) -> None:
        """The model computes from the images what the audit has: else its heat maps would be of something else."""
        stored = np.asarray(self._evaluation.representations[self._name][np.asarray(rows)], dtype=np.float64)
        computed = self._attribution.features(images)
        if computed.shape != stored.shape:
            raise InputError(
                f"`model` has {computed.shape[1]} features where `{self._name}` has {stored.shape[1]} columns; "
                "give the model that made them, and its `layer`"
            )
        wrong = np.abs(computed - stored).max(axis=1) > CLOSE * max(np.abs(stored).max(), np.abs(computed).max())
        if wrong.any():
            raise InputError(
                f"the features of `model` differ from `{self._name}`, first in row {rows[int(wrong.argmax())]}; "
                "give the model that made them, its `prepare`, and the images in the order of the rows"
            )


def _stacked(images: Any, rows: Sequence[int]) -> Array:
    arrays = [np.asarray(images[int(i)]) for i in rows]
    if len({array.shape for array in arrays}) > 1:
        raise InputError("`images` differ in size; give them as the model sees them, all of one size")
    return np.stack(arrays)
