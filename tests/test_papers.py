"""docs/papers.md is whole: each row has a verdict, each command exists, and the sums at its end are of its rows."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
VERDICTS = ("held", "in part", "not held", "open", "cannot", "no claim")
TRIED = ("held", "in part", "not held")
ROW = re.compile(r"^\| ([SIFBD]\d+) (?:\| [^|]* ){3}\| \*\*([a-z ]+)\*\*([^|]*)\|", re.MULTILINE)


def rows(text: str) -> list[tuple[str, str, str]]:
    """Id, verdict and what is said of it."""
    return ROW.findall(text)


def missing_commands(text: str) -> list[str]:
    """Commands of benchmarks, files of tests and commands of `errata` that a page names and that do not exist."""
    missing = []
    for command in re.findall(r"`((?:benchmarks|tests)/[^`]+|errata [^`]+)`", text):
        words = command.split()
        if words[0] == "errata":
            name = " ".join(word for word in words[:3] if not word.startswith("-"))
            found = f"`{name}`" in COMMANDS
        else:
            path = ROOT / words[0]
            source = path.read_text(encoding="utf-8") if path.is_file() else ""
            parts = [word for word in words[1:] if re.fullmatch(r"[a-z0-9]+", word)]
            found = path.exists() and all(f'"{part}"' in source for part in parts)
        if not found:
            missing.append(command)
    return missing


def test_every_row_has_a_verdict():
    lines = re.findall(r"^\| ([SIFBD]\d+) \|", PAGE, flags=re.MULTILINE)
    assert len(lines) == len(set(lines)), "an id stands twice"
    told = rows(PAGE)
    assert [name for name, _, _ in told] == lines
    assert {verdict for _, verdict, _ in told} <= set(VERDICTS)
    assert "@" not in PAGE


def test_what_did_not_hold_has_a_reason():
    assert [name for name, verdict, why in rows(PAGE) if verdict == "not held" and len(why) < 20] == []


def test_every_command_exists():
    assert missing_commands(PAGE) == []


def test_a_command_that_does_not_exist_is_found():
    assert missing_commands("`benchmarks/nothing.py`") == ["benchmarks/nothing.py"]
    assert missing_commands("`benchmarks/directions_cifar.py nosuch`") == ["benchmarks/directions_cifar.py nosuch"]
    assert missing_commands("`errata bench nosuch`") == ["errata bench nosuch"]


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
