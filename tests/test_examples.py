"""Every example runs as it stands and finds what it hides."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.fixture
def threads() -> Iterator[None]:
    """An example may choose the number of threads, which would stay for the tests after it."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def run_example(path: Path) -> str:
    """What it prints, run in this process as `python PATH` runs it: another one imports the packages again."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(sys, "argv", [str(path)])
        runpy.run_path(str(path), run_name="__main__")
    return out.getvalue()


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    words = run_example(path).split()
    shares = [float(word.rstrip("%;")) for word in words if word.rstrip(";").endswith("%")]
    assert shares
    assert shares[0] >= 80


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES} == {"arrays", "defuse_mnist", "fix", "pytorch"}
