"""The public names: which they are, that each is documented, and that every example in a docstring runs."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import errata

PACKAGE = Path(errata.__file__).parent
ROOMS = tuple(sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"cli", "workflow"}))
FUNCTIONS = (
    "apply", "audit", "by", "collect", "compare", "correct", "hold_out", "load", "plan_labels", "plan_prompts",
    "plan_selection", "plan_weights", "recheck", "save", "test",
)  # fmt: skip
CLASSES = (
    "Audit", "Captions", "Comparison", "ErrataError", "Evaluation", "Plan", "Settings", "Slice", "Source",
)  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert sorted(errata.__all__) == sorted([*FUNCTIONS, *CLASSES])
    for name in FUNCTIONS:
        assert inspect.isfunction(getattr(errata, name))
    for name in CLASSES:
        assert inspect.isclass(getattr(errata, name))


def test_no_public_name_hides_a_package() -> None:
    hidden = [name for name in errata.__all__ if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()]
    assert hidden == []


def test_rooms_are_attributes() -> None:
    """`import errata` is enough: a room is imported when it is first used, so that torch is not."""
    assert set(ROOMS) < set(dir(errata))
    program = (
        "import sys, errata; assert 'torch' not in sys.modules; "
        f"rooms = [getattr(errata, name).__name__ for name in {ROOMS!r}]; "
        f"assert rooms == ['errata.' + name for name in {ROOMS!r}], rooms; assert set(rooms) < set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError, match="no attribute 'guess'"):
        errata.guess  # noqa: B018


def test_the_package_ships_its_types() -> None:
    assert (PACKAGE / "py.typed").is_file()


# --- documentation ---------------------------------------------------------------------------------------------


def doc_of(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def described(doc: str) -> set[str]:
    """Names that a numpydoc section lists: `alpha : float`, `slicer, column : str, int`."""
    lines = re.findall(r"^(\w+(?:, \w+)*) :", doc, re.M)
    return {name for line in lines for name in line.split(", ")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_documents_its_parameters_and_result(name: str) -> None:
    doc = doc_of(getattr(errata, name))
    parameters = set(inspect.signature(getattr(errata, name)).parameters)
    assert parameters - described(doc.replace("**", "")) == set()
    assert "\nReturns\n" in doc
    assert "\nExamples\n" in doc


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_documents_its_fields_and_methods(name: str) -> None:
    cls = getattr(errata, name)
    doc = doc_of(cls)
    assert "Examples\n" in doc
    if dataclasses.is_dataclass(cls):
        assert {field.name for field in dataclasses.fields(cls)} - described(doc) == set()
    members = {key: value for key, value in vars(cls).items() if not key.startswith("_")}
    public = [key for key, value in members.items() if callable(value) or isinstance(value, property | classmethod)]
    assert [key for key in public if not doc_of(getattr(cls, key))] == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_is_documented(room: str) -> None:
    module = importlib.import_module(f"errata.{room}")
    things = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    bare = [name for name, thing in things.items() if inspect.isroutine(thing) or inspect.isclass(thing)]
    assert [name for name in bare if not things[name].__doc__] == []


@pytest.mark.parametrize("name", errata.__all__)
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestFinder(recurse=False).find(getattr(errata, name), name, globs={})
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    for example in examples:
        runner.run(example, out=report.append)
    assert runner.tries > 0
    assert report == []
