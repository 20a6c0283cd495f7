"""Rows of a slice to look at: random members, the highest losses, near neighbours; contrast before worst cases.

A part of this section gives `groups` and `folded`, each group with a title, a note and its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core import Array, HeldOutMeasure, Slice
from ...core.audit import UNCONFIRMABLE
from ...core.judgement import rows_as_found
from ...explain.examples import Example
from ...explain.exemplars import Exemplars
from ...explain.extremes import Extremes
from ...explain.near import Near
from .. import numbers, sentences
from ..contract import Part, Section, Values, View
from ..row_items import MOST_COLUMNS, example_item, has_images, telling_columns
from ..static_files import Script
from .training_rows import strongest_opponents

MOST_TEXT_PAIRS = 3  # of texts, which take more room than images


def rows_section(view: View, slice_: Slice, parts: Sequence[Values]) -> dict[str, Any]:
    """The groups of all parts, and what is said above them."""
    # Images are embedded in the order they are asked for, up to a budget: what is folded away comes last.
    groups = [_with_items(view, slice_, group) for part in parts for group in part["groups"]]
    folded = [_with_items(view, slice_, group, linked=False) for part in parts for group in part["folded"]]
    rows = sum(len(group["rows"]) for group in groups)
    heading = "Images" if has_images(view.audit) else "Rows"
    measured = _measure_as_found(slice_)
    if measured is None:
        right = "Some"
    else:
        right = numbers.rate_of(measured.n - measured.errors, measured.n)
    return {
        "heading": heading,
        "all_members": _all_members(view, slice_),
        "shown": f"{numbers.counted(rows, 'row')} from {numbers.counted(len(groups), 'group')}; "
        "shares are drawn above each.",
        "one_sided": f"Errors only. {right} of this slice is right; a hypothesis from errors alone is often false.",
        "groups": groups,
        "folded": folded,
        "training": strongest_opponents(slice_),
    }


def _all_members(view: View, slice_: Slice) -> str:
    """The words of the link to all members; "" where a saved page has no list of them."""
    if not view.links.saved:
        return f"See all {numbers.counted(int(slice_.members.sum()), 'member')}"
    if view.held_out_data is None:
        return ""
    held_out = int((slice_.members & ~view.audit.discover).sum())  # the only rows that it lists
    return f"See all {numbers.counted(held_out, 'held-out member')}"


SECTION = Section("rows", "Rows", 1, template="section_rows.html", context=rows_section, always=True)


def exemplar_groups(view: View, slice_: Slice) -> dict[str, Any] | None:
    """Members at random and the wrongest; folded: members by weight, and what to compare all with."""
    exemplars = slice_.explanation(Exemplars)
    if exemplars is None:
        return None
    groups = [_at_random(slice_, exemplars)]
    worst = exemplars.group("worst members")
    if worst.rows:
        note = f"{numbers.out_of(len(worst.rows), worst.total)} wrong members; not typical"
        groups.append(_group("Highest loss", note, worst.rows, share=100.0))
    return {"groups": [group for group in groups if group["rows"]], "folded": _fold_groups(exemplars)}


def neighbour_groups(view: View, slice_: Slice) -> dict[str, Any] | None:
    """Wrong members, each beside the nearest row outside the slice that has its label and is right."""
    near = slice_.explanation(Near)
    if near is None or view.task_rows(slice_).errors is None:
        return None
    rows: list[Example] = []
    most = len(near.rows) if has_images(view.audit) else MOST_TEXT_PAIRS
    for right in near.rows[:most]:
        if right.beside is not None:
            rows.append(right.beside)
        rows.append(right)
    note = _near_note(near) if rows else ""
    group = _group("Wrong beside right, same label", note, rows, wide=True)
    group["empty"] = "No such pair was found: a wrong member, and outside the slice a right row of its label."
    return {"groups": [group], "folded": []}


def _near_note(near: Near) -> str:
    """What stands beside wrong members, and how near it is."""
    if near.rows[0].beside is None:
        return "near rows outside the slice that are right, of any label"
    # Of many rows a sample is looked at, so there may be more.
    how_many = f"at least {numbers.counted(near.total, 'such row')}" if near.total else "none that was seen is"
    return (
        "a wrong member, then the nearest right row of its label outside the slice; "
        f"{how_many} as near as members are to each other"
    )


def easy_end(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The other end of a failure direction; the hard end is the members of highest weight, shown already."""
    extremes = slice_.explanation(Extremes)
    if extremes is None:
        return None
    easiest = extremes.group("easiest")
    if not easiest.rows:
        return None
    note = f"{numbers.out_of(len(easiest.rows), easiest.total)} held-out rows, by the direction"
    return {"groups": [], "folded": [{"title": "The easiest of its class", "note": note, "rows": easiest.rows}]}


