"""The second half of a run: labels, a correction at every strength, and what the chosen one changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ..core import Array, Comparison, InputError, State
from ..core.comparison import Group, measure
from ..core.gaps import wilson
from ..tensors import state_fingerprint
from ..train import fine_tune, measure_accuracy
from .identify import Classifier, predict_classes
from .labels import NONE, Judged, Vote, judge, told_name
from .novelty import novelty
from .regions import Mistakes, Regions
from .search import Job, LabelledImages, check_labelled
from .settings import known
from .stages import RunFolder
from .sweep import Candidate, Sweep, Validated, preference, sweep
from .vae import Vae, decode_codes
from .view import RETIRED, without_checks
from .votes import stored_votes

# (n, h, w, c) bytes -> (n,) classes, -1 for none of the above; or a network that takes what the audited one takes.
Oracle = Callable[[Array], Array] | nn.Module
Votes = Callable[[RunFolder], Iterable[Vote]]

HELD_OUT = 0.1  # share of the training images that choose the strength where there are no validation rows
ALPHA = 0.05
ORACLE = "oracle"  # the person that an oracle's votes are by
TEST = "test"  # the group of test rows
# Settings that older corrections do not name, and had so.
ADDED = {"quorum": 1}


@dataclass(frozen=True, eq=False)
class TestSet:
    """Images that a correction is measured on: test rows, and every corrected region's own samples."""

    __test__ = False  # for pytest: this is no test

    images: Array
    labels: Array
    groups: Array  # (n,) TEST, or the id of a region

    def errors(self, job: Job, model: nn.Module) -> Array:
        """(n,) 1 where a model is wrong."""
        predictions = predict_classes(Classifier(model, job.classifier.prepare), self.images, device=job.device)
        wrong: Array = (predictions != self.labels).astype(np.int64)
        return wrong

    def accuracies(self, wrong: Array) -> dict[str, float | None]:
        """Accuracy on test rows and on the regions' samples, by errors (n,); None where there are none."""
        on_test = self.groups == TEST
        return {"test": _accuracy(wrong[on_test]), "regions": _accuracy(wrong[~on_test])}


def _accuracy(wrong: Array) -> float | None:
    if not len(wrong):
        return None
    return float(1 - wrong.mean())


def judge_regions(
    job: Job, regions: Regions, samples: tuple[Array, Array], oracle: Oracle | None, votes: Votes | None
) -> tuple[Judged, ...]:
    """By the oracle where there is one, else by people's votes."""
    images, predictions = samples
    if oracle is None:
        read = votes or stored_votes
        cast = list(read(job.run))
        for vote in cast:
            if not NONE <= vote.label < len(job.names):
                raise InputError(
                    f"`{vote.person}` gives region `{vote.region}` the class {vote.label}; there are 0 to "
                    f"{len(job.names) - 1}, and -1 for none of them"
                )
        return judge(regions.ids, cast, predictions, job.settings.rho, job.settings.quorum)
    if not job.run.has("votes"):
        labels = ask_oracle(job, oracle, images.reshape(-1, *images.shape[2:])).reshape(predictions.shape)
        job.run.write("votes", labels.tolist())
    cast = []
    for id, row in zip(regions.ids, job.run.read("votes"), strict=True):
        cast += [Vote(id, i, ORACLE, label) for i, label in enumerate(row)]
    return judge(regions.ids, cast, predictions, job.settings.rho)


def ask_oracle(job: Job, oracle: Oracle, images: Array) -> Array:
    """(n,) an oracle's labels, checked."""
    classes = len(job.names)
    if isinstance(oracle, nn.Module):
        labels = predict_classes(Classifier(oracle, job.classifier.prepare), images, device=job.device)
    else:
        labels = np.asarray(oracle(images))
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu":
        raise InputError(f"the oracle must give one class per image; got {labels.dtype} {labels.shape}")
    bad = np.flatnonzero((labels < NONE) | (labels >= classes))
    if len(bad):
        raise InputError(
            f"the oracle gives image {bad[0]} the class {labels[bad[0]]}; there are 0 to {classes - 1}, and -1 for "
            "none of them"
        )
    return labels.astype(np.int64)


def correct_regions(
    job: Job,
    vae: Vae,
    regions: Regions,
    chosen: Sequence[Judged],
    validation: LabelledImages | None,
    test_set: TestSet,
) -> tuple[Sweep, Comparison]:
    """Tune on samples of the chosen regions at every strength, and compare the chosen model with the audited one."""
    images = job.decode_samples(vae, regions, _indices(regions, chosen), job.settings.tuning, "tune")
    labels = np.array([region.label for region in chosen]).repeat(job.settings.tuning)
    return _run_sweep(job, (images, labels), validation, test_set, "correct")


