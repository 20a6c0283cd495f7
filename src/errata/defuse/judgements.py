"""A run of `errata defuse` as pages read it. Needs no torch: people may label on a machine that has none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Comparison, InputError, require
from .labels import NONE, Judged, Vote, judge
from .pages import RegionRun
from .regions import Regions
from .stages import Run


def load_run(folder: str | Path) -> RegionRun:
    """As the run last judged its regions."""
    run = Run(folder)
    stage = run.read("stage") if run.has("stage") else {"stage": "to label", "words": "the run has not come so far"}
    regions = Regions.from_state(run.load("regions")) if run.has("regions") else None
    if regions is None or not run.has("samples"):
        return _empty(run, stage)
    samples = run.load("samples")
    predictions = samples.arrays["predictions"]
    # A correction by labels that no longer stand is kept, and not shown.
    told = run.read("correction") if stage["stage"] == "corrected" and run.has("correction") else None
    return RegionRun(
        name=run.folder.resolve().name, **stage, class_names=tuple(run.about["class_names"]),
        names=samples.facts["names"], weights=dict(zip(regions.ids, regions.weights.tolist(), strict=True)),
        pictures=samples.arrays["pictures"], predictions=predictions,
        judged=_judged(run, regions.ids, predictions), fingerprint=fingerprint(run), facts=_facts(run, told),
        comparison=told and Comparison.from_json(told["comparison"]),
        baseline=Comparison.from_json(told["baseline"]) if told and told["baseline"] else None,
        told=told and {**told["facts"], "labels": told["asked"]["labels"]},
        near=_near(run, told),
        map=run.load("map").arrays if run.has("map") else None,
    )  # fmt: skip


def _near(run: Run, told: Mapping[str, Any] | None) -> Any:
    """Known mistakes that are nearest, where they are those of this correction."""
    found = run.load("novelty") if told and run.has("novelty") else None
    return found.arrays.get("pictures") if found and told and found.facts == told["facts"]["novelty"] else None


def _judged(run: Run, ids: Sequence[str], predictions: Any) -> tuple[Judged, ...]:
    if run.has("judged"):
        return tuple(map(Judged.from_json, run.read("judged")))
    return judge(ids, (), predictions, run.about["correction"]["rho"])


def _empty(run: Run, stage: dict[str, Any]) -> RegionRun:
    none = np.empty((0, 0, 1, 1, 1), np.uint8)
    names = tuple(run.about["class_names"])
    return RegionRun(run.folder.name, **stage, class_names=names, names={}, weights={}, pictures=none,
                     predictions=np.empty((0, 0), int), judged=(), fingerprint=fingerprint(run),
                     facts=_facts(run))  # fmt: skip


def _facts(run: Run, told: Mapping[str, Any] | None = None) -> dict[str, Any]:
    vae = run.read("vae-told") if run.has("vae-told") else None
    mistakes = run.read("mistakes")["facts"] if run.has("mistakes") else None
    # A correction may be older than what was asked for last.
    later = told["asked"]["settings"] if told else run.about["correction"]
    return {"settings": {**run.about["settings"], **later}, "vae": vae, "mistakes": mistakes}


def fingerprint(run: Run) -> str:
    """Of the samples: an answer is about them, and about no others."""
    digest = hashlib.blake2b(digest_size=16)
    path = run.folder / "samples.safetensors"
    begun = sorted((name, value) for name, value in run.about.items() if name != "correction")
    digest.update(path.read_bytes() if path.is_file() else repr(begun).encode())
    return digest.hexdigest()


def opened(folder: str | Path, database: str | None = None) -> Any:
    """What people said of a run. Answers are about its samples: before there are any, none can be kept."""
    require("sqlalchemy", "app")
    from ..people.records import Records

    told, run = load_run(folder), Run(folder)
    if not run.has("samples") and not run.has("stage"):
        raise InputError(f"`{folder}` has nothing to label yet; let `errata defuse` go on to its samples")
    return Records(database or run.folder, fingerprint=told.fingerprint, slices=dict(told.names))


def stored_votes(run: Run, database: str | None = None) -> list[Vote]:
    """What people said in the app; nothing where nobody has opened it."""
    if database is None and not (run.folder / "records.sqlite").is_file():
        return []
    with opened(run.folder, database) as records:
        return people_say(records, run)


def people_say(records: Any, run: Run) -> list[Vote]:
    """People's answers to every sample, or one for a whole region; who gave both is taken at the finer word, and a
    sample that somebody settled at that word alone."""
    samples, names = run.load("samples"), list(run.about["class_names"])
    said = dict(zip(samples.facts["names"], samples.arrays["predictions"].tolist(), strict=True))
    ended = {(entry.queue, entry.item) for entry in records.settled(task="class")}
    votes: list[Vote] = []
    for entry in _last_words(records, "region"):
        _check(entry, said, names)
        failure, label = entry.answer["failure"], _class(entry.answer["label"], names)
        own = [label if failure else predicted for predicted in said[entry.queue]]
        left = ((i, one) for i, one in enumerate(own) if (entry.queue, str(i)) not in ended)
        votes += [Vote(entry.queue, i, entry.person, one) for i, one in left]
    for entry in _last_words(records, "class"):
        _check(entry, said, names)
        votes.append(Vote(entry.queue, int(entry.item), entry.person, _class(entry.answer, names)))
    return votes


def _check(entry: Any, said: Mapping[str, list[int]], names: list[str]) -> None:
    """The server asks for nothing else; a file that was imported may say anything."""
    answer = entry.answer["label"] if entry.task == "region" else entry.answer
    shown = len(said.get(entry.queue, ()))
    asked = entry.task == "region" or (entry.item.isdecimal() and int(entry.item) < shown)
    if not (shown and asked):
        raise InputError(f"`{entry.person}` answers {entry.item!r} of `{entry.queue}`, which this run does not show")
    if answer is not None and answer not in names and answer not in range(len(names)):
        raise InputError(f"`{entry.person}` says class {answer!r} of `{entry.queue}`, which there is not")


def _last_words(records: Any, task: str) -> Sequence[Any]:
    """Of each item what people say of it; where somebody settled it, that alone."""
    settled = {(entry.queue, entry.item): entry for entry in records.settled(task=task)}
    given = [entry for entry in records.answers(task=task) if (entry.queue, entry.item) not in settled]
    return [*given, *settled.values()]


def _class(answer: int | str | None, names: list[str]) -> int:
    if answer is None:
        return NONE
    return names.index(answer) if isinstance(answer, str) else answer


class Watched:
    """A run that is served: with what people said by now, and read again when a later stage is done."""

    def __init__(self, folder: str | Path, records: Any):
        self.run, self.records = Run(folder), records
        self._kept: tuple[int, RegionRun] | None = None

    def __call__(self) -> RegionRun:
        told = self.stored()
        by_oracle = self.run.has("judged-by") and self.run.read("judged-by") == "oracle"
        if by_oracle or not told.names:  # what people say is kept beside it
            return told
        said, rho = people_say(self.records, self.run), told.facts["settings"]["rho"]
        return replace(told, judged=judge(list(told.names), said, told.predictions, rho))

    def stored(self) -> RegionRun:
        """Without what people said: read once, and again when a stage is done."""
        stage = self.run.folder / "stage.json"
        at = stage.stat().st_mtime_ns if stage.is_file() else 0
        if self._kept is None or self._kept[0] != at:
            self._kept = at, load_run(self.run.folder)
        return self._kept[1]
