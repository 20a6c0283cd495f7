"""One more of each kind from an outside package, joined by entry points alone: what it adds is in audit.json, the
report, the app and the command."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import errata
from support.command import Done, run

METADATA = "Metadata-Version: 2.1\nName: toys\nVersion: 1\n"
ENTRY_POINTS = """
[errata.slicers]
beyond = toys.slicer:Beyond
[errata.explanations]
weather = toys.explanations:Weather
plain = toys.explanations:Plain
[errata.parts]
weather = toys.pages:PART
[errata.pages]
forecast = toys.pages:PAGE
[errata.plans]
removal = toys.plan:plan_removal
[errata.commands]
greet = toys.command:greet
[errata.inputs]
toy = toys.files:FORMAT
"""
SLICER = '''
import numpy as np

from errata.slicers import BaseSlicer


class Beyond(BaseSlicer):
    """Rows whose first column is beyond a cut."""

    name = "beyond"
    needs = frozenset({"representations"})

    def __init__(self, cut: float = 1.0, representation: str | None = None):
        self.cut = cut
        self.representation = representation

    def _fit(self, evaluation, train):
        self.rules_ = ({"kind": "cut", "representation": self.representation_},)

    def membership(self, evaluation):
        return (np.asarray(self.matrix(evaluation))[:, :1] > self.cut).astype(float)
'''
EXPLANATIONS = '''
from dataclasses import dataclass
from typing import ClassVar

from errata.explain import SliceExplanation


@dataclass(frozen=True)
class Weather(SliceExplanation):
    """The weather of a slice, which has a part."""

    kind: ClassVar[str] = "weather"
    sky: str

    @classmethod
    def explain(cls, view, context):
        return cls(f"clouds over {view.slice.id}")


@dataclass(frozen=True)
class Plain(SliceExplanation):
    """An explanation without a part of its own."""

    kind: ClassVar[str] = "plain"
    remark: str

    @classmethod
    def explain(cls, view, context):
        return cls(f"remark about {view.slice.id}")
'''
PAGES = """
from errata.report import Page, Part, Section


def part_values(view, slice_):
    skies = [explanation.sky for explanation in slice_.explanations if explanation.kind == "weather"]
    return {"sky": skies[0]} if skies else None


def page_values(view, request):
    return {"title": "Forecast", "count": len(view.audit.slices)}


PART = Part("weather", Section("sky", "Sky", 50), part_values, "part_sky.html", package="toys")
PAGE = Page(
    "forecast", "page_forecast.html", page_values, paths=("/forecast",), nav="Forecast", saved=lambda audit: [{}],
    package="toys",
)
"""
PLAN = '''
import numpy as np

from errata.core import Audit, Evaluation, Plan


def plan_removal(audit: Audit, train: Evaluation, *, most: int = 5, note: str = "none") -> Plan:
    """Remove the first rows of the training set.

    Parameters
    ----------
    audit : Audit
        Not read.
    train : Evaluation
        The training rows.
    most : int
        Rows to remove. At most so many.
    note : str
        What to remember.
    """
    ids = train.row_ids[:most]
    return Plan("removal", f"remove {len(ids)} rows ({note})", ids, np.zeros(len(ids)))
'''
COMMAND = '''
import typer


def greet(name: str) -> None:
    """Greet somebody."""
    typer.echo(f"hello, {name}")
'''
FILES = """
import json

import numpy as np

from errata.core import Evaluation
from errata.inputs import FileFormat


def read(path, reading):
    columns = json.loads(path.read_text())
    return Evaluation(
        labels=np.array(columns["labels"]), predictions=np.array(columns["predictions"]),
        representations={"x": np.array(columns["x"])},
    )


FORMAT = FileFormat("toy", (".toy",), read)
"""
PACKAGE = {
    "toys-1.dist-info/METADATA": METADATA,
    "toys-1.dist-info/entry_points.txt": ENTRY_POINTS,
    "toys/__init__.py": "",
    "toys/slicer.py": SLICER,
    "toys/explanations.py": EXPLANATIONS,
    "toys/pages.py": PAGES,
    "toys/plan.py": PLAN,
    "toys/command.py": COMMAND,
    "toys/files.py": FILES,
    "toys/templates/part_sky.html": "<p>The sky: {{ part.sky }}.</p>",
    "toys/templates/page_forecast.html": (
        '{% extends frame | default("layout.html") %}'
        "{% block content %}<h1>Forecast for {{ count }} slices</h1>{% endblock %}"
    ),
}


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An installed package that brings one of each kind, and a folder with rows in its own format."""
    site = tmp_path_factory.mktemp("site")
    for name, text in PACKAGE.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    folder = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    labels = rng.integers(0, 2, 600)
    wrong = rng.random(600) < np.where(x[:, 0] > 1, 0.8, 0.05)
    columns = {"x": x.tolist(), "labels": labels.tolist(), "predictions": np.where(wrong, 1 - labels, labels).tolist()}
    (folder / "rows.toy").write_text(json.dumps(columns))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        importlib.invalidate_caches()
        yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "toys"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def audited(toys: Path) -> Done:
    """The command on a file of the toy format, with the toy method and one of its options."""
    words = ["audit", "rows.toy", "-o", "audit", "--method", "beyond", "--set", "beyond.cut=0.9"]
    done = run(*words, "--no-map", "--no-self-test", folder=toys)
    assert (done.code, done.err) == (0, "")
    return done


