"""The second half of a run: labels, a correction at every strength, and what it changed on what was kept apart."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ..core import Array, Comparison, InputError, State
from ..core.comparison import Group, measure
from ..core.gaps import wilson
from ..tensors import state_fingerprint
from ..train import accuracy_of, tune_beside
from .identify import Classifier, predicted
from .judgements import stored_votes
from .labels import NONE, Judged, Vote, judge
from .novelty import novelty
from .regions import Mistakes, Regions
from .search import Job, Pictures, checked_set
from .stages import Run
from .sweep import Candidate, Sweep, Validated, preference, sweep
from .vae import Vae, drawn

# (n, h, w, c) bytes -> (n,) classes, -1 for none of the above; or a network that takes what the audited one takes.
Oracle = Callable[[Array], Array] | nn.Module
Votes = Callable[[Run], Iterable[Vote]]

HELD_OUT = 0.1  # share of the training pictures that choose the strength where there is no validation
ALPHA = 0.05
ORACLE = "oracle"


@dataclass(frozen=True, eq=False)
class Tested:
    """Pictures that nothing is chosen by, in groups: the test rows, then every region's own samples."""

    images: Array
    labels: Array
    groups: Array  # (n,) "test", or the id of a region

    def outcomes(self, job: Job, model: nn.Module) -> Array:
        """(n,) 1 where a model is wrong."""
        said = predicted(Classifier(model, job.classifier.prepare), self.images, device=job.device)
        wrong: Array = (said != self.labels).astype(np.int64)
        return wrong


def judged(
    job: Job, regions: Regions, samples: tuple[Array, Array], oracle: Oracle | None, votes: Votes | None
) -> tuple[Judged, ...]:
    """By the oracle where there is one, else by what people said."""
    pictures, predictions = samples
    if oracle is not None and not job.run.has("votes"):
        labels = asked(job, oracle, pictures.reshape(-1, *pictures.shape[2:])).reshape(predictions.shape)
        job.run.write("votes", labels.tolist())
    said: Iterable[Vote] = []
    if oracle is not None:
        told = job.run.read("votes")
        said = [Vote(regions.ids[j], i, ORACLE, label) for j, row in enumerate(told) for i, label in enumerate(row)]
    else:
        said = _known(list((votes or stored_votes)(job.run)), len(job.names))
    return judge(regions.ids, said, predictions, job.settings.rho)


def _known(said: list[Vote], classes: int) -> list[Vote]:
    for vote in said:
        if not NONE <= vote.label < classes:
            raise InputError(
                f"`{vote.person}` says class {vote.label} of region `{vote.region}`; there are 0 to {classes - 1}, -1"
            )
    return said


def asked(job: Job, oracle: Oracle, pictures: Array) -> Array:
    """An oracle's labels, checked."""
    classes = len(job.names)
    if isinstance(oracle, nn.Module):
        labels = predicted(Classifier(oracle, job.classifier.prepare), pictures, device=job.device)
    else:
        labels = np.asarray(oracle(pictures))
    if labels.shape != (len(pictures),) or labels.dtype.kind not in "iu":
        raise InputError(f"the oracle must give one class a picture; got {labels.dtype} {labels.shape}")
    bad = np.flatnonzero((labels < NONE) | (labels >= classes))
    if len(bad):
        raise InputError(
            f"the oracle says class {labels[bad[0]]} of picture {bad[0]}; there are 0 to {classes - 1}, -1"
        )
    return labels.astype(np.int64)


def corrected(
    job: Job,
    vae: Vae,
    regions: Regions,
    chosen: Sequence[Judged],
    validation: Pictures | None,
    test: Pictures | None,
) -> tuple[Sweep, Comparison]:
    """The sweep over strengths on the regions' tuning samples, and the chosen model on what was kept apart."""
    which, labels = _places(regions, chosen), np.array([one.label for one in chosen])
    own = job.drawn(vae, regions, which, job.settings.tuning, "tune"), labels.repeat(job.settings.tuning)
    apart = tested(job, vae, regions, chosen, test)
    return swept(job, own, validation, apart, "correct")


