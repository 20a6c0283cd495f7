"""A run as its pages show it, read from its folder. Needs no torch: people may label on a machine that has none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, Comparison
from .labels import Judged, judge
from .regions import Regions
from .stages import RunFolder

RETIRED = ("patience",)  # settings that old runs have, and that no longer exist
CHECKS = ("check_prepare", "faithful")  # asked before the search alone: another value makes no other correction


@dataclass(frozen=True, eq=False)
class RunView:
    """What is known of a run so far."""

    name: str
    stage: str
    words: str  # one sentence on the stage; an older run's has its notes in it
    class_names: tuple[str, ...]
    names: Mapping[str, str]  # id of a region -> the class it comes from and the one it is taken for
    weights: Mapping[str, float]
    images: Array  # (r, s, h, w, c) samples that people label
    predictions: Array  # (r, s)
    judged: tuple[Judged, ...]
    fingerprint: str  # of the samples
    facts: Mapping[str, Any]  # settings, vae, mistakes
    notes: Sequence[str] = ()  # what limits the run: of its generator, and of what the classifier is given
    comparison: Comparison | None = None
    baseline: Comparison | None = None
    correction: Mapping[str, Any] | None = None  # labels that it is by, novelty, and what the oracle says
    near: Array | None = None  # (m, h, w, c) the nearest known mistake of each sample of corrected regions
    after: Array | None = None  # (r, s) what the corrected model says; None where it was not recorded
    map: Mapping[str, Array] | None = None  # positions in [-1, 1] of images (pictures), mistakes and regions

    def index(self, id: str) -> int:
        """The position of a region by its id."""
        return list(self.names).index(id)


def load_run(folder: str | Path) -> RunView:
    """The run of a folder, with the judgement of its regions as it was last saved."""
    run = RunFolder(folder)
    stage: dict[str, Any] = {"stage": "to label", "words": "the run has not come so far"}
    if run.has("stage"):
        stage = run.read("stage")
    if not run.has("regions") or not run.has("samples"):
        return _without_regions(run, stage)
    regions = Regions.from_state(run.load("regions"))
    samples = run.load("samples")
    predictions = samples.arrays["predictions"]
    if run.has("judged"):
        judged = tuple(map(Judged.from_json, run.read("judged")))
    else:
        judged = judge(regions.ids, (), predictions, run.about["correction"]["rho"])
    positions = run.load("map").arrays if run.has("map") else None
    saved = None
    if stage["stage"] == "corrected" and run.has("correction"):  # one by labels that no longer hold is not shown
        saved = run.read("correction")
    return RunView(
        name=run.folder.resolve().name,
        **stage,
        class_names=tuple(run.about["class_names"]),
        names=samples.facts["names"],
        weights=dict(zip(regions.ids, regions.weights.tolist(), strict=True)),
        images=samples.arrays["pictures"],
        predictions=predictions,
        judged=judged,
        fingerprint=samples_fingerprint(run),
        facts=_facts(run, saved),
        map=positions,
        **_correction(run, saved),
    )


def _without_regions(run: RunFolder, stage: Mapping[str, Any]) -> RunView:
    """A run that has no regions yet."""
    return RunView(
        name=run.folder.name,
        **stage,
        class_names=tuple(run.about["class_names"]),
        names={},
        weights={},
        images=np.empty((0, 0, 1, 1, 1), np.uint8),
        predictions=np.empty((0, 0), int),
        judged=(),
        fingerprint=samples_fingerprint(run),
        facts=_facts(run, None),
    )


def _correction(run: RunFolder, saved: Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields of a `RunView` that tell of a correction."""
    if saved is None:
        return {}
    baseline = None
    if saved["baseline"]:
        baseline = Comparison.from_json(saved["baseline"])
    near = None
    if run.has("novelty"):
        novelty = run.load("novelty")
        if novelty.facts == saved["facts"]["novelty"]:  # else it is of another correction
            near = novelty.arrays.get("pictures")
    after = None
    if "after" in saved:  # since 0.7
        after = np.array(saved["after"])
    return {
        "comparison": Comparison.from_json(saved["comparison"]),
        "after": after,
        "baseline": baseline,
        "correction": {**saved["facts"], "labels": saved["asked"]["labels"]},
        "near": near,
    }


def _facts(run: RunFolder, saved: Mapping[str, Any] | None) -> dict[str, Any]:
    settings = {**run.about["settings"], **run.about["correction"]}
    if saved is not None:  # a correction may be older than the settings that were asked for last
        settings |= without_checks(saved["asked"]["settings"])
    vae = run.read("vae-told") if run.has("vae-told") else None
    mistakes = run.read("mistakes")["facts"] if run.has("mistakes") else None
    return {
        "settings": {name: value for name, value in settings.items() if name not in RETIRED},
        "vae": vae,
        "mistakes": mistakes,
    }


def without_checks(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a correction is made by."""
    return {name: value for name, value in settings.items() if name not in CHECKS}


def samples_fingerprint(run: RunFolder) -> str:
    """Of the samples: an answer is about them, and about no others."""
    digest = hashlib.blake2b(digest_size=16)
    path = run.folder / "samples.safetensors"
    if path.is_file():
        digest.update(path.read_bytes())
    else:
        fixed = sorted((name, value) for name, value in run.about.items() if name != "correction")
        digest.update(repr(fixed).encode())
    return digest.hexdigest()
