"""People label a run in the app, and the same call goes on from what they said: all of it, and as it stands now."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is generated")
pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: no answers are kept")

from errata.core import InputError
from errata.defuse import DefuseSettings, correction
from errata.defuse.pages import page
from errata.defuse.regions import Regions
from errata.defuse.server import LiveRun
from errata.defuse.stages import RunFolder
from errata.defuse.votes import open_records, read_votes
from errata.people.entries import Annotation
from support import digits


def never(*given: Any, **more: Any) -> Any:
    raise AssertionError("this was done before")


def say(records: Any, person: str, labels: dict[str, int]) -> None:
    """One answer for all samples of each region."""
    for id, label in labels.items():
        answer = {"failure": True, "label": label}
        records.annotate(Annotation(queue=id, item="all", person=person, task="region", answer=answer))


def sources(folder: Path) -> dict[str, int]:
    regions = Regions.from_state(RunFolder(folder).load("regions"))
    return dict(zip(regions.ids, regions.sources.argmax(axis=1).tolist(), strict=True))


@pytest.fixture(scope="module")
def labelled(digits_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By Ann, and corrected by her answers."""
    folder = Path(shutil.copytree(digits_run, tmp_path_factory.mktemp("defuse") / "run"))
    with open_records(folder) as records:
        say(records, "Ann", sources(folder))
    assert digits.run_defuse(folder).stage == "corrected"
    return folder


@pytest.fixture
def folder(labelled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(labelled, tmp_path / "run"))


def test_more_people_agree_and_nothing_is_tuned_again(folder, monkeypatch):
    """The labels are the same, and so the correction; how far people agree is told as of now."""
    assert digits.run_defuse(folder).facts["agreement"]["all"]["samples"] == 0
    with open_records(folder) as records:
        for person in ("Ben", "Cy"):
            say(records, person, sources(folder))
    monkeypatch.setattr(correction, "sweep", never)
    found = digits.run_defuse(folder)
    shown = digits.QUICK["shown"] * len(found.judged)
    assert found.facts["agreement"]["all"] == {"samples": shown, "mean": 1.0, "error": 0.0}
    assert "How far people agree" in (folder / "report.html").read_text()


def test_a_served_result_tells_that_answers_have_changed_since(folder):
    """The correction that it shows is the old one, with its own regions and their neighbours."""
    with open_records(folder) as records:
        watched = LiveRun(folder, records)
        before = page(watched(), "result")
        assert "Answers have changed since" not in before
        answers = sources(folder)
        wrong = [one.id for one in watched().judged if one.verdict == "misclassified"]
        others = [id for id in answers if id not in wrong]
        say(
            records, "Ann", {id: (answers[id] + 1) % 10 for id in others} | {wrong[0]: int(watched().predictions[0, 0])}
        )
        after = watched()
        assert sum(one.verdict == "misclassified" for one in after.judged) != len(wrong)
        told = page(after, "result")
    assert "Answers have changed since" in told
    pairs = [re.findall(r"(r\d+), and the nearest known mistake", text) for text in (before, told)]
    assert pairs[0] == pairs[1] == wrong[:10]


def test_people_label_after_an_oracle_has(folder):
    """Pages then tell what people say, and again what the oracle says when it is asked last."""
    blind = lambda pictures: np.full(len(pictures), -1)  # noqa: E731
    assert digits.run_defuse(folder, oracle=blind).stage == "nothing to correct"
    with open_records(folder) as records:
        watched = LiveRun(folder, records)
        assert {one.verdict for one in watched().judged} == {"no common label"}
        assert digits.run_defuse(folder).stage == "corrected"
        assert "misclassified" in {one.verdict for one in watched().judged}
        say(records, "Ann", dict.fromkeys(watched().names, 3))
        assert {one.label for one in watched().judged} == {3}


def test_a_run_without_samples_is_opened_again_with_other_settings(tmp_path):
    """Of its correction, which there is none of."""
    folder = tmp_path / "run"
    settings = {**digits.QUICK, "least": 0.99}
    assert digits.run_defuse(folder, settings=DefuseSettings(**settings)).stage == "no regions"
    open_records(folder).close()
    assert digits.run_defuse(folder, settings=DefuseSettings(**{**settings, "tune_lr": 0.5})).stage == "no regions"
    open_records(folder).close()


def test_before_there_are_samples_there_is_nothing_to_label(folder):
    """An answer would be of nothing, and its file of no use afterwards."""
    for path in folder.iterdir():
        if path.stem in ("samples", "stage", "records", "judged", "correction"):
            path.unlink()
    with pytest.raises(InputError, match="has nothing to label yet; let `errata defuse` go on to its samples"):
        open_records(folder)
    assert not (folder / "records.sqlite").exists()


def test_a_settled_sample_has_that_word_alone(folder):
    """Though three people said something else of the whole sheet, the one who settled it among them."""
    with open_records(folder) as records:
        for person in ("Ann", "Ben", "Cy"):
            say(records, person, {"r1": 3})
        for person, label in (("Ann", 4), ("Ben", 5)):
            records.annotate(Annotation(queue="r1", item="2", person=person, task="class", answer=label))
        settled = Annotation(queue="r1", item="2", person="Cy", task="class", answer=5, settles=True)
        records.annotate(settled)
        votes = [vote for vote in read_votes(records, RunFolder(folder)) if vote.region == "r1"]
    assert [vote.label for vote in votes if vote.sample == 2] == [5]
    assert {vote.label for vote in votes if vote.sample != 2} == {3}