def make_test_set(
    job: Job, vae: Vae, regions: Regions, chosen: Sequence[Judged], test: LabelledImages | None
) -> TestSet:
    """Test rows, then samples of the chosen regions that nothing is trained on or chosen by."""
    count = job.settings.testing
    images = job.decode_samples(vae, regions, _indices(regions, chosen), count, "test")
    labels = np.array([region.label for region in chosen]).repeat(count)
    groups = np.array([region.id for region in chosen]).repeat(count)
    if test is None:
        return TestSet(images, labels, groups)
    test_images, test_labels = check_labelled("test", test)
    return TestSet(
        images=np.concatenate([test_images, images]),
        labels=np.concatenate([test_labels, labels]),
        groups=np.concatenate([np.full(len(test_labels), TEST), groups]),
    )


def _indices(regions: Regions, chosen: Sequence[Judged]) -> Array:
    return np.array([regions.ids.index(region.id) for region in chosen])


def _run_sweep(
    job: Job, extra: LabelledImages, validation: LabelledImages | None, test_set: TestSet, stage: str
) -> tuple[Sweep, Comparison]:
    """A sweep over strengths with `extra` beside the training rows; the chosen model against the audited one."""
    settings = job.settings
    model = job.classifier.model
    rows = (job.images, job.labels)
    chooser = validation
    if chooser is None:
        order = np.random.default_rng([settings.seed, 7]).permutation(len(job.images))
        few = max(1, round(HELD_OUT * len(order)))
        chooser = job.images[order[:few]], job.labels[order[:few]]
        rows = job.images[order[few:]], job.labels[order[few:]]
    before = test_set.errors(job, model)
    accuracy = measure_accuracy(model, chooser, prepare=job.classifier.prepare, device=job.device)
    audited = Validated(accuracy, len(chooser[1]))
    prefer = preference(audited, settings.selection)
    curve: list[dict[str, Any]] = []

    def visit(candidate: Candidate, tuned: nn.Module) -> None:
        curve.append({**asdict(candidate), **test_set.accuracies(test_set.errors(job, tuned))})

    result = sweep(
        lambda strength: _tune(job, strength, rows, extra, validation=chooser, prefer=prefer),
        settings.strengths,
        audited,
        selection=settings.selection,
        progress=job.progress,
        stage=stage,
        visit=visit,
    )
    facts = {
        "curve": curve,
        "chosen": result.chosen,
        "selection": result.selection,
        "before": test_set.accuracies(before),
        "validation": {**asdict(audited), "given": validation is not None},
        "harmed": result.candidates[result.chosen].validation_accuracy < audited.floor,
    }
    return result, _compare(job, test_set, before, test_set.errors(job, result.model), facts)


def _tune(job: Job, strength: float, rows: LabelledImages, extra: LabelledImages, **choice: Any) -> Any:
    """The classifier fine-tuned at one strength. choice: `validation` and `prefer`, which choose its best epoch."""
    settings = job.settings
    return fine_tune(
        job.classifier.model,
        rows,
        extra,
        strength=strength,
        prepare=job.classifier.prepare,
        epochs=known(settings.tune_epochs),
        batch=known(settings.tune_batch),
        lr=settings.tune_lr,
        device=job.device,
        seed=settings.seed,
        **choice,
    )


def _compare(job: Job, test_set: TestSet, before: Array, after: Array, facts: dict[str, Any]) -> Comparison:
    """Test rows, all regions, and each region; intervals hold for all of them at once."""
    names = _region_names(job)
    on_test = test_set.groups == TEST
    rows = {TEST: ("test rows", on_test), "regions": ("all regions", ~on_test)}
    for id in dict.fromkeys(test_set.groups[~on_test].tolist()):
        rows[id] = (names[id], test_set.groups == id)
    groups = [Group(id, name, "", inside, before, after) for id, (name, inside) in rows.items() if inside.any()]
    changes = tuple(measure(group, None, ALPHA / len(groups)) for group in groups)
    return Comparison(changes, "wrong", ALPHA, facts)


def _region_names(job: Job) -> dict[str, str]:
    """By what people or the oracle said."""
    samples = job.run.load("samples")
    names = dict(samples.facts["names"])
    judged = {} if not job.run.has("judged") else {one["id"]: Judged.from_json(one) for one in job.run.read("judged")}
    for j, id in enumerate(names):
        if id in judged:
            names[id] = told_name(names[id], judged[id], samples.arrays["predictions"][j], job.names)
    return names


def tune_on_single_mistakes(
    job: Job,
    vae: Vae,
    mistakes: Mistakes,
    oracle: Oracle,
    validation: LabelledImages | None,
    test_set: TestSet,
    count: int,
) -> tuple[Comparison | None, dict[str, int]]:
    """The baseline: the same sweep on `count` single mistakes that the oracle labels, as many as samples of regions.

    None where the oracle finds the classifier right on all of them.
    """
    some = np.random.default_rng([job.settings.seed, 8]).permutation(len(mistakes))[:count]
    images = decode_codes(vae, mistakes.codes[some], device=job.device)
    labels = ask_oracle(job, oracle, images)
    wrong = (labels != NONE) & (labels != mistakes.predictions[some])
    facts = {"labelled": len(some), "mistakes": int(wrong.sum())}
    if not wrong.any():
        return None, facts
    _, comparison = _run_sweep(job, (images[wrong], labels[wrong]), validation, test_set, "tune on single mistakes")
    return comparison, facts


