"""A gate as files that build servers read: JUnit XML for GitLab, Jenkins and GitHub's actions, Markdown for a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from .gates import Check, Gate

# What XML 1.0 cannot hold, even escaped; a name made of a user's data may have it.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MARKUP = re.compile(r"([\\`*_\[\]#~|])")
MARKS = {"passed": "✅", "failed": "❌", "skipped": "⚪"}


def to_junit(gate: Gate) -> str:
    """JUnit XML: one test case a check; a failure has the sentence as its message.

    It keeps to what the schemas of Jenkins, GitLab and the common GitHub actions share, and has no times, so that the
    same gate gives the same bytes.
    """
    skipped = sum(check.status == "skipped" for check in gate.checks)
    counts = {"tests": str(len(gate.checks)), "failures": str(len(gate.failed)), "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "errata", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": f"errata {gate.command}", **counts})
    suite.set("skipped", str(skipped))
    for check in gate.checks:
        _add_case(suite, gate, check)
    words = [gate.title, gate.sentence, *gate.notes]
    ElementTree.SubElement(suite, "system-out").text = _xml_text("\n".join(filter(None, words)))
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_case(suite: ElementTree.Element, gate: Gate, check: Check) -> None:
    names = {"classname": f"errata.{gate.command}", "name": _xml_text(check.name), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", names)
    sentence = _xml_text(check.sentence)
    if check.status == "failed":
        failure = ElementTree.SubElement(case, "failure", {"message": sentence, "type": gate.command})
        failure.text = _xml_text(f"{check.name}\n{check.sentence}\n{gate.sentence}")
    elif check.status == "skipped":
        ElementTree.SubElement(case, "skipped", {"message": sentence})
    else:
        ElementTree.SubElement(case, "system-out").text = sentence


def _xml_text(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)


def to_markdown(gate: Gate) -> str:
    """Markdown with the table of checks, for a pull request or the summary of a job."""
    lines = [f"### errata {gate.command}: {_escape(gate.title)}", ""]
    if gate.sentence:
        mark = MARKS["failed"] if gate.failed else MARKS["passed"]
        lines += [f"{mark} **{_escape(gate.sentence)}**", ""]
    heads = ["", "group", *gate.columns]
    lines += [_line(heads), _line(["---"] * len(heads))]
    for check in gate.checks:
        lines.append(_line([MARKS[check.status], *map(_escape, (check.name, *check.cells))]))
    for note in gate.notes:
        lines += ["", _escape(note)]
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """Text as text: names come from data, and must neither break a table nor mention a person."""
    plain = MARKUP.sub(r"\\\1", " ".join(text.split()))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")
