"""One look at held-out rows: what is the same, what is another, and which number it has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from errata import Evaluation, Settings, Source
from errata.core.looks import EarlierLook, run_number
from errata.slicers.gmm import Gmm
from errata.workflow import audit_look

rng = np.random.default_rng(0)
N = 60
X = rng.normal(size=(N, 3))
LABELS = rng.integers(0, 2, N)
PREDICTIONS = rng.integers(0, 2, N)
SITE = rng.choice(["north", "south"], N)


def rows(**changes):
    given = {
        "labels": LABELS,
        "predictions": PREDICTIONS,
        "representations": {"x": X},
        "metadata": {"site": SITE, "age": np.arange(N)},
        "ids": np.arange(N) * 3,
    }
    return Evaluation(**{**given, **changes})


def look(evaluation=None, settings=None, train=None, slices=None, **changes):
    search = {"methods": ["gmm"], "options": {"gmm": {"components": 5}}, "seed": 0, "within": "auto", "crossfit": False}
    search |= {"metric": "error", "positive": None, "groups": "auto", "search_rows": 200_000, "influence": {}}
    return audit_look(evaluation or rows(), settings or Settings(), {**search, **changes}, train=train, slices=slices)


def test_order_width_and_run_are_the_same_look():
    order = rng.permutation(N)
    assert look(rows().rows(order)) == look()
    assert look(rows(labels=LABELS.astype(np.int8), representations={"x": X.copy()})) == look()
    assert look(settings=Settings(run=7)) == look()
    mask = np.arange(N) < 20
    assert look(rows().rows(order), slices={"mine": mask[order]}) == look(slices={"mine": mask})


def test_rows_on_disk_are_the_same_look(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert look(rows(representations={"x": mapped})) == look()


OTHER = {
    "a label": {"evaluation": rows(labels=np.where(np.arange(N) == 5, 1 - LABELS, LABELS))},
    "a prediction": {"evaluation": rows(predictions=np.where(np.arange(N) == 5, 1 - PREDICTIONS, PREDICTIONS))},
    "an embedding": {"evaluation": rows(representations={"x": X + 1e-9 * (np.arange(N) == 5)[:, None]})},
    "its name": {"evaluation": rows(representations={"y": X})},
    "its source": {"evaluation": rows(sources={"x": Source(from_model=False)})},
    "a column": {"evaluation": rows(metadata={"site": np.where(np.arange(N) == 5, "east", SITE), "age": np.arange(N)})},
    "a column less": {"evaluation": rows(metadata={"site": SITE})},
    "groups": {"evaluation": rows(groups=np.arange(N) // 2)},
    "ids": {"evaluation": rows(ids=np.arange(N) * 3 + 1)},
    "methods": {"methods": ["gmm", "spotlight"]},
    "a method of one's own": {"methods": [Gmm(components=5)]},
    "a condition": {"slices": {"mine": "age < 5"}},
    "a mask": {"slices": {"mine": np.arange(N) < 20}},
    "an option": {"options": {"gmm": {"components": 6}}},
    "the seed": {"seed": 1},
    "alpha": {"settings": Settings(alpha=0.1)},
    "delta": {"settings": Settings(delta=0.01)},
    "the scope": {"within": "label"},
    "both halves": {"crossfit": True},
    "the metric": {"metric": "fnr"},
    "the class": {"positive": "yes"},
    "influence": {"influence": {"damping": 0.1}},
    "training rows": {"train": rows(ids=np.arange(N) + 1000)},
}


@pytest.mark.parametrize("change", OTHER)
def test_what_could_change_a_verdict_is_another_look(change):
    assert look(**OTHER[change]) != look()


def test_options_and_masks_of_ones_own_tell_looks_apart():
    assert look(methods=[Gmm(components=5)]) != look(methods=[Gmm(components=6)])
    assert look(slices={"mine": np.arange(N) < 20}) != look(slices={"mine": np.arange(N) < 21})
    assert look(slices={"mine": "age < 5"}) != look(slices={"mine": "age < 6"})


def test_dates_as_a_column_are_read():
    days = np.arange(N).astype("datetime64[D]")
    assert look(rows(metadata={"day": days})) != look(rows(metadata={"day": days + 1}))


def test_a_repeated_look_keeps_its_number():
    earlier = [EarlierLook("a", 1), EarlierLook("b", 2), EarlierLook("a", 1)]
    assert run_number("a", []) == 1
    assert run_number("a", earlier) == 1
    assert run_number("b", earlier) == 2
    assert run_number("c", earlier) == 3


def test_a_look_whose_folder_is_gone_still_counts():
    assert run_number("c", [EarlierLook("b", 2)]) == 3


def test_unmarked_audits_of_earlier_versions_each_count():
    assert run_number("c", [EarlierLook("/one", 1), EarlierLook("/two", 1)]) == 3


def test_the_audit_records_its_look():
    import errata

    evaluation = rows()
    settings = Settings(run=2)
    audit = errata.audit(evaluation, methods=["gmm"], settings=settings)
    assert audit.settings["look"] == look(evaluation, options={})
    assert audit.settings["look"] == look(evaluation, options={}, settings=replace(settings, run=1))
