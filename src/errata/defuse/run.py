"""A whole run in one call. Every stage is saved when it is done, and a second call resumes after the last one, so that
labels may come days later, and on another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from ..core import Array, Change, Comparison, Progress, silent
from ..report.comparison_text import judgement_words
from ..tensors import Prepare
from . import correction, search
from .correction import Oracle, Votes
from .figure import make_map
from .identify import Classifier
from .labels import Judged, changes_in_words, majority_agreement
from .pages import to_html
from .regions import Mistakes, Regions
from .search import Job, LabelledImages
from .settings import DefuseSettings
from .vae import Architecture, Vae
from .view import load_run, without_checks

Stage = Literal["poor generator", "no mistakes", "no regions", "to label", "nothing to correct", "corrected"]


@dataclass(frozen=True, eq=False)
class Defused:
    """The result of a run so far."""

    folder: Path
    stage: Stage
    words: str  # one sentence on the stage, and on what limits the run
    regions: Regions | None = None
    judged: tuple[Judged, ...] = ()  # of every region
    comparison: Comparison | None = None  # before and after, on test rows and on samples of regions
    baseline: Comparison | None = None  # the same of a model tuned on single mistakes
    model: nn.Module | None = None  # the corrected one
    facts: dict[str, Any] = field(default_factory=dict)  # novelty, agreement, what the oracle says


@dataclass(frozen=True, eq=False)
class _SearchResult:
    """The result of the first half of a run."""

    vae: Vae
    mistakes: Mistakes
    regions: Regions
    samples: tuple[Array, Array]
    judged: tuple[Judged, ...]


def defuse(
    model: nn.Module,
    train: LabelledImages,
    folder: str | Path,
    *,
    validation: LabelledImages | None = None,
    test: LabelledImages | None = None,
    prepare: Prepare | None = None,
    oracle: Oracle | None = None,
    votes: Votes | None = None,
    partly: bool = False,
    settings: DefuseSettings | None = None,
    architecture: Architecture | None = None,
    vae: Vae | None = None,
    class_names: Sequence[str] | None = None,
    device: torch.device | str | None = None,
    progress: Progress = silent,
) -> Defused:
    """Find generated images that a classifier gets wrong, have them labelled, correct it, and measure the correction.

    model: the classifier, a network that gives logits. train: images (n, h, w) or (n, h, w, 3) as bytes that it was
    trained on, and classes (n,). folder: of the run; created, or resumed. validation: rows that choose the strength.
    Default: a tenth of `train`. test: rows that nothing is chosen by. prepare: from pixels in [0, 1] to what the
    classifier takes. oracle: labels images. Default: people do, and the run stops until every sample has a label, or
    with `partly` until some have. votes: reads people's votes. Default: those in `errata serve`. settings: Default:
    `DefuseSettings()`. architecture: of the VAE. Default: one that fits the images. vae: one that is trained already,
    such as another run's. class_names: Default: numbers. device: Default: that of the classifier.
    """
    vae = vae or search.borrowed_vae(folder)
    job = search.start(
        folder,
        Classifier(model, prepare),
        train,
        settings or DefuseSettings(),
        others={"validation": validation, "test": test},
        architecture=architecture,
        vae=vae,
        class_names=class_names,
        device=device,
        progress=progress,
    )
    search.check_stages(job)
    vae = search.make_vae(job, vae)
    told = job.run.read("vae-told")
    if told["same_class"] < job.settings.faithful:
        return _end(job, "poor generator", _poor_generator(job, told))
    mistakes = search.make_mistakes(job, vae)
    if not len(mistakes):
        tried = mistakes.facts["tried"]
        return _end(job, "no mistakes", f"none of {tried:,} images decoded from codes with noise changes its class")
    regions = search.make_regions(job, mistakes)
    if not len(regions):
        return _end(job, "no regions", f"{len(mistakes):,} mistakes form no region; lower `least`", regions=regions)
    samples = search.make_samples(job, vae, regions)
    make_map(job, vae, mistakes, regions)
    judged = correction.judge_regions(job, regions, samples, oracle, votes)
    result = _SearchResult(vae, mistakes, regions, samples, judged)
    return _wait(job, result, oracle, partly) or _correct(job, result, validation, test, oracle)


def _wait(job: Job, result: _SearchResult, oracle: Oracle | None, partly: bool) -> Defused | None:
    """The end of a run that has nothing to correct yet, or nothing at all; None where it goes on."""
    judged = result.judged
    job.run.write("judged", [region.to_json() for region in judged])
    judge_name = "people" if oracle is None else "oracle"
    job.run.write("judged-by", judge_name)
    waiting = sum(region.samples < result.samples[1].shape[1] for region in judged)
    if waiting and not (partly and any(region.samples for region in judged)):
        words = f"{waiting} of {len(judged)} regions have samples without a label"
        if oracle is None and job.settings.quorum > 1:
            words += f", which {job.settings.quorum} people must give (`quorum`)"
        return _end(job, "to label", words, regions=result.regions, judged=judged)
    if any(region.verdict == "misclassified" for region in judged):
        return None
    unnamed = sum(region.verdict == "no common label" for region in judged)
    words = f"no region of {len(judged)} is misclassified; {unnamed} of them have no label that most would give"
    if oracle is not None:
        words += "; remove `votes.json` to ask the oracle again"
    return _end(job, "nothing to correct", words, regions=result.regions, judged=judged)


def _correct(
    job: Job,
    result: _SearchResult,
    validation: LabelledImages | None,
    test: LabelledImages | None,
    oracle: Oracle | None,
) -> Defused:
    """Make the correction, unless the folder has one by the same labels, rows and settings."""
    chosen = [region for region in result.judged if region.verdict == "misclassified"]
    request = {
        "labels": {region.id: region.label for region in chosen},
        "test": _fingerprint(test),
        "validation": _fingerprint(validation),
        "oracle": oracle is not None,
        "settings": without_checks(job.run.about["correction"]),
    }
    if not correction.has_correction(job, request):
        test_set = correction.make_test_set(job, result.vae, result.regions, chosen, test)
        sweep, comparison = correction.correct_regions(job, result.vae, result.regions, chosen, validation, test_set)
        novelty, nearest = correction.measure_novelty(job, result.samples, result.regions, chosen, validation)
        facts: dict[str, Any] = {"novelty": novelty}
        baseline = None
        if oracle is not None:
            facts["oracle"] = correction.measure_by_oracle(job, oracle, test_set, sweep.model)
            if job.settings.baseline:
                single, facts["single"] = correction.tune_on_single_mistakes(
                    job, result.vae, result.mistakes, oracle, validation, test_set, result.samples[1].size
                )
                baseline = None if single is None else single.to_json()
        content = {
            "asked": request,
            "comparison": comparison.to_json(),
            "baseline": baseline,
            "facts": facts,
            "after": correction.predict_samples(job, sweep.model, result.samples[0]),
        }
        correction.save_correction(job, sweep.model, nearest, content)
    return _corrected(job, result, len(chosen))


def _poor_generator(job: Job, told: Mapping[str, Any]) -> str:
    return (
        f"{told['same_class']:.1%} of {told['pictures']:,} reconstructions keep the class that the classifier gives "
        f"their image, and `faithful` asks for {job.settings.faithful:.0%}: what it gets wrong would be the "
        "generator's blur; in another folder train one with more `epochs`, a larger `latent` or a smaller `beta`, or "
        "lower `faithful` here"
    )


def _told_test_rows(changes: Sequence[Change]) -> str:
    """What the correction did elsewhere."""
    test = next((change for change in changes if change.id == correction.TEST), None)
    if test is None or test.before_rate is None or test.after_rate is None:
        return "without `test`, what it does to other images is not known"
    rates = f"{test.before_rate:.1%} were wrong and {test.after_rate:.1%} are"
    return f"of {test.n:,} test rows {rates}: {judgement_words(test)}"


def _fingerprint(labelled: LabelledImages | None) -> str | None:
    if labelled is None:
        return None
    return search.data_fingerprint(*search.check_labelled("rows", labelled))


def _corrected(job: Job, result: _SearchResult, count: int) -> Defused:
    """The end of a run with the correction of its folder, of so many regions."""
    content = job.run.read("correction")
    changes = Comparison.from_json(content["comparison"]).changes
    words = f"{count} of {len(result.judged)} regions are misclassified: {changes_in_words(changes, job.settings.rho)}"
    words += f"; {_told_test_rows(changes)}"
    if content["comparison"]["facts"]["harmed"]:
        words += "; every strength costs accuracy on validation rows, so lower `tune_lr`"
    agreement = {name: asdict(part) for name, part in majority_agreement(result.judged).items()}
    baseline = None
    if content["baseline"]:
        baseline = Comparison.from_json(content["baseline"])
    return _end(
        job,
        "corrected",
        words,
        regions=result.regions,
        judged=result.judged,
        comparison=Comparison.from_json(content["comparison"]),
        baseline=baseline,
        model=correction.load_corrected(job),
        facts={**content["facts"], "agreement": agreement},
    )


def _end(job: Job, stage: Stage, words: str, **fields: Any) -> Defused:
    """Write the stage and the page, and return what there is."""
    notes = _notes(job, stage)
    job.run.write("stage", {"stage": stage, "words": words, "notes": notes})
    job.run.write_text("report.html", to_html(load_run(job.run.folder)))
    return Defused(job.run.folder, stage, "; ".join([words, *notes]), **fields)


def _notes(job: Job, stage: Stage) -> list[str]:
    """What limits the whole run: of its generator, and of what the classifier is given."""
    notes = []
    same_class = job.run.read("vae-told")["same_class"]
    if stage != "poor generator" and same_class < DefuseSettings.faithful:  # let through by a lower `faithful`
        notes.append(f"only {same_class:.1%} of reconstructions keep their class: some may be the generator's blur")
    annealing = job.settings.unfinished_annealing(len(job.images))
    if annealing and job.run.about["vae"] is None:  # a borrowed VAE was trained elsewhere
        notes.append(annealing)
    if job.normalisation:
        notes.append(job.normalisation)
    return notes