def tested(job: Job, vae: Vae, regions: Regions, chosen: Sequence[Judged], test: Pictures | None) -> Tested:
    count = job.settings.testing
    samples = job.drawn(vae, regions, _places(regions, chosen), count, "test")
    labels = np.array([one.label for one in chosen]).repeat(count)
    groups = np.array([one.id for one in chosen]).repeat(count)
    if test is None:
        return Tested(samples, labels, groups)
    images, truth = checked_set("test", test)
    named = np.concatenate([np.full(len(truth), "test"), groups])
    return Tested(np.concatenate([images, samples]), np.concatenate([truth, labels]), named)


def _places(regions: Regions, chosen: Sequence[Judged]) -> Array:
    return np.array([regions.ids.index(one.id) for one in chosen])


def swept(
    job: Job, others: Pictures, validation: Pictures | None, apart: Tested, what: str
) -> tuple[Sweep, Comparison]:
    given = job.settings
    rows, held = (job.images, job.labels), validation
    if held is None:
        order = np.random.default_rng([given.seed, 7]).permutation(len(job.images))
        few = max(1, round(HELD_OUT * len(order)))
        held = job.images[order[:few]], job.labels[order[:few]]
        rows = job.images[order[few:]], job.labels[order[few:]]
    prepare, before = job.classifier.prepare, apart.outcomes(job, job.classifier.model)
    audited = Validated(accuracy_of(job.classifier.model, held, prepare=prepare, device=job.device), len(held[1]))
    prefer = preference(audited, given.selection)
    curve: list[dict[str, Any]] = []

    def tune(strength: float) -> Any:
        return tune_beside(
            job.classifier.model, rows, others, strength=strength, validation=held, prepare=prepare,
            epochs=given.tune_epochs, batch=given.tune_batch, lr=given.tune_lr, device=job.device, seed=given.seed,
            patience=given.patience, prefer=prefer,
        )  # fmt: skip

    def visit(candidate: Candidate, model: nn.Module) -> None:
        curve.append({**asdict(candidate), **_rates(apart, apart.outcomes(job, model))})

    found = sweep(
        tune, given.strengths, audited, selection=given.selection, visit=visit,
        progress=lambda share: job.progress(what, share),
    )  # fmt: skip
    after = apart.outcomes(job, found.model)
    facts = {"curve": curve, "chosen": found.chosen, "selection": found.selection, "before": _rates(apart, before),
             "validation": {**asdict(audited), "given": validation is not None},
             "harmed": found.candidates[found.chosen].validation_accuracy < audited.floor}  # fmt: skip
    return found, compared(job, apart, before, after, facts)


def _rates(apart: Tested, wrong: Array) -> dict[str, float | None]:
    """Accuracy on test rows and on the regions' test samples."""
    on = apart.groups == "test"
    return {
        "test": float(1 - wrong[on].mean()) if on.any() else None,
        "regions": float(1 - wrong[~on].mean()) if (~on).any() else None,
    }


def compared(job: Job, apart: Tested, before: Array, after: Array, facts: dict[str, Any]) -> Comparison:
    """Test rows, all regions, and each; intervals hold for all of them at once."""
    ids = [name for name in dict.fromkeys(apart.groups.tolist()) if name != "test"]
    kept = job.run.load("samples").facts["names"]
    inside = {"test": ("test rows", apart.groups == "test"), "regions": ("all regions", apart.groups != "test")}
    inside |= {id: (kept[id], apart.groups == id) for id in ids}
    groups = [Group(id, name, "", rows, before, after) for id, (name, rows) in inside.items() if rows.any()]
    changes = tuple(measure(group, None, ALPHA / len(groups)) for group in groups)
    return Comparison(changes, "wrong", ALPHA, facts)


