"""Explanations from an outside package, joined by an entry point alone; and what is left of them without it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import errata
from errata.core import Evaluation, Explanation, InputError, UnknownExplanation
from errata.core.record import FLAT, OMIT_NONE, Record, json_key
from errata.explain import EXPLANATIONS, AuditExplanation, SliceExplanation, explain, registry, restore_explanation
from errata.explain.names import Name
from errata.explain.near import Near

PACKAGE = '''
from __future__ import annotations

from dataclasses import dataclass, field

from errata.core.record import Record, json_key
from errata.explain import AuditExplanation, SliceExplanation


@dataclass(frozen=True)
class Day(Record):
    name: str
    wind: float | None


@dataclass(frozen=True)
class Weather(SliceExplanation):
    """The weather of a slice."""

    kind = "weather"
    needs = frozenset({"representations"})

    total: int = field(metadata=json_key("of"))
    days: tuple[Day, ...]

    @classmethod
    def explain(cls, view, context):
        return cls(int(view.inside.sum()), (Day("monday", 0.5), Day("sunday", None)))


@dataclass(frozen=True)
class Climate(AuditExplanation):
    """The weather of all slices."""

    kind = "climate"

    slices: int

    @classmethod
    def explain(cls, audit, context):
        return (cls(len(audit.slices)),)
'''
FILES = {
    "weather.py": PACKAGE,
    "weather-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: weather\nVersion: 1\n",
    "weather-1.dist-info/entry_points.txt": (
        "[errata.explanations]\nweather = weather:Weather\nclimate = weather:Climate\n"
    ),
}
N = 60


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """An installed package that Errata knows nothing of; undone where its monkeypatch is."""
    for name, text in FILES.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with monkeypatch.context() as installed:
        installed.syspath_prepend(tmp_path / "site")
        yield installed
    sys.modules.pop("weather", None)


def evaluation() -> Evaluation:
    rng = np.random.default_rng(0)
    return Evaluation(losses=rng.random(N), representations={"embedding": rng.normal(size=(N, 3))})


def test_an_explanation_from_outside_is_made_saved_and_loaded(make_audit, outside, tmp_path):
    audit = explain(make_audit(evaluation(), np.arange(N) < 20))
    (weather,) = [e for e in audit.slices[0].explanations if e.kind == "weather"]
    assert (weather.total, weather.days[0].wind) == (20, 0.5)
    folder = errata.save(audit, tmp_path / "audit")
    facts = json.loads((folder / "audit.json").read_text())
    days = [{"name": "monday", "wind": 0.5}, {"name": "sunday", "wind": None}]
    assert facts["slices"][0]["explanations"][0] == {"kind": "weather", "of": 20, "days": days}
    assert facts["slices"][0]["explanations"][-1]["kind"] == "name"
    assert {"kind": "climate", "slices": 1} in facts["explanations"]
    loaded = errata.load(folder)
    assert loaded.slices[0].explanations == audit.slices[0].explanations
    assert type(loaded.slices[0].explanations[0]) is type(weather)
    assert loaded.explanations == audit.explanations


def test_without_its_package_it_keeps_its_json(make_audit, outside, tmp_path):
    folder = errata.save(explain(make_audit(evaluation(), np.arange(N) < 20)), tmp_path / "audit")
    outside.undo()
    loaded = errata.load(folder)
    weather = loaded.slices[0].explanations[0]
    assert isinstance(weather, UnknownExplanation)
    assert (weather.kind, weather.data["of"]) == ("weather", 20)
    assert loaded.slices[0].explanation(Near) is not None
    again = errata.save(loaded, tmp_path / "again")
    assert (again / "audit.json").read_bytes() == (folder / "audit.json").read_bytes()


def test_what_it_needs_must_be_there(make_audit, outside):
    labelled = Evaluation(labels=np.zeros(N, int), predictions=np.zeros(N, int))
    kinds = {e.kind for e in explain(make_audit(labelled, np.arange(N) < 20)).slices[0].explanations}
    assert "weather" not in kinds
    assert "classes" in kinds


def test_our_own_kinds_cannot_be_replaced_from_outside(outside):
    assert set(EXPLANATIONS) | {"weather", "climate"} == set(registry())
    assert list(registry())[-len(EXPLANATIONS) :] == list(EXPLANATIONS)


@pytest.mark.parametrize("kind", EXPLANATIONS.values(), ids=lambda cls: cls.kind)
def test_every_kind_says_what_it_is(kind):
    assert (kind.__doc__ or "").strip()
    assert not kind.__doc__.startswith(f"{kind.__name__}(")  # what dataclass writes where nobody did
    if issubclass(kind, SliceExplanation | AuditExplanation):
        assert kind.explain.__func__ not in (SliceExplanation.explain.__func__, AuditExplanation.explain.__func__)


def test_a_missing_key_is_named():
    with pytest.raises(InputError, match=r"`text` is missing in Name; run the audit again"):
        restore_explanation({"kind": "name", "chosen_on": "all", "measured_on": "confirm", "source": None})


def test_a_key_of_a_later_version_is_ignored():
    facts = {"kind": "name", "chosen_on": "all", "measured_on": "confirm", "text": "x", "source": None, "later": 1}
    assert restore_explanation(facts) == Name("all", "confirm", "x", None)


@dataclass(frozen=True)
class Inner(Record):
    a: int
    b: float | None


@dataclass(frozen=True)
class Outer(Explanation):
    kind = "outer"

    class_name: str = field(metadata=json_key("class"))
    flat: Inner = field(metadata=FLAT)
    many: tuple[Inner, ...]
    pair: tuple[int, int]
    word: str | None = field(default=None, metadata=OMIT_NONE)


def test_records_go_to_json_and_back():
    outer = Outer("cat", Inner(1, None), (Inner(2, 0.5),), (3, 4))
    plain = {"class": "cat", "a": 1, "b": None, "many": [{"a": 2, "b": 0.5}], "pair": [3, 4]}
    assert outer.to_json() == plain
    assert list(outer.to_json()) == list(plain)
    assert Outer.from_json(plain) == outer
    assert Outer.from_json({**plain, "word": "x"}).to_json() == {**plain, "word": "x"}
