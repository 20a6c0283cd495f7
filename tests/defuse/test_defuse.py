"""Defuse from end to end: bars between two heights that the data leave out, and a classifier that errs there."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import skip_init

from errata.core import InputError, silent
from errata.core.paired import OutcomeChanges, change_interval
from errata.defuse import Defused, DefuseSettings, correction, defuse, search
from errata.defuse import run as run_module
from errata.defuse.labels import NONE, Vote, changes_in_words
from errata.defuse.regions import Regions
from errata.defuse.stages import RunFolder
from errata.defuse.vae import Architecture, Vae, decode_codes, new_vae
from errata.tensors import state_fingerprint

PX, MIDDLE = 8, 3.5
NAMES = ("low", "high")
SETTINGS = DefuseSettings(
    latent=2, beta=0.2, anneal=20, epochs=40, batch=40, lr=5e-3, a=5, b=5, scale=5, q=20, cap=8, most=300,
    components=8, least=0.05, steps=50, tau=0.1, shown=5, tuning=32, testing=40, strengths=(1e-3, 1.0),
    tune_epochs=3, tune_batch=40, tune_lr=1e-2, faithful=0,
    check_prepare=False,  # a bias that is in a wrong place can be mended by pixels too
)  # fmt: skip
QUICK = replace(SETTINGS, epochs=1, anneal=1, most=60)
SHAPE = Architecture(PX, PX, 1, latent=2, channels=8, hidden=32, down=1, up=2)
STAGES = ("vae", "mistakes", "regions", "samples")


def bars(n: int = 160, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Class 0 lies low and class 1 high; none lies in the middle."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    at = np.where(labels == 0, rng.uniform(0.5, 3, n), rng.uniform(4, 6.5, n))
    light = np.exp(-((np.arange(PX) - at[:, None]) ** 2) / 1.28)
    return np.round(255 * light)[:, :, None].repeat(PX, axis=2).astype(np.uint8), labels


def rule(pictures: np.ndarray) -> np.ndarray:
    """The oracle: on which side of the middle the light lies; of a dark picture, neither."""
    light = pictures[..., 0].astype(float).sum(axis=2)
    at = light @ np.arange(PX) / np.maximum(light.sum(axis=1), 1)
    return np.where(light.sum(axis=1) < 2000, NONE, at > MIDDLE)


class Weak(nn.Module):
    """The same rule, with its middle in a wrong place; linear, so that it can be put right."""

    def __init__(self, middle: float = 4.4, outputs: int = 2):
        super().__init__()
        self.head = skip_init(nn.Linear, PX * PX, outputs)  # draws nothing
        weight = 0.2 * (torch.arange(float(PX)) - middle).repeat_interleave(PX)
        with torch.no_grad():
            self.head.weight.zero_()
            self.head.weight[:2] = torch.stack([-weight, weight])
            self.head.bias.copy_(torch.tensor([0.0, 0.0] + [-99.0] * (outputs - 2)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(x.flatten(1))
        return logits


def classes(model: nn.Module, pictures: np.ndarray) -> np.ndarray:
    said: np.ndarray = model(torch.from_numpy(pictures.astype(np.float32) / 255)).argmax(dim=1).numpy()
    return said


def run(folder: Path, **more: Any) -> Defused:
    given: dict[str, Any] = {
        "model": Weak(), "train": bars(), "settings": SETTINGS, "architecture": SHAPE, "class_names": NAMES, **more
    }  # fmt: skip
    return defuse(given.pop("model"), given.pop("train"), folder, **given)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Defused:
    return run(tmp_path_factory.mktemp("ended") / "run", oracle=rule, test=bars(80, seed=1))


@pytest.fixture
def searched(ended: Defused, tmp_path: Path) -> Path:
    """A run that has come as far as samples to label."""
    shutil.copytree(ended.folder, tmp_path / "run")
    for path in (tmp_path / "run").iterdir():
        if path.stem not in (*STAGES, "defuse", "vae-told", "map"):
            path.unlink()
    return tmp_path / "run"


# --- to the end ------------------------------------------------------------------------------------------------


def test_regions_are_found_and_corrected(ended):
    """On samples that were not learnt from, and without harm to test rows."""
    assert ended.stage == "corrected"
    wrong = [one for one in ended.judged if one.verdict == "misclassified"]
    assert len(wrong) >= 1
    assert ended.words.startswith(f"{len(wrong)} of {len(ended.regions)} regions are misclassified: ")
    assert [change.id for change in ended.comparison.changes] == ["test", "regions", *(one.id for one in wrong)]
    regions, test = ended.comparison["regions"], ended.comparison["test"]
    assert (regions.n, test.n) == (40 * len(wrong), 80)
    assert regions.before_rate > 0.8
    assert regions.after_rate < 0.3
    assert regions.judgement == "better"
    assert test.after_rate <= test.before_rate
    assert ended.facts["oracle"]["right_after"] > ended.facts["oracle"]["right_before"]
    shared = 0.05 / len(ended.comparison.changes)  # intervals hold for all at once
    assert regions.interval == change_interval(OutcomeChanges(regions.n, regions.fixed, regions.broken), shared)


def samples_of(folder: Path, which: list[int], count: int, use: str) -> np.ndarray:
    """Drawn again, by hand."""
    kept = RunFolder(folder)
    vae, regions = Vae.from_state(kept.load("vae")), Regions.from_state(kept.load("regions"))
    return decode_codes(vae, regions.samples(np.array(which), count, use, tau=SETTINGS.tau, seed=SETTINGS.seed))


def test_what_is_told_of_regions_is_so(ended):
    """Their test samples, classified by hand; and what was shown of them, and said of it."""
    for j, one in ((j, one) for j, one in enumerate(ended.judged) if one.verdict == "misclassified"):
        pictures, told = samples_of(ended.folder, [j], 40, "test"), ended.comparison[one.id]
        for model, errors in ((Weak(), told.before_errors), (ended.model, told.after_errors)):
            assert (classes(model, pictures) != one.label).sum() == errors
        shown = samples_of(ended.folder, [j], 5, "show")
        np.testing.assert_array_equal(RunFolder(ended.folder).load("samples").arrays["pictures"][j], shown)
        assert RunFolder(ended.folder).read("votes")[j] == rule(shown).tolist()


def given_to_tuning(monkeypatch: pytest.MonkeyPatch, folder: Path, **more: Any) -> tuple[Any, ...]:
    """(rows, others, validation, tested) of the first tuning, at which it stops."""
    seen: list[Any] = []
    before = correction._run_sweep

    def look(job: Any, others: Any, validation: Any, apart: correction.TestSet, what: str) -> Any:
        seen.append(apart)
        return before(job, others, validation, apart, what)

    def stop(model: nn.Module, rows: Any, others: Any, *, validation: Any, **more: Any) -> Any:
        seen.extend((rows, others, validation))
        raise InterruptedError

    monkeypatch.setattr(correction, "_run_sweep", look)
    monkeypatch.setattr(correction, "fine_tune", stop)
    with pytest.raises(InterruptedError):
        run(folder, oracle=rule, **more)
    return tuple(seen)


def test_what_is_learnt_from_is_not_what_chooses_or_proves(ended, searched, monkeypatch):
    """Without validation a tenth of the training pictures chooses, and is not learnt from."""
    which = [j for j, one in enumerate(ended.judged) if one.verdict == "misclassified"]
    with monkeypatch.context() as patched:
        apart, rows, others, held = given_to_tuning(patched, searched)
    assert (len(rows[1]), len(held[1])) == (144, 16)
    both = [(x.tobytes(), int(y)) for part in (rows, held) for x, y in zip(*part, strict=True)]
    assert sorted(both) == sorted((x.tobytes(), int(y)) for x, y in zip(*bars(), strict=True))
    np.testing.assert_array_equal(others[0], samples_of(searched, which, 32, "tune"))
    np.testing.assert_array_equal(apart.images, samples_of(searched, which, 40, "test"))
    assert others[1].tolist() == [ended.judged[j].label for j in which for _ in range(32)]
    _, rows, _, held = given_to_tuning(monkeypatch, searched, validation=bars(30, seed=2))
    np.testing.assert_array_equal(rows[1], bars()[1])
    np.testing.assert_array_equal(held[1], bars(30, seed=2)[1])


def test_the_folder_has_what_came_of_it(ended):
    kept = RunFolder(ended.folder)
    assert kept.read("stage") == {"stage": "corrected", "words": ended.words, "notes": []}
    told = kept.read("correction")
    assert told["comparison"] == json.loads(json.dumps(ended.comparison.to_json()))
    weights = kept.load("corrected").arrays
    for name, value in ended.model.state_dict().items():
        np.testing.assert_array_equal(weights[name], value.numpy())
    told_vae = kept.read("vae-told")
    assert told_vae["same_class"] > 0.8
    assert told_vae["elbo"] == pytest.approx(told_vae["reconstruction"] - told_vae["kl"])
    novelty = kept.load("novelty")
    assert novelty.facts["known"] == (classes(Weak(), bars()[0]) != bars()[1]).sum() > 0
    assert len(novelty.arrays["distances"]) == novelty.facts["samples"]


def test_single_mistakes_are_compared_on_the_same_samples(ended, searched):
    """As many are labelled as samples of regions were; where none of them is a mistake, there is no comparison."""
    single, asked = ended.facts["single"], []
    assert single["labelled"] == 5 * len(ended.regions) >= single["mistakes"] > 0
    assert ended.baseline["regions"].before_errors == ended.comparison["regions"].before_errors

    def oracle(pictures: np.ndarray) -> np.ndarray:
        asked.append(len(pictures))
        return rule(pictures) if len(asked) < 3 else np.full(len(pictures), NONE)  # the third is of single mistakes

    found = run(searched, oracle=oracle)
    assert (found.baseline, found.facts["single"]) == (None, {"labelled": asked[2], "mistakes": 0})


def test_the_same_seed_gives_the_same_bytes_and_the_model_is_left_alone(ended, tmp_path):
    model = Weak()
    before, chance = state_fingerprint(model), torch.get_rng_state()
    again = run(tmp_path / "run", model=model, oracle=rule, test=bars(80, seed=1))
    assert state_fingerprint(model) == before != state_fingerprint(again.model)
    assert torch.equal(torch.get_rng_state(), chance)
    ours, theirs = files(again.folder), files(ended.folder)
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []


# --- going on --------------------------------------------------------------------------------------------------


def never(*given: Any, **more: Any) -> Any:
    raise AssertionError("this stage was done before")


@pytest.mark.parametrize("done", range(1, 5))
def test_a_run_goes_on_after_the_last_stage_that_was_done(done, ended, searched, monkeypatch):
    """And ends as it would have ended; what was done keeps its files."""
    for stage in STAGES[done:]:
        (searched / f"{stage}.json").unlink()
    times = {path.name: path.stat().st_mtime_ns for path in searched.iterdir()}
    for name in ("fit_vae", "identify", "distil")[:done]:
        monkeypatch.setattr(search, name, never)
    again = run(searched, oracle=rule, test=bars(80, seed=1))
    ours, theirs = files(again.folder), files(ended.folder)
    assert [name for name in theirs if ours[name] != theirs[name]] == []
    kept = {f"{stage}.{kind}" for stage in STAGES[:done] for kind in ("json", "safetensors")}
    assert {name for name in kept if (searched / name).stat().st_mtime_ns != times[name]} == set()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"settings": replace(SETTINGS, epochs=2)}, "was created with settings.epochs = 40, and now it is 2"),
        ({"model": Weak(4.3)}, "was created with model = "),
        ({"train": bars(seed=5)}, "was created with data = "),
        ({"settings": replace(SETTINGS, split="validation"), "validation": bars(seed=5)}, "settings.split = 'train'"),
        ({"class_names": ("a", "b")}, r"was created with class_names = \['low', 'high'\], and now it is \['a', 'b'\]"),
        ({"architecture": replace(SHAPE, hidden=16)}, "was created with architecture.hidden = 32, and now it is 16"),
        ({"prepare": lambda x: 2 * x}, r"was created with prepare = None, and now it is \["),
        ({"vae": new_vae(SHAPE, seed=3)}, "was created with vae = None, and now it is "),
    ],
)
def test_a_folder_of_another_run_is_not_gone_on_with(more, words, searched):
    before = files(searched)
    with pytest.raises(InputError, match=words):
        run(searched, **more)
    assert files(searched) == before


# --- people ----------------------------------------------------------------------------------------------------


def people(*names: str, only: Iterable[str] | None = None) -> Callable[[RunFolder], list[Vote]]:
    """Everyone says what the rule says, of all regions or of some."""

    def votes(kept: RunFolder) -> list[Vote]:
        samples = kept.load("samples")
        labels = [rule(pictures) for pictures in samples.arrays["pictures"]]
        asked = [
            (id, row) for id, row in zip(samples.facts["names"], labels, strict=True) if only is None or id in only
        ]
        return [Vote(id, i, name, int(label)) for id, row in asked for i, label in enumerate(row) for name in names]

    return votes


def test_without_an_oracle_it_stops_and_people_go_on(ended, searched):
    waiting = run(searched)
    assert waiting.stage == "to label"
    assert waiting.words == f"{len(ended.regions)} of {len(ended.regions)} regions have samples without a label"
    assert waiting.comparison is waiting.model is None
    assert {one.verdict for one in waiting.judged} == {"not labelled"}
    after = run(searched, votes=people("ann", "ben", "cleo"), test=bars(80, seed=1))
    assert after.stage == "corrected"
    assert [one.verdict for one in after.judged] == [one.verdict for one in ended.judged]
    assert after.comparison.to_json() == ended.comparison.to_json()
    assert after.facts["agreement"]["all"] == {"samples": 5 * len(after.judged), "mean": 1.0, "error": 0.0}
    assert after.baseline is None  # nobody labels single mistakes


def test_a_region_is_labelled_when_all_of_its_samples_are(searched):
    """One click is not yet an answer; where some are enough, it is."""

    def hasty(kept: RunFolder) -> list[Vote]:
        return [vote for vote in people("ann")(kept) if vote.sample == 0 or vote.region != "r1"]

    waiting = run(searched, votes=hasty)
    assert (waiting.stage, waiting.words[:4]) == ("to label", "1 of")
    assert run(searched, votes=hasty, partly=True).stage == "corrected"


def test_a_run_waits_for_its_quorum(ended, searched):
    two = replace(SETTINGS, quorum=2)
    waiting = run(searched, votes=people("ann"), settings=two)
    assert waiting.stage == "to label"
    assert waiting.words.endswith("regions have samples without a label, which 2 people must give (`quorum`)")
    after = run(searched, votes=people("ann", "ben"), settings=two)
    assert after.stage == "corrected"
    assert [one.verdict for one in after.judged] == [one.verdict for one in ended.judged]


def test_some_regions_are_enough_where_that_is_said(ended, searched):
    wrong = next(one.id for one in ended.judged if one.verdict == "misclassified")
    some = people("ann", only=[wrong])
    before = run(searched, votes=some)
    assert before.stage == "to label"
    assert before.words.startswith(f"{len(ended.regions) - 1} of ")
    assert run(searched, votes=people("ann", only=[]), partly=True).stage == "to label"
    after = run(searched, votes=some, partly=True)
    assert after.stage == "corrected"
    assert [change.id for change in after.comparison.changes] == ["regions", wrong]  # there are no test rows


def test_where_most_say_none_of_the_above_nothing_is_corrected(ended, searched):
    found = run(searched, oracle=lambda pictures: np.full(len(pictures), NONE))
    n = len(ended.regions)
    assert found.stage == "nothing to correct"
    words = f"no region of {n} is misclassified; {n} of them have no label that most would give"
    assert found.words == f"{words}; remove `votes.json` to ask the oracle again"
    assert run(searched, oracle=rule).stage == "nothing to correct"  # its labels are kept
    (searched / "votes.json").unlink()
    assert run(searched, oracle=rule).stage == "corrected"
    assert found.model is None


def test_a_network_is_an_oracle_that_takes_what_the_audited_one_takes(ended, searched):
    found = run(searched, oracle=Weak(MIDDLE), prepare=None)
    pictures = RunFolder(searched).load("samples").arrays["pictures"]
    said = [classes(Weak(MIDDLE), part[..., 0][:, None]) for part in pictures]
    assert RunFolder(searched).read("votes") == np.stack(said).tolist()
    assert found.stage == ended.stage


@pytest.mark.parametrize(
    ("oracle", "words"),
    [
        (lambda shown: np.full(len(shown), 2), "the oracle gives image 0 the class 2; there are 0 to 1, and -1"),
        (lambda shown: np.full(len(shown), -2), "the oracle gives image 0 the class -2"),
        (lambda shown: np.zeros(3, np.int64), r"must give one class per image; got int64 \(3,\)"),
        (lambda shown: np.zeros(len(shown)), "must give one class per image; got float64"),
    ],
)
def test_an_oracle_that_says_what_cannot_be_is_refused(oracle, words, searched):
    with pytest.raises(InputError, match=words):
        run(searched, oracle=oracle)
    assert not RunFolder(searched).has("votes")


def test_a_vote_for_no_class_is_refused(searched):
    with pytest.raises(InputError, match="`ann` gives region `r1` the class 2; there are 0 to 1, and -1"):
        run(searched, votes=lambda kept: [Vote("r1", 0, "ann", 2)])


# --- where there is nothing ------------------------------------------------------------------------------------


def test_a_classifier_that_cannot_be_moved_makes_no_mistakes(tmp_path):
    """It says 0 of all, and all are."""
    images = bars(40)[0]
    found = run(tmp_path / "run", model=Weak(99), train=(images, np.zeros(40, np.int64)), settings=QUICK)
    assert (found.stage, found.regions) == ("no mistakes", None)
    assert found.words == "none of 800 images decoded from codes with noise changes its class"


def test_mistakes_that_are_spread_form_no_region(tmp_path):
    told: dict[str, float] = {}
    found = run(tmp_path / "run", settings=replace(QUICK, least=0.99), progress=told.__setitem__)
    assert found.stage == "no regions"
    assert found.words.startswith("60 mistakes form no region; lower `least`; only ")
    assert len(found.regions) == 0
    assert told == {"train the VAE": 1.0, "identify mistakes": 1.0, "distil regions": 1.0}


def test_classes_that_were_not_seen_so_far_are_known(tmp_path):
    """The classifier has a third, which neither a label nor a prediction shows: a drawing might be called so."""
    given = {"model": Weak(outputs=3), "class_names": None, "settings": QUICK}
    found = run(tmp_path / "run", **given)
    assert found.regions.predictions.shape[1] == 3
    assert RunFolder(found.folder).about["class_names"] == ["0", "1", "2"]


# --- at the door -----------------------------------------------------------------------------------------------


def begun(folder: Path, **more: Any) -> search.Job:
    given: dict[str, Any] = {"model": Weak(), "prepare": None, "train": bars(), "settings": QUICK, **more}
    classifier = search.Classifier(given.pop("model"), given.pop("prepare"))
    return search.start(folder, classifier, given.pop("train"), given.pop("settings"), **given, progress=never)


def test_a_classifier_no_better_than_chance_wants_its_pixels_prepared(tmp_path):
    """It takes light bars on dark ground, and is given dark ones on light ground."""
    negative = 255 - bars()[0], bars()[1]
    with pytest.raises(InputError, match=r"right on .*% of 160 .* no better than chance; give `prepare`"):
        begun(tmp_path / "run", train=negative)
    assert not (tmp_path / "run").exists()
    assert begun(tmp_path / "run", train=negative, prepare=lambda x: 1 - x).names == ("0", "1")


X, Y = bars()
NINE = np.zeros((3, 9, 8), np.uint8), np.zeros(3, int)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"others": {"validation": NINE}}, r"`validation` has images of \(9, 8, 1\), `train` of \(8, 8, 1\)"),
        ({"others": {"test": (X, Y + 1)}}, r"`test` has class 2 in row \d+; the classifier has 2 classes"),
        ({"others": {"test": (X[:0], Y[:0])}}, "`test` needs one class number per image; got"),
        ({"train": (X, Y - 1)}, r"classes start at 0; `train` has -1 in row \d+"),
        ({"train": (X, 2 * Y)}, r"`train` has class 2 in row \d+; the classifier has 2 classes, from 0 on"),
        ({"train": (X, Y / 1)}, "`train` needs one class number per image; got float64"),
        ({"train": (X, Y[:9])}, r"got int64 \(9,\) for 160"),
        ({"train": (X / 255, Y)}, "`train` must be bytes .* got float64"),
        ({"settings": replace(QUICK, split="validation")}, "`split` is `validation`, and there are no such images"),
        ({"class_names": ("low",)}, "there are 1 class names, and the classifier has 2 classes; name each"),
        ({"class_names": ("a", "b", "c")}, "there are 3 class names, and the classifier has 2 classes"),
        ({"model": nn.Flatten()}, "the classifier has no weights that can be tuned"),
        ({"architecture": replace(SHAPE, width=9)}, r"the VAE is for images of \(8, 9, 1\).* has \(8, 8, 1\)"),
    ],
)
def test_what_would_fail_after_hours_fails_at_once(more, words, tmp_path):
    with pytest.raises(InputError, match=words):
        begun(tmp_path / "run", **more)
    assert not (tmp_path / "run").exists()


# --- what a run says -------------------------------------------------------------------------------------------


def changed(id: str, judgement: str, after: float) -> Any:
    return SimpleNamespace(id=id, judgement=judgement, after_rate=after)


def test_the_sentence_tells_what_became_of_the_regions(ended):
    changes = [
        changed("test", "worse", 0.1), changed("regions", "better", 0.7), changed("r1", "better", 0.1),
        changed("r2", "better", 0.8), changed("r3", "no change shown", 0.9), changed("r4", "worse", 1.0),
    ]  # fmt: skip
    said = changes_in_words(changes, 0.5)
    assert said == "1 fixed, 1 better but still misclassified, 1 with no change seen, 1 worse"
    assert changes_in_words(changes[:2] + changes[4:5], 0.5) == "0 fixed, 1 with no change seen"
    own = [change for change in ended.comparison.changes if change.id not in ("test", "regions")]
    corrected = sum(change.judgement == "better" and change.after_rate <= 0.5 for change in own)
    assert f": {corrected} fixed" in ended.words
    page = (ended.folder / "report.html").read_text()
    assert f"<h1>Of {len(own)} misclassified region" in page
    assert f": {corrected} fixed" in page.partition("<h1>")[2].partition("</h1>")[0]
    test = ended.comparison["test"]
    assert test.judgement == "no change shown"
    told = f"of 80 test rows {test.before_rate:.1%} were wrong and {test.after_rate:.1%} are: no change seen"
    assert told in ended.words
    without = f"; {run_module._told_test_rows(changes[1:])}"
    assert without == "; without `test`, what it does to other images is not known"


def test_a_generator_that_loses_the_class_stops_the_run(tmp_path):
    """63.6% once passed unremarked; here a generator that has learnt nothing."""
    poor = replace(SETTINGS, epochs=1, batch=160, faithful=0.9)
    found = run(tmp_path / "run", settings=poor, oracle=rule)
    assert found.stage == "poor generator"
    assert re.match(r"\d+\.\d% of 160 reconstructions keep the class .* `faithful` asks for 90%", found.words)
    assert not (tmp_path / "run" / "mistakes.json").exists()
    html = unescape((tmp_path / "run" / "report.html").read_text())
    assert "too poor to search with" in html
    reason = re.sub(r"`(\w+)`", r"<code>\1</code>", found.words.partition("; KL never")[0])
    assert f"<p>{reason}.</p>" in html  # the reason, and the cure
    further = run(tmp_path / "run", settings=replace(poor, faithful=0), oracle=rule)  # the same folder goes on
    assert further.stage != "poor generator"
    assert re.search(r"; only \d+\.\d% of reconstructions keep their class", further.words)
    html = (tmp_path / "run" / "report.html").read_text()
    assert re.search(r'<p class="note">Only \d+\.\d% of reconstructions keep their class: [^<]*\.</p>', html)


def test_a_good_generator_is_not_remarked_on(ended):
    assert RunFolder(ended.folder).read("vae-told")["same_class"] > 0.8
    assert "reconstructions" not in ended.words


def test_regions_are_named_by_what_was_said_of_them(ended):
    page = (ended.folder / "report.html").read_text()
    for one in ended.judged:
        if one.verdict == "misclassified":
            name = f"{NAMES[one.label]} taken for {NAMES[1 - one.label]}"
            assert ended.comparison[one.id].name == name
            assert name in page
        elif one.verdict == "classified well":
            assert f"{NAMES[one.label]}, classified well" in page


def test_the_defaults_start_a_run(tmp_path):
    """Nothing that follows from the data is asked for before the data are known."""
    job = search.start(tmp_path / "run", search.Classifier(Weak()), bars(), DefuseSettings(), progress=silent)
    assert (job.settings.epochs, job.settings.batch, job.settings.tune_epochs) == (150, 32, 20)
    assert job.run.about["settings"]["anneal"] == 75
