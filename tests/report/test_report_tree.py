"""The whole tree on the page of a slice: lines, numbers, and what is not drawn."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from errata.core import Audit
from errata.explain.path import TreePath
from errata.explain.tree import NodeRows, TreeNode
from errata.report import to_html
from errata.report.image_sources import EmbeddedImages
from errata.report.parts.tree import _guides as guides
from errata.report.parts.tree import tree_lines
from errata.report.saved import saved_view

Make = Callable[..., Any]
DEPTHS = (0, 1, 2, 2, 1, 2, 3, 3, 2)


@pytest.fixture(scope="module")
def audit(tree_audit: Audit) -> Audit:
    return tree_audit


def told(audit: Audit, which: str = "path") -> Any:
    return next(one for one in audit.slices[0].explanations if one.kind == which)


def changed(audit: Audit, **changes: Any) -> Audit:
    kept = tuple(one for one in audit.slices[0].explanations if one.kind != "path")
    path = told(audit)
    data = {name: value for name, value in {**path.to_json(), **changes}.items() if value is not ...}
    found = replace(audit.slices[0], explanations=(*kept, TreePath.from_json(data)))
    return replace(audit, slices=(found, *audit.slices[1:]))


def lines_of(audit: Audit) -> Any:
    view = saved_view(audit, EmbeddedImages(None))
    group = view.class_of(audit.slices[0])
    assert group is not None
    lines = tree_lines(view, group, told(audit).tree, audit.slices[0])
    assert lines is not None
    return lines


def section(html: str) -> str:
    return html.partition('class="tree')[2].partition('<p class="q">')[0]


def test_lines_lead_from_each_node_to_those_below_it() -> None:
    nodes = [TreeNode(depth, None, None, False, NodeRows(0, 0), None) for depth in DEPTHS]
    signs = {"line": "│", "tee": "├", "elbow": "└", "gap": " "}
    drawn = ["".join(signs[one] for one in guides(nodes, i)) for i in range(len(nodes))]
    assert drawn == ["", "├", "│├", "│└", "└", " ├", " │├", " │└", " └"]


def test_every_node_is_a_line_with_its_held_out_numbers(audit: Audit) -> None:
    shown = section(to_html(audit))
    nodes = told(audit).to_json()["tree"]["nodes"]
    all_failures = nodes[0]["confirm"]["failures"]
    cells = re.findall(r'role="cell"><b>([^<]+)</b></span><span class="n opt" role="cell">([^<]+)<', shown)
    for node, (error, holds) in zip(nodes, cells, strict=True):
        n, failures = node["confirm"]["n"], node["confirm"]["failures"]
        assert error == (f"{100 * failures / n:.1f}%" if n >= 20 else f"{failures} of {n}")
        assert holds == f"{100 * failures / all_failures:.1f}%"
    assert "within" not in shown
    assert f"label {told(audit).within.removeprefix('label ')}" in shown
    assert shown.count("this slice") == 1
    assert shown.count('class="row here"') == 1


def test_what_was_searched_is_never_drawn_and_stands_behind_details(audit: Audit) -> None:
    html = to_html(audit).partition('id="slice/s1/tree"')[2].partition("</section>")[0]
    before, _, details = html.partition("<summary>Details: search rows")
    assert "Held-out rows. Error: share" in before
    assert "earch rows" not in before
    assert before.count("<circle") == len(told(audit).to_json()["tree"]["nodes"]) + 1  # and what was measured
    trees = details.partition("</details>")[0]
    assert "Search rows, where the tree was grown. Error: share" in trees
    assert "<circle" not in trees


def test_the_line_of_the_slice_says_what_its_headline_says(audit: Audit) -> None:
    """An approximation is measured on rows of its own: the leaf that it stands for keeps its own line."""
    for slice_ in audit.slices:
        alone = replace(audit, slices=(slice_,))
        lines = lines_of(alone)["lines"]
        (here,) = [line for line in lines if line["here"]]
        assert here["words"].startswith("what was measured")
        assert slice_.confirm is not None
        assert (here["n"], here["count"]) == (
            f"{slice_.confirm.n}",
            f"{slice_.confirm.errors} of {slice_.confirm.n}",
        )


def test_a_leaf_that_is_another_slice_is_linked(audit: Audit) -> None:
    other = replace(audit.slices[0], id="s9")
    nodes = told(audit).to_json()["tree"]["nodes"]
    rule = audit.slices[0].rule
    leaf = next(node["leaf"] for node in nodes if node["leaf"] not in (None, rule["of"]["leaf"]))
    moved = replace(other, rule={**rule, "of": {**rule["of"], "leaf": leaf}})
    html = section(to_html(replace(audit, slices=(*audit.slices, moved))))
    assert html.count('href="#slice/s9"') == 1
    assert 'href="#slice/s2"' not in html, "another class has a tree of its own"


@pytest.mark.parametrize("lack", [None, ...])
def test_an_audit_saved_without_the_tree_shows_the_path(audit: Audit, lack: Any) -> None:
    html = to_html(changed(audit, tree=lack))
    first = html.partition('id="slice/s1"')[2].partition('id="slice/s2"')[0]
    assert 'class="tree' not in first
    assert "Average leaf error rate" in first


def test_a_node_without_rows_is_not_measured(audit: Audit) -> None:
    nodes = [{**node, "confirm": {"n": 0, "failures": 0}} for node in told(audit).to_json()["tree"]["nodes"]]
    lines = [line for line in lines_of(changed(audit, tree={"nodes": nodes}))["lines"] if not line["here"]]
    assert {line["rate"] for line in lines} == {"not measured"}
    assert {line["at"] for line in lines} == {None}


def test_a_tree_saved_without_held_out_rows_says_so(audit: Audit) -> None:
    nodes = [{**node, "confirm": None} for node in told(audit).to_json()["tree"]["nodes"]]
    old = replace(changed(audit, tree={"nodes": nodes}), explanations=())
    html = to_html(old).partition('id="slice/s1/tree"')[2].partition("</section>")[0]
    before, _, details = html.partition("<summary>Details: search rows")
    assert "Held-out rows of its nodes were not recorded: this audit was made before version 0.6." in before
    assert before.count("<b>") < 6, "the path, and the number of the slice alone"
    assert "Search rows, where the tree was grown." in details


def test_a_node_beyond_the_axis_stretches_it(audit: Audit) -> None:
    tops = []
    for failures in (10, 90):
        nodes = [
            {**node, "confirm": {"n": 100, "failures": failures}} for node in told(audit).to_json()["tree"]["nodes"]
        ]
        whole = changed(audit, tree={"nodes": nodes})
        lines = lines_of(replace(whole, slices=(replace(whole.slices[0], verdict="not confirmed"),)))
        tops.append((lines["axis"].top, lines["lines"][0]["at"]))
    assert tops == [(0.6, pytest.approx(100 * 0.1 / 0.6)), (1.0, pytest.approx(90.0))]
