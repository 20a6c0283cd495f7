"""docs/papers.md is whole: each row has a verdict, figures of a study and a command that is understood, and the sums at
its end are of its rows."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from support.commands_in_docs import refused

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE = (DOCS / "papers.md").read_text(encoding="utf-8")
# Where the figures of a paper's rows stand.
STUDIES = {
    "S": ("studies/spotlight", "studies/benchmarks", "studies/infembed", "performance"),
    "I": ("studies/infembed", "studies/benchmarks", "studies/smaller"),
    "F": ("studies/directions",),
    "B": ("studies/barlow", "studies/benchmarks"),
    "D": ("studies/defuse",),
}
VERDICTS = ("held", "in part", "not held", "open", "cannot", "no claim")
TRIED = ("held", "in part", "not held")
ROW = re.compile(r"^\| ([SIFBD]\d+) (?:\| [^|]* ){3}\| \*\*([a-z ]+)\*\*([^|]*)\|", re.MULTILINE)


def rows(text: str) -> list[tuple[str, str, str]]:
    """Id, verdict and what is said of it."""
    return ROW.findall(text)


def decimals(text: str) -> list[str]:
    """Numbers with a decimal point, without a leading zero: ".05", "7.52"."""
    plain = re.sub(r"`[^`]*`", "", text)
    return [number.removeprefix("0") for number in re.findall(r"(?<![\w.])\d*\.\d+", plain)]


def stands(number: str, others: list[str]) -> bool:
    """Whether it is one of the others, or one of them rounded."""
    digits = len(number.partition(".")[2])
    return any(other == number or f"{float(other):.{digits}f}".removeprefix("0") == number for other in others)


def unfounded(text: str) -> list[str]:
    """Figures of ours that stand on no page of a study of that paper, as "S4 .53"."""
    found = []
    pages = {paper: [n for page in names for n in decimals(study(page))] for paper, names in STUDIES.items()}
    for line in re.findall(r"^\| [SIFBD]\d+ \|.*\|$", text, flags=re.MULTILINE):
        cells = line.strip("| ").split(" | ")
        said = [number for cell in (cells[3], cells[4], cells[6]) for number in decimals(cell)]
        found += [f"{cells[0]} {number}" for number in said if not stands(number, pages[cells[0][0]])]
    return found


def study(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def test_every_row_has_a_verdict():
    lines = re.findall(r"^\| ([SIFBD]\d+) \|", PAGE, flags=re.MULTILINE)
    assert len(lines) == len(set(lines)), "an id stands twice"
    told = rows(PAGE)
    assert [name for name, _, _ in told] == lines
    assert {verdict for _, verdict, _ in told} <= set(VERDICTS)
    assert "@" not in PAGE


def test_what_did_not_hold_has_a_reason():
    assert [name for name, verdict, why in rows(PAGE) if verdict == "not held" and len(why) < 20] == []


@pytest.mark.parametrize(
    "page", ["papers", *(f"studies/{path.stem}" for path in sorted((DOCS / "studies").glob("*.md")))]
)
def test_every_command_would_be_understood(page):
    """Read by the parser of its script, and not run."""
    pytest.importorskip("torch")
    assert list(refused(study(page))) == []


@pytest.mark.parametrize(
    "command",
    [
        "benchmarks/nothing.py",
        "benchmarks/directions_cifar.py nosuch",
        "benchmarks/directions_cifar.py strength --nosuch",
        "benchmarks/spotlight.py nosuch",
        "errata bench nosuch",
        "errata bench spotcheck --nosuch",
    ],
)
def test_a_command_that_would_be_refused_is_found(command):
    pytest.importorskip("torch")
    assert len(list(refused(f"see `{command}`."))) == 1


def test_every_figure_of_ours_stands_on_a_page_of_a_study():
    assert unfounded(PAGE) == []


def test_a_figure_that_no_study_has_is_found():
    row = "| S4 | where | .11 | .53 beside .9876 | **held** .659 | kin | 1.2345 | `x` |"
    assert unfounded(row) == ["S4 .9876", "S4 1.2345"]


def test_the_sums_are_those_of_the_rows():
    by_paper = {letter: Counter() for letter in "SIFBD"}
    for name, verdict, _ in rows(PAGE):
        by_paper[name[0]][verdict] += 1
    for letter, counts in by_paper.items():
        cells = " | ".join(str(counts[verdict]) for verdict in VERDICTS)
        assert f" ({letter}) | {cells} |" in PAGE, f"{letter}: {dict(counts)}"


def test_four_in_five_of_what_can_be_tried_are_tried():
    counts = Counter(verdict for _, verdict, _ in rows(PAGE))
    tried = sum(counts[verdict] for verdict in TRIED)
    assert tried / (tried + counts["open"]) >= 0.8