def measure_by_oracle(job: Job, oracle: Oracle, test_set: TestSet, model: nn.Module) -> dict[str, Any]:
    """The regions' test samples by the oracle's label of each: one label for a whole region flatters a correction.

    same: how many have their region's label. labelled: how many have a class; right of them, before and after.
    """
    of_regions = test_set.groups != TEST
    images = test_set.images[of_regions]
    labels = ask_oracle(job, oracle, images)
    n = len(labels)
    same = int((labels == test_set.labels[of_regions]).sum())
    labelled = int((labels != NONE).sum())
    before = int(((job.predict(images) == labels) & (labels != NONE)).sum())
    predictions = predict_classes(Classifier(model, job.classifier.prepare), images, device=job.device)
    after = int(((predictions == labels) & (labels != NONE)).sum())
    return {
        "n": n,
        "same": same,
        "same_interval": wilson(same, n),
        "labelled": labelled,
        "right_before": before,
        "before_interval": wilson(before, labelled),
        "right_after": after,
        "after_interval": wilson(after, labelled),
    }


def predict_samples(job: Job, model: nn.Module, samples: Array) -> list[list[int]]:
    """What the corrected model says of the labelled samples ((r, s, h, w, c)), which it was not trained on."""
    images = samples.reshape(-1, *samples.shape[2:])
    predictions = predict_classes(Classifier(model, job.classifier.prepare), images, device=job.device)
    rows: list[list[int]] = predictions.reshape(samples.shape[:2]).tolist()
    return rows


def measure_novelty(
    job: Job,
    samples: tuple[Array, Array],
    regions: Regions,
    chosen: Sequence[Judged],
    validation: LabelledImages | None = None,
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Samples of misclassified regions beside the nearest training image that the classifier gets wrong; where it gets
    none wrong, beside the nearest such validation image. Facts, and arrays with the nearest images."""
    among = "training"
    images = job.images
    labels = job.labels
    predictions = job.predict(images)
    if validation is not None and (predictions == labels).all():
        among = "validation"
        images, labels = check_labelled("validation", validation)
        predictions = job.predict(images)
    known = np.flatnonzero(predictions != labels)
    if not len(known):
        return {"known": 0, "of": len(images), "among": among}, {}
    which = _indices(regions, chosen)
    sample_images = samples[0][which].reshape(-1, *samples[0].shape[2:])
    distances = novelty(sample_images, images[known])
    nearest = known[distances.nearest]
    usual = float(np.median(distances.usual)) if len(distances.usual) else None
    facts = {
        "known": len(known),
        "of": len(images),
        "among": among,
        "samples": len(sample_images),
        "farther": distances.farther,
        "median": float(np.median(distances.distances)),
        "usual": usual,
        "same_prediction": float((predictions[nearest] == samples[1][which].ravel()).mean()),
    }
    arrays = {
        "nearest": nearest,
        "distances": distances.distances,
        "usual": distances.usual,
        "pictures": images[nearest],
    }
    return facts, arrays


def load_corrected(job: Job) -> nn.Module:
    """The corrected model of the folder."""
    model = copy.deepcopy(job.classifier.model)
    weights = job.run.load("corrected").arrays
    model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in weights.items()})
    return model


def save_correction(job: Job, model: nn.Module, nearest: dict[str, Array], content: dict[str, Any]) -> None:
    """Last `correction.json`, which says that it is done, with the fingerprint of the model that it is about."""
    weights = {}
    for name, value in model.state_dict().items():
        value = value.detach().cpu()
        if value.dtype == torch.bfloat16:  # NumPy has none; float32 holds all of it, and the network converts it back
            value = value.float()
        weights[name] = value.numpy()
    job.run.save("corrected", State("model", {}, weights))
    job.run.save("novelty", State("novelty", content["facts"]["novelty"], nearest))
    job.run.write("correction", {**content, "model": state_fingerprint(model)})


def has_correction(job: Job, request: Mapping[str, Any]) -> bool:
    """Whether the folder has a correction by this request (labels, rows and settings)."""
    if not (job.run.has("correction") and job.run.has("corrected")):
        return False
    content = job.run.read("correction")
    before = content["asked"]
    settings = {name: value for name, value in before["settings"].items() if name not in RETIRED}
    settings = {**ADDED, **without_checks(settings)}
    same = {**before, "settings": settings} == request
    return bool(same and content["model"] == state_fingerprint(load_corrected(job)))
