"""Every notebook runs as it stands, and what its prose says of the result is so."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import errata

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
MOST_CELLS = 14  # with those of prose: a first screen is short

Names = dict[str, Any]


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def run_notebook(path: Path) -> tuple[Names, str, list[Any]]:
    """Run its cells in this process. Returns its names, what it printed, and the values that cells end with."""
    names: Names = {"__name__": "__main__"}
    shown = []
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        for cell in cells(path):
            if cell["cell_type"] == "code":
                shown.append(_run_cell("".join(cell["source"]), path.name, names))
    return names, out.getvalue(), [value for value in shown if value is not None]


def _run_cell(source: str, name: str, names: Names) -> Any:
    tree = ast.parse(source)
    if not isinstance(tree.body[-1], ast.Expr):
        exec(compile(tree, name, "exec"), names)
        return None
    last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]  # an Expr has a value
    exec(compile(tree, name, "exec"), names)
    return eval(compile(last, name, "eval"), names)


@pytest.fixture(autouse=True)
def no_window() -> Iterator[None]:
    """Figures are drawn into memory, and closed."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def table(names: Names, printed: str) -> None:
    worst = names["worst"]
    assert (worst.name, worst.verdict) == ("work = self-employed", "confirmed")
    assert "work" not in names["columns"], "the model never saw it"
    assert errata.test(names["audit"], "relationship = single").verdict != "confirmed"
    assert "held-out rows match" in printed
    assert len(errata.load(names["folder"])) == len(names["audit"])


def text(names: Names, printed: str) -> None:
    worst = names["worst"]
    texts = [names["evaluation"].media.text(row) for row in worst.rows("held-out")]
    assert worst.verdict == "confirmed"
    assert sum("sick" in text or "wicked" in text for text in texts) > 0.9 * len(texts)
    verdicts = [errata.test(names["audit"], words, hypotheses=3).verdict for words in ("wicked", "camera")]
    assert verdicts == ["confirmed", "not confirmed"]
    assert printed.count("held-out rows match") == 3


def images(names: Names, printed: str) -> None:
    worst = names["worst"]
    assert worst.verdict == "confirmed"
    assert names["moved"][worst.rows("held-out")].mean() > 0.8
    assert errata.test(names["audit"], names["centre"] > 4.5).verdict == "confirmed"


def regression(names: Names, printed: str) -> None:
    both = "vehicle = bicycle and weather = rain"
    by_name = {slice_.name: slice_.confirm.rate for slice_ in names["audit"].confirmed}
    assert by_name[both] > max(by_name["vehicle = bicycle"], by_name["weather = rain"])
    assert [slice_.name for slice_ in names["too_low"].confirmed] == [both]
    assert printed.startswith(both)


def language_model(names: Names, printed: str) -> None:
    assert (names["worst"].name, names["worst"].verdict) == ("task = physics and level = hard", "confirmed")
    assert "held-out rows match" in printed


def predict_function(names: Names, printed: str) -> None:
    worst = names["worst"]
    assert worst.verdict == "confirmed"
    assert "country = near" in worst.name
    assert "read as the probability of `fraud`" in printed, "what was decided is printed"
    judgements = {change.id: change.judgement for change in names["comparison"].changes}
    assert judgements["overall"] == judgements["s1"] == "better"
    assert "worse" not in judgements.values()


CLAIMS: dict[str, Callable[[Names, str], None]] = {
    claim.__name__: claim for claim in (table, text, images, regression, language_model, predict_function)
}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_finds_what_its_prose_says(path: Path) -> None:
    names, printed, shown = run_notebook(path)
    CLAIMS[path.stem](names, printed)
    (overview,) = [value for value in shown if isinstance(value, errata.Audit)]
    assert "<table>" in overview._repr_html_()


def test_there_is_a_notebook_for_each_kind_of_data() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(CLAIMS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_and_holds_no_outputs(path: Path) -> None:
    assert 6 <= len(cells(path)) <= MOST_CELLS
    for cell in cells(path):
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/work-in-a-notebook.md"])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pages_name_the_notebook(page: str, path: Path) -> None:
    assert path.name in (ROOT / page).read_text(encoding="utf-8")
