"""The page of a class: its rate, its ten features, its tree and its slices; and of audits that lack some of it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from errata.core import Audit
from errata.core.audit import of_kind
from errata.explain.examples import FeatureImage
from errata.explain.group_trees import GroupTrees, TopFeature
from errata.explain.thumbnails import address
from errata.report import to_html
from errata.report.class_trees import MOST_SAVED, class_trees


def page(html: str, id: str) -> str:
    return html.partition(f'<article class="view" id="class/{id}"')[2].partition("</article>")[0]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def before(audit: Audit) -> Audit:
    """As a version before 0.6 saved it."""
    return replace(audit, explanations=tuple(one for one in audit.explanations if one.kind != "trees"))


def test_every_class_has_a_page_that_overview_and_slice_lead_to(tree_audit: Audit) -> None:
    html = to_html(tree_audit)
    (trees,) = of_kind(tree_audit.explanations, GroupTrees)
    assert [group.within for group in trees.groups] == ["label cat", "label dog"]
    overview = html.partition('id="overview"')[2].partition("</article>")[0]
    for group in trees.groups:
        shown = words(page(html, group.id))
        assert f"{group.confirm.failures} of {group.confirm.n} held-out rows are wrong" in shown
        assert f'href="#class/{group.id}"' in overview
    for slice_, group in zip(tree_audit.slices, class_trees(tree_audit), strict=True):
        (own,) = group.slices
        assert f'href="#slice/{own.id}"' in page(html, group.id)
        slice_page = html.partition(f'id="slice/{slice_.id}"')[2].partition("</article>")[0]
        assert slice_page.count('href="#class/t') == 2  # below its name, and above its tree


def test_a_feature_has_its_score_its_images_and_both_sides_of_its_cut(tree_audit: Audit) -> None:
    (trees,) = of_kind(tree_audit.explanations, GroupTrees)
    shown = page(to_html(tree_audit), "t1")
    group = trees.groups[0]
    assert group.features
    lines = shown.partition('class="top-features"')[2].partition("</ol>")[0].split("<li>")[1:]
    assert len(lines) == len(group.features)
    for line, feature in zip(lines, group.features, strict=True):
        assert f"feature {feature.feature} " in words(line)
        assert f"information {feature.information:.3g}" in line
        for side in (feature.above, feature.below):
            assert f"{side.failures} of {side.n} wrong, 95% interval" in line
        assert line.count('<use href="#p') == 6
        assert all(f'aria-label="row row-{row}, labelled cat, predicted' in line for row in feature.rows)


def drawn(audit: Audit, classes: int) -> Audit:
    """With images of every feature of some classes, no two alike, and no slice."""
    (trees,) = of_kind(audit.explanations, GroupTrees)
    shades = iter(range(100_000))

    def image() -> str:
        shade = next(shades)
        return address(np.array([[shade % 256, shade // 256]]) / 255)

    def pictured(feature: TopFeature) -> TopFeature:
        images = [FeatureImage(row, image(), image(), image(), 0.1, 0.4, 0.3) for row in feature.rows]
        return replace(feature, images=tuple(images))

    groups = [
        replace(trees.groups[0], id=f"t{i + 1}", group={"label": i}, features=tuple(map(pictured, group.features)))
        for i, group in enumerate([trees.groups[0]] * classes)
    ]
    return replace(audit, slices=(), explanations=(replace(trees, groups=tuple(groups)),))


def test_the_images_of_features_are_in_the_saved_page(tree_audit: Audit) -> None:
    audit = drawn(tree_audit, classes=1)
    shown = page(to_html(audit), "t1")
    (trees,) = of_kind(audit.explanations, GroupTrees)
    rows = sum(len(feature.rows) for feature in trees.groups[0].features or ())
    assert shown.count("heat map: where") == rows
    assert shown.count('<use href="#v') == 2 * rows  # heat maps and attacks; the rows have their own images
    assert "left out of the saved page" not in shown


def test_classes_share_the_room_of_a_saved_page(tree_audit: Audit) -> None:
    audit = drawn(tree_audit, classes=6)
    html = to_html(audit)
    (trees,) = of_kind(audit.explanations, GroupTrees)
    for group in trees.groups:
        shown = page(html, group.id)
        assert shown.count("heat map: where") == len(group.features or ())
        assert "Heat maps and attacks of 5 of 6 rows are left out of the saved page." in words(shown)


def test_heat_maps_and_attacks_stand_below_their_own_images(tree_audit: Audit) -> None:
    """Of the second class the first row is drawn, and the fourth, which shares its images with the first class."""
    audit = drawn(tree_audit, classes=6)
    (trees,) = of_kind(audit.explanations, GroupTrees)
    first, second, *others = trees.groups
    shared = first.features[0].images[0]
    images = list(second.features[0].images)
    images[3] = replace(images[3], heat=shared.heat, attack=shared.attack)
    changed = replace(second.features[0], images=tuple(images))
    groups = (first, replace(second, features=(changed, *second.features[1:])), *others)
    html = page(to_html(replace(audit, explanations=(replace(trees, groups=groups),))), second.id)
    strips = [part.partition("</div>")[0] for part in html.split('<div class="strip six">')[1:4]]
    for strip in strips[1:]:
        cells = strip.split("<span>")[1:]
        assert [
            f"row row-{image.row}" in cell or f"in row row-{image.row}" in cell
            for cell, image in zip(cells, images, strict=True)
        ] == [True, False, False, True, False, False]


def test_images_of_features_stay_within_the_budget(tree_audit: Audit, monkeypatch) -> None:
    monkeypatch.setattr("errata.report.image_sources.BUDGET", 5_000)
    html = to_html(drawn(tree_audit, classes=2))
    assert sum(map(len, re.findall(r"data:image/[^\"]+", html))) < 6_000
    assert re.search(r"\d+ of \d+ images are left out to keep them under", words(html))


def test_an_audit_saved_before_says_what_was_not_recorded(tree_audit: Audit) -> None:
    html = to_html(before(tree_audit))
    assert len(class_trees(before(tree_audit))) == 2
    shown = words(page(html, "t1"))
    assert "The features of most mutual information were not recorded: this audit was made before version 0.6." in shown
    old, new = (class_trees(audit)[0] for audit in (before(tree_audit), tree_audit))
    assert old.within in ("label cat", "label dog")
    again = next(group for group in class_trees(tree_audit) if group.within == old.within)
    assert old.confirm == again.confirm, "counted on the rows, which an old audit has"
    assert new.features is not None


def test_of_very_many_classes_a_saved_page_has_those_with_slices(tree_audit: Audit) -> None:
    (trees,) = of_kind(tree_audit.explanations, GroupTrees)
    alike = [
        replace(trees.groups[0], id=f"t{i + 3}", group={"label": i + 2}, features=()) for i in range(MOST_SAVED + 20)
    ]
    many = replace(trees, groups=(*alike, *trees.groups))
    html = to_html(replace(tree_audit, explanations=(many,)))
    assert html.count('<article class="view" id="class/') == MOST_SAVED
    for group in trees.groups:
        assert page(html, group.id)
    linked = set(re.findall(r'href="#class/(t\d+)"', html))
    assert linked <= set(re.findall(r'id="class/(t\d+)"', html)), "no link leads nowhere"


def test_a_class_that_is_mostly_wrong_lies_on_the_axis_of_the_overview(tree_audit: Audit) -> None:
    """The axis of the audit ends at 60% or 100%; a class beyond it was drawn at its end."""
    (trees,) = of_kind(tree_audit.explanations, GroupTrees)
    wrong = tuple(replace(group, confirm=replace(group.confirm, n=100, failures=80)) for group in trees.groups)
    html = to_html(replace(tree_audit, explanations=(replace(trees, groups=wrong),)))
    overview = html.partition('id="overview"')[2].partition("</article>")[0]
    shown = overview.partition('class="class-list"')[2].partition("</ul>")[0]
    assert 'cx="80.00%"' in shown
    assert 'cx="100.00%"' not in shown


def test_a_class_without_failures_says_that_nothing_splits_it(tree_audit: Audit) -> None:
    (trees,) = of_kind(tree_audit.explanations, GroupTrees)
    first = trees.groups[0]
    bare = replace(
        first, id="t9", group={"label": 7}, features=(), tree=replace(first.tree, nodes=first.tree.nodes[:1])
    )
    html = to_html(replace(tree_audit, explanations=(replace(trees, groups=(bare,)),)))
    shown = words(page(html, "t9"))
    assert "No feature says anything about failure here" in shown
    assert "No split was better than none." in shown
    assert "No leaf of its tree is among the slices of this audit." in shown