def _at_random(slice_: Slice, exemplars: Exemplars) -> dict[str, Any]:
    members = exemplars.group("slice")
    rows = [row for row in members.rows if row.picked == "random"]
    measured = _measure_as_found(slice_)
    share = None
    if measured is not None and measured.error_rate is not None and slice_.reason != UNCONFIRMABLE:
        share = 100 * measured.rate
    note = _members_note(slice_, rows, members.total)
    return _group("Members at random", note, rows, wide=True, share=share)


def _measure_as_found(slice_: Slice) -> HeldOutMeasure | None:
    """The numbers of the rows that examples were drawn from: people may have changed the slice since."""
    return slice_.confirm if slice_.judged is None else slice_.judged.found.confirm


def _members_note(slice_: Slice, rows: Sequence[Example], of: int) -> str:
    measured = _measure_as_found(slice_)
    known = measured is not None and measured.error_rate is not None and slice_.reason != UNCONFIRMABLE
    wrong = sum(bool(row.wrong) for row in rows) if known else None
    in_all = ""
    if measured is not None:
        in_all = numbers.rate_of(measured.errors, measured.n)
    return sentences.members_at_random(len(rows), of, wrong, in_all)


def _group(
    title: str, note: str, rows: Sequence[Example], *, wide: bool = False, share: float | None = None
) -> dict[str, Any]:
    return {"title": title, "note": note, "rows": rows, "wide": wide, "share": share}


def _with_items(view: View, slice_: Slice, group: Mapping[str, Any], linked: bool = True) -> dict[str, Any]:
    """A group with its rows as items, linked to their pages or not."""
    columns = telling_columns(view, slice_, MOST_COLUMNS)
    inside = _rows_as_found(slice_)
    items = [{**example_item(view, row, columns=columns), "outside": not inside[row.row]} for row in group["rows"]]
    if linked:
        items = [{**row, "href": view.links.row(slice_.id, row["id"])} for row in items]
    return {**group, "rows": items}


def _rows_as_found(slice_: Slice) -> Array:
    if slice_.judged is None:
        return slice_.members
    return rows_as_found(slice_.judged.found, slice_.judged.merged)


def _fold_groups(exemplars: Exemplars) -> list[dict[str, Any]]:
    """Members by weight, then what to compare all with; members at random have a group of their own."""
    rows = "held-out rows" if exemplars.drawn_from == "confirm" else "rows"
    members = exemplars.group("slice")
    by_weight = tuple(row for row in members.rows if row.picked == "weight")
    highest = exemplars.group("highest loss")
    anywhere = exemplars.group("random")
    of_highest = numbers.out_of(len(highest.rows), highest.total)
    of_anywhere = numbers.out_of(len(anywhere.rows), anywhere.total)
    groups = [
        ("Members of highest weight", f"{numbers.out_of(len(by_weight), members.total)}; its core", by_weight),
        ("Highest loss", f"{of_highest} {rows}, in the slice or not; not typical", highest.rows),
        ("All rows at random", f"{of_anywhere} {rows}, seed {exemplars.seed}", anywhere.rows),
    ]
    return [{"title": title, "note": note, "rows": examples} for title, note, examples in groups if examples]


EXEMPLARS = Part("exemplars", SECTION, exemplar_groups, order=1, scripts=(Script("grid.js", ("grid.js",)),))
NEAR = Part("near", SECTION, neighbour_groups, order=2)
EXTREMES = Part("extremes", SECTION, easy_end, order=3)
