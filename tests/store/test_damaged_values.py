"""One value of audit.json is another: the audit is refused where it is read, or is shown; nothing ends as a fault."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import errata
from errata.core import InputError
from support.command import run
from support.small_audits import image_evaluation, quick_audit

NASTY = ("x", -1, None, [], {}, True, 0.5, ["x"], {"a": 1}, 2**70)
TRIED = 60
# where in audit.json, and a value that once ended `errata report` with exit code 70
KNOWN: tuple[tuple[tuple[Any, ...], Any], ...] = (
    (("slices", 0, "confirm", "excess"), [1.0]),
    (("slices", 0, "confirm", "excess", 1), "x"),
    (("slices", 0, "confirm"), 0),
    (("slices", 0, "task"), "cats"),
    (("slices", 0, "explained_by"), "class"),
    (("slices", 0, "explained_by"), 3),
    (("settings", "tested"), "many"),
    (("settings", "groups", "copies"), {"rows": 3}),
    (("settings", "notes"), [1]),
    (("overall", "confirm_rate"), "x"),
    (("overall", "confirm_n"), None),
    (("overall", "confirm_n"), 0.5),
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "audit"
    errata.save(quick_audit(image_evaluation(600), method="rules"), folder)
    (folder / "checksums.json").unlink()  # which would refuse every change
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "audit"))


def change(folder: Path, place: tuple[Any, ...], value: Any) -> None:
    path = folder / "audit.json"
    facts = json.loads(path.read_text())
    part = facts
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path.write_text(json.dumps(facts))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value of some JSON stands, of lists the first two."""
    if path:
        yield path
    parts: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        parts = enumerate(value[:2])
    for key, part in parts:
        yield from places(part, (*path, key))


@pytest.mark.parametrize(("place", "value"), KNOWN, ids=lambda part: str(part)[:60])
def test_a_value_that_cannot_be_is_refused(place: tuple[Any, ...], value: Any, folder: Path) -> None:
    errata.load(folder)
    change(folder, place, value)
    with pytest.raises(InputError, match=r"is damaged .*; run the audit again"):
        errata.load(folder)


@pytest.mark.parametrize("number", [-1, 600, 2**70])
def test_a_row_that_is_not_there_is_refused(number: int, folder: Path) -> None:
    facts = json.loads((folder / "audit.json").read_text())
    place = next(place for place in places(facts) if place[-1] == "row")
    change(folder, place, number)
    with pytest.raises(InputError, match=f"row {number} is shown, and there are 600"):
        errata.load(folder)


def test_whatever_is_changed_the_report_is_written_or_refused(saved: Path, folder: Path, tmp_path: Path) -> None:
    """`benchmarks/fuzz.py` tries thousands."""
    rng = np.random.default_rng(3)
    text = (saved / "audit.json").read_text()
    everywhere = list(places(json.loads(text)))
    for _ in range(TRIED):
        (folder / "audit.json").write_text(text)
        place = everywhere[rng.integers(len(everywhere))]
        value = NASTY[rng.integers(len(NASTY))]
        change(folder, place, value)
        code, _, err = run("report", folder, "-o", "r.html", folder=tmp_path)
        (tmp_path / "r.html").unlink(missing_ok=True)
        assert code in (0, 2), (place, value, err)


@pytest.mark.parametrize("positive", [1, "dog"])
def test_settings_are_read_as_they_were_given(positive: int | str, tmp_path: Path) -> None:
    """A class by its number or by its name: that is no damage."""
    audit = errata.audit(image_evaluation(600), methods=["rules"], metric="fnr", positive=positive)
    errata.save(audit, tmp_path / "audit")
    assert errata.load(tmp_path / "audit").settings["positive"] == positive