def baseline(
    job: Job, vae: Vae, mistakes: Mistakes, oracle: Oracle, validation: Pictures | None, apart: Tested, count: int
) -> tuple[Comparison | None, dict[str, int]]:
    """The same sweep on `count` single mistakes that the oracle labels: as many labels as the regions had.

    None where the oracle finds the classifier right on all of them.
    """
    some = np.random.default_rng([job.settings.seed, 8]).permutation(len(mistakes))[:count]
    pictures = drawn(vae, mistakes.codes[some], device=job.device)
    labels = asked(job, oracle, pictures)
    wrong = (labels != NONE) & (labels != mistakes.predictions[some])
    facts = {"labelled": len(some), "mistakes": int(wrong.sum())}
    if not wrong.any():
        return None, facts
    return swept(job, (pictures[wrong], labels[wrong]), validation, apart, "tune on single mistakes")[1], facts


def oracle_says(job: Job, oracle: Oracle, apart: Tested, model: nn.Module) -> dict[str, Any]:
    """The regions' test samples by the oracle's own word on each: one label for a whole region flatters a correction.

    same: that are what their region is called. labelled: that have a class; right of them, before and after.
    """
    on = apart.groups != "test"
    images, labels = apart.images[on], asked(job, oracle, apart.images[on])
    after = predicted(Classifier(model, job.classifier.prepare), images, device=job.device)
    n, same = len(labels), int((labels == apart.labels[on]).sum())
    right = [int(((said == labels) & (labels != NONE)).sum()) for said in (job.predicted(images), after)]
    labelled = int((labels != NONE).sum())
    return {
        "n": n, "same": same, "same_interval": wilson(same, n), "labelled": labelled,
        "right_before": right[0], "before_interval": wilson(right[0], labelled),
        "right_after": right[1], "after_interval": wilson(right[1], labelled),
    }  # fmt: skip


def how_new(
    job: Job,
    samples: tuple[Array, Array],
    regions: Regions,
    chosen: Sequence[Judged],
    validation: Pictures | None = None,
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Samples of misclassified regions beside the nearest training picture that the classifier gets wrong; where it
    gets none wrong, beside the nearest such validation picture."""
    among, (images, labels) = "training", (job.images, job.labels)
    called = job.predicted(images)
    if validation is not None and (called == labels).all():
        among, (images, labels) = "validation", checked_set("validation", validation)
        called = job.predicted(images)
    known = np.flatnonzero(called != labels)
    which, (pictures, predictions) = _places(regions, chosen), samples
    made = pictures[which].reshape(-1, *pictures.shape[2:])
    found = novelty(made, images[known])
    if not len(known):
        return {"known": 0, "of": len(images), "among": among}, {}
    said, near = predictions[which].ravel(), known[found.nearest]
    arrays = {"nearest": near, "distances": found.distances, "usual": found.usual, "pictures": images[near]}
    facts = {
        "known": len(known), "of": len(images), "among": among, "samples": len(made), "farther": found.farther,
        "median": float(np.median(found.distances)),
        "usual": float(np.median(found.usual)) if len(found.usual) else None,
        "same_prediction": float((called[near] == said).mean()),
    }  # fmt: skip
    return facts, arrays


def loaded(job: Job) -> nn.Module:
    """The corrected model, as the folder has it."""
    model = copy.deepcopy(job.classifier.model)
    weights = job.run.load("corrected").arrays
    model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in weights.items()})
    return model


def keep(job: Job, model: nn.Module, near: dict[str, Array], told: dict[str, Any]) -> None:
    """Last the word that it is done, with the model's fingerprint: a model that it is not about is known by that."""
    values = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    # NumPy has no bfloat16; float32 holds all of it, and the network takes it back as its own.
    weights = {name: (one.float() if one.dtype == torch.bfloat16 else one).numpy() for name, one in values.items()}
    job.run.save("corrected", State("model", {}, weights))
    job.run.save("novelty", State("novelty", told["facts"]["novelty"], near))
    job.run.write("correction", {**told, "model": state_fingerprint(model)})


def is_kept(job: Job, asked: dict[str, Any]) -> bool:
    """Whether the folder has the correction that is asked for."""
    if not (job.run.has("correction") and job.run.has("corrected")):
        return False
    told = job.run.read("correction")
    return bool(told["asked"] == asked and told["model"] == state_fingerprint(loaded(job)))