def test_a_method_and_explanations_are_in_audit_json(toys: Path, audited: Done) -> None:
    facts = json.loads((toys / "audit" / "audit.json").read_text())
    (slice_,) = facts["slices"]
    assert (slice_["method"], slice_["verdict"]) == ("beyond", "confirmed")
    assert facts["settings"]["options"] == {"beyond": {"cut": 0.9}}
    by_kind = {explanation["kind"]: explanation for explanation in slice_["explanations"]}
    assert by_kind["weather"] == {"kind": "weather", "sky": "clouds over s1"}
    assert by_kind["plain"] == {"kind": "plain", "remark": "remark about s1"}
    listed = json.loads(run("methods", "--json").out)
    assert {"cut": 1.0, "representation": None} in [entry["options"] for entry in listed if entry["name"] == "beyond"]


def test_a_loaded_audit_has_the_types_of_the_package(toys: Path, audited: Done) -> None:
    audit = errata.load(toys / "audit")
    kinds = {type(explanation).__name__ for explanation in audit.slices[0].explanations}
    assert {"Weather", "Plain"} <= kinds
    assert errata.collect(toys / "rows.toy").fingerprint == audit.evaluation.fingerprint


def test_a_page_and_a_part_are_in_the_report(toys: Path, audited: Done) -> None:
    report = (toys / "audit" / "report.html").read_text()
    assert "<h1>Forecast for 1 slices</h1>" in report
    assert "<p>The sky: clouds over s1.</p>" in report
    assert "remark about s1" in report  # an explanation without a part is shown by its fields


def test_a_page_and_a_part_are_in_the_app(toys: Path, audited: Done) -> None:
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    from errata.app.server import create_app
    from errata.people.records import Records

    audit = errata.load(toys / "audit")
    names = {slice_.id: slice_.name for slice_ in audit.slices}
    with Records(toys / "audit", fingerprint=audit.evaluation.fingerprint, slices=names) as records:
        client = TestClient(create_app(audit, records), base_url="http://127.0.0.1")
        assert "<h1>Forecast for 1 slices</h1>" in client.get("/forecast").text
        assert 'href="/forecast"' in client.get("/").text
        page = client.get("/slice/s1").text
        assert "<p>The sky: clouds over s1.</p>" in page
        assert "remark about s1" in page


def test_a_plan_is_a_command_with_its_options(toys: Path, audited: Done) -> None:
    words = ["plan", "removal", "audit", "rows.toy", "-o", "plan.parquet", "--most", "3", "--note", "toys"]
    done = run(*words, folder=toys)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["remove 3 rows (toys)", "plan.parquet"]
    plan = errata.store.load_plan(toys / "plan.parquet")
    assert (plan.kind, plan.ids.tolist(), plan.weights.tolist()) == ("removal", [0, 1, 2], [0, 0, 0])
    shown = run("plan", "removal", "--help").out
    for text in ("Remove the first rows of the training set.", "TRAIN", "The training rows.", "Rows to remove."):
        assert text in shown
    assert "At most so many" not in shown  # the help is the first sentence


def test_a_command_is_one_of_ours(toys: Path) -> None:
    assert run("greet", "Ada") == Done(0, "hello, Ada\n", "")
    assert "Greet somebody." in run("--help").out


def test_without_the_package_nothing_of_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not (Path(path) / "toys").is_dir()])
    done = run("greet", "Ada")
    assert done.code == 2
    assert "No such command 'greet'" in done.err
    assert "beyond" not in errata.slicers.registry()


def test_ours_win_where_a_name_is_taken(toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package cannot change what `errata audit` or `spotlight` does."""
    taken = tmp_path / "taken-1.dist-info"
    taken.mkdir()
    (taken / "METADATA").write_text("Metadata-Version: 2.1\nName: taken\nVersion: 1\n")
    (taken / "entry_points.txt").write_text(
        "[errata.slicers]\nspotlight = toys.slicer:Beyond\n[errata.commands]\naudit = toys.command:greet\n"
        "[errata.plans]\nweights = toys.plan:plan_removal\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert errata.slicers.registry()["spotlight"] is errata.slicers.SLICERS["spotlight"]
    assert errata.fix.registry()["weights"] is errata.plan_weights
    assert "Find slices on half of the rows" in run("audit", "--help").out
