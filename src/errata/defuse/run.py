"""One call for the whole of it. Every stage is kept when it is done; a second call goes on from the last one, so that
labels may come days later, and on another machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from ..core import Array, Comparison
from ..tensors import Prepare
from . import correction, search
from .correction import Oracle, Votes
from .figure import drawn_map
from .identify import Classifier
from .judgements import load_run
from .labels import Judged, agreement
from .pages import to_html
from .regions import Mistakes, Regions
from .search import Job, Pictures, Progress
from .settings import Settings
from .vae import Architecture, Vae

Stage = Literal["no mistakes", "no regions", "to label", "nothing to correct", "corrected"]


@dataclass(frozen=True, eq=False)
class Defused:
    """What came of a run so far."""

    folder: Path
    stage: Stage
    words: str  # one sentence
    regions: Regions | None = None
    judged: tuple[Judged, ...] = ()
    comparison: Comparison | None = None  # before and after, on test rows and on samples of regions kept apart
    baseline: Comparison | None = None  # the same of a model tuned on single mistakes
    model: nn.Module | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Found:
    """What the first half of a run ends with."""

    vae: Vae
    mistakes: Mistakes
    regions: Regions
    samples: tuple[Array, Array]
    judged: tuple[Judged, ...]


def defuse(
    model: nn.Module,
    train: Pictures,
    folder: str | Path,
    *,
    validation: Pictures | None = None,
    test: Pictures | None = None,
    prepare: Prepare | None = None,
    oracle: Oracle | None = None,
    votes: Votes | None = None,
    partly: bool = False,
    settings: Settings | None = None,
    architecture: Architecture | None = None,
    vae: Vae | None = None,
    class_names: Sequence[str] | None = None,
    device: torch.device | str | None = None,
    progress: Progress | None = None,
) -> Defused:
    """Find what fails beyond the data, have it labelled, correct it, and prove it on samples and rows kept apart.

    prepare: from pixels in [0, 1] to what the classifier takes, as it was trained. oracle: labels pictures; left out,
    people do, and the run stops until every sample has a label (partly: some have). votes: theirs; left out, what they
    said in `errata serve`. validation: chooses the strength; left out, a tenth of `train` does. test: rows that nothing
    is chosen by. vae: one that is trained already, such as another run's; left out, one of `architecture` is trained.
    """
    vae = vae or search.handed_in(folder)
    job = search.begin(
        folder, Classifier(model, prepare), train, settings or Settings(),
        others=(("validation", validation), ("test", test)), architecture=architecture, vae=vae,
        class_names=class_names, device=device, progress=progress or (lambda stage, share: None),
    )  # fmt: skip
    search.check_stages(job)
    vae = search.trained_vae(job, vae)
    mistakes = search.found_mistakes(job, vae)
    if not len(mistakes):
        return _end(job, "no mistakes", f"none of {mistakes.facts['tried']:,} disturbed pictures changed its class")
    regions = search.distilled(job, mistakes)
    if not len(regions):
        return _end(job, "no regions", f"{len(mistakes):,} mistakes form no region; lower `least`", regions=regions)
    samples = search.shown(job, vae, regions)
    drawn_map(job, vae, mistakes, regions)
    judged = correction.judged(job, regions, samples, oracle, votes)
    job.run.write("judged", [one.to_json() for one in judged])
    job.run.write("judged-by", "people" if oracle is None else "oracle")
    found = _Found(vae, mistakes, regions, samples, judged)
    waiting = sum(one.samples < samples[1].shape[1] for one in judged)
    if waiting and not (partly and any(one.samples for one in judged)):
        words = f"{waiting} of {len(judged)} regions have samples without a label"
        return _end(job, "to label", words, regions=regions, judged=judged)
    chosen = [one for one in judged if one.verdict == "misclassified"]
    if not chosen:
        words = _none_wrong(judged) + ("" if oracle is None else "; remove `votes.json` to ask the oracle again")
        return _end(job, "nothing to correct", words, regions=regions, judged=judged)
    return _correct(job, found, chosen, (validation, test), oracle)


def _none_wrong(judged: Sequence[Judged]) -> str:
    blots = sum(one.verdict == "no common label" for one in judged)
    return f"no region of {len(judged)} is misclassified; {blots} of them have no label that most would give"


def _correct(
    job: Job,
    found: _Found,
    chosen: Sequence[Judged],
    given: tuple[Pictures | None, Pictures | None],
    oracle: Oracle | None,
) -> Defused:
    """A correction is kept as well: the same labels, and the same rows to prove it on, are not swept again."""
    validation, test = given
    asked = {"labels": {one.id: one.label for one in chosen}, "test": _rows(test), "validation": _rows(validation),
             "oracle": oracle is not None, "settings": job.run.about["correction"]}  # fmt: skip
    if correction.is_kept(job, asked):
        return _again(job, found, chosen)
    swept, comparison = correction.corrected(job, found.vae, found.regions, chosen, validation, test)
    new, near = correction.how_new(job, found.samples, found.regions, chosen, validation)
    facts: dict[str, Any] = {"novelty": new}
    other = None
    if oracle is not None:
        apart = correction.tested(job, found.vae, found.regions, chosen, test)
        facts["oracle"] = correction.oracle_says(job, oracle, apart, swept.model)
        if job.settings.baseline:
            count = found.samples[1].size
            other, facts["single"] = correction.baseline(
                job, found.vae, found.mistakes, oracle, validation, apart, count
            )
    told = {"asked": asked, "comparison": comparison.to_json(), "baseline": other and other.to_json(), "facts": facts}
    correction.keep(job, swept.model, near, told)
    return _again(job, found, chosen)


def _rows(given: Pictures | None) -> str | None:
    return None if given is None else search.fingerprint(*search.checked_set("rows", given))


def _again(job: Job, found: _Found, chosen: Sequence[Judged]) -> Defused:
    """What the folder has of a correction."""
    told = job.run.read("correction")
    words = f"{len(chosen)} of {len(found.judged)} regions are misclassified, and corrected"
    if told["comparison"]["facts"]["harmed"]:
        words += "; every strength costs accuracy on validation rows, so lower `tune_lr`"
    return _end(
        job, "corrected", words, regions=found.regions, judged=found.judged,
        comparison=Comparison.from_json(told["comparison"]),
        baseline=told["baseline"] and Comparison.from_json(told["baseline"]),
        model=correction.loaded(job),
        facts={**told["facts"], "agreement": {name: asdict(one) for name, one in agreement(found.judged).items()}},
    )  # fmt: skip


def _end(job: Job, stage: Stage, words: str, **more: Any) -> Defused:
    job.run.write("stage", {"stage": stage, "words": words})
    job.run.text("report.html", to_html(load_run(job.run.folder)))
    return Defused(job.run.folder, stage, words, **more)
