"""Gates: what fails, and the files that build servers read."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import errata
from errata.core.comparison import Group, measure
from errata.report.gate_files import to_junit, to_markdown
from errata.report.gates import Check, Gate, audit_gate, comparison_gate, shares_gate

# What the schema of Jenkins' xUnit plugin (junit-10.xsd), the strictest of the readers, allows.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id", "package", "file"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": ({"name", "time", "classname", "group"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "failure": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}
REQUIRED = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}


def checked(text: str) -> ElementTree.Element:
    """The suite, where the whole document keeps to the schema."""
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = ALLOWED[element.tag]
        assert set(element.attrib) <= attributes
        assert set(element.attrib) >= REQUIRED.get(element.tag, set())
        assert {child.tag for child in element} <= children
    (suite,) = root
    for counts in (root, suite):
        assert int(counts.get("tests")) == len(suite.findall("testcase")) > 0
        assert int(counts.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    return suite


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1200, 3))
    labels = rng.integers(0, 2, 1200)
    wrong = rng.random(1200) < np.where(x[:, 0] > 1, 0.7, 0.05)
    rows = errata.Evaluation(labels=labels, predictions=labels ^ wrong, representations={"x": x})
    return errata.audit(rows, methods=["gmm"])


def with_first(audit, **changes):
    return replace(audit, slices=(replace(audit.slices[0], **changes), *audit.slices[1:]))


def test_a_confirmed_slice_fails_and_the_others_do_not(audit):
    gate = audit_gate(audit, "confirmed")
    confirmed = {f"{slice_.id} {slice_.name}" for slice_ in audit.confirmed}
    assert {check.name for check in gate.failed} == confirmed
    assert 0 < len(confirmed) < len(audit.slices)
    assert gate.sentence.startswith("Gate fails, since a slice is confirmed: s1")
    assert audit_gate(audit, None).failed == ()
    assert audit_gate(audit, None).sentence == ""


def test_what_class_or_confidence_explains_is_not_beyond(audit):
    explained = with_first(audit, beyond=("class",), explained_by=("confidence",))
    assert audit.slices[0].id in {check.name.split()[0] for check in audit_gate(explained, "confirmed").failed}
    assert audit.slices[0].id not in {check.name.split()[0] for check in audit_gate(explained, "beyond").failed}
    alone = with_first(audit, beyond=("class", "confidence"), explained_by=())
    assert audit.slices[0].id in {check.name.split()[0] for check in audit_gate(alone, "beyond").failed}


def test_a_slice_that_is_better_than_the_rest_fails_nothing(audit):
    easy = replace(audit, slices=tuple(replace(slice_, side="easy") for slice_ in audit.slices))
    assert audit_gate(easy, "confirmed").failed == ()


def test_too_few_to_tell_is_skipped(audit):
    few = with_first(audit, verdict="too few to tell")
    gate = audit_gate(few, "confirmed")
    assert gate.checks[0].status == "skipped"
    assert "are needed" in gate.checks[0].sentence or "not known" in gate.checks[0].sentence


@pytest.mark.parametrize("fail_on", [None, "confirmed", "beyond"])
def test_junit_keeps_to_the_schema(audit, fail_on):
    suite = checked(to_junit(audit_gate(audit, fail_on)))
    assert [case.get("name").split()[0] for case in suite.findall("testcase")] == [s.id for s in audit.slices]


def test_an_audit_without_slices_is_one_case_that_passes(audit):
    empty = replace(audit, slices=())
    suite = checked(to_junit(audit_gate(empty, "confirmed")))
    assert suite.find("testcase").get("name") == "slices"
    assert "Gate passes" in to_markdown(audit_gate(empty, "confirmed"))


def test_names_made_of_data_break_neither_file():
    bad = 'a|b <img src=x> & "q" \x00\x1b[0m ]]> @team *x* _y_ `z`\nnew'
    gate = Gate("audit", bad, ("n",), (Check(bad, "failed", bad, (bad,)), Check("s2", "skipped", bad, ("1",))), "it is")
    suite = checked(to_junit(gate))
    name = suite.find("testcase").get("name")
    assert 'a|b <img src=x> & "q"' in name
    assert "\x00" not in name
    text = to_markdown(gate)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 4
    bars = [line.replace("\\|", "").count("|") for line in table]
    assert bars == [4, 4, 4, 4]
    for raw in ("<img", "@team", " *x*", "`z`"):
        assert raw not in text


def test_the_table_has_the_numbers_of_the_audit(audit):
    text = to_markdown(audit_gate(audit, "confirmed"))
    measured = audit.slices[0].confirm
    line = next(line for line in text.splitlines() if line.startswith("| ❌ | s1 "))
    assert f"| {measured.n} | {100 * measured.errors / measured.n:.1f}% |" in line
    assert f"| {100 * measured.gap:.1f} (" in line
    assert len({line.count(" | ") for line in text.splitlines() if line.startswith("|")}) == 1


def change(broken, fixed, n=400, id="s1"):
    before = np.zeros(n)
    after = np.zeros(n)
    before[:fixed] = 1
    after[n - broken :] = 1
    return measure(Group(id, "small", "", np.ones(n, dtype=bool), before, after), None, level=0.01)


def test_a_worse_group_fails_and_a_better_one_does_not():
    changes = (change(3, 2, id="overall"), change(40, 2), change(2, 40, id="s2"))
    gate = comparison_gate(errata.Comparison(changes, "error", 0.05), "recheck", "worse")
    assert [check.name for check in gate.failed] == ["s1 small"]
    assert comparison_gate(errata.Comparison(changes, "error", 0.05), "recheck", None).failed == ()
    suite = checked(to_junit(gate))
    low, high = changes[1].interval
    assert suite.find("testcase/failure").get("message") == (
        "0.5% of 400 rows wrong before, 10.0% after: a change of 9.5 points "
        f"({100 * low:.1f} to {100 * high:.1f}); worse."
    )


def test_shares_fail_above_the_share_alone(audit):
    first = audit.slices[0]
    assert first.verdict == "confirmed"
    shares = {slice_.id: 0.2 for slice_ in audit.slices}
    assert {check.name.split()[0] for check in shares_gate(audit.slices, shares, 50, 0.1).failed} == {
        slice_.id for slice_ in audit.confirmed
    }
    assert shares_gate(audit.slices, shares, 50, 0.2).failed == ()
    del shares[first.id]
    gate = shares_gate(audit.slices, shares, 50, 0.1)
    assert gate.checks[0].status == "skipped"
    checked(to_junit(gate))
