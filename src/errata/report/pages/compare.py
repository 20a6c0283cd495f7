"""Compare: what got better, what got worse, and which rows?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from ...core import Audit, Change, Comparison
from ...core.id_order import positions_of
from .. import numbers, sentences
from ..comparison_lines import Fill, change_span, change_ticks, comparison_axis, comparison_sections
from ..comparison_text import is_shown, nothing_found
from ..contract import Page, PageNotFound, Request, View
from ..gates import comparison_gate
from ..row_facts import row_facts
from ..row_items import item

MAX_ROWS = 24  # changed rows on a page
STRIP = 4
CHANGES = {"broken": "Newly wrong", "fixed": "Fixed"}  # the first that has rows is shown
LONGEST_NUMBER = 9  # digits of a page in an address
CHANGE_KEYS = {"broken": "w", "fixed": "f"}


def context(view: View, request: Request) -> dict[str, Any]:
    """This audit beside the one that `with` names, or the first there is."""
    others = view.backend.other_audits()
    chosen = request.get("with", "")
    if chosen and chosen not in others:
        raise PageNotFound(f"Audit {chosen!r} does not exist; it cannot be compared with.")
    name = chosen or next(iter(others), "")
    values: dict[str, Any] = {"title": "Compare", "chosen": name, "others": list(others), "comparison": None}
    if not name:
        return values
    comparison = view.backend.compare(view.audit, name)
    changes = [change for change in comparison.changes if is_shown(change)]
    axis = comparison_axis(changes)
    return {
        **values,
        "comparison": comparison,
        "gate": comparison_gate(comparison, "compare", "worse"),
        "axis": axis,
        "sections": comparison_sections(changes, axis, _fill(view, comparison, name)),
        "change_ticks": change_ticks(change_span(changes)),
        "bad": sentences.bad_outcomes(comparison.outcome),
        "rows": numbers.out_of(comparison.facts["rows"], len(view.audit.evaluation)),
        "chosen_slices": _without_options(comparison.facts["chosen"]),
        "nothing_found": nothing_found(comparison),
        "nothing_new": _nothing_new(others[name], comparison, name),
        "before": "this audit",
        "after": name,
        "level": f"{100 * (1 - 2 * comparison.alpha):.0f}%",
        "models": [audit.evaluation.origin.model or "" for audit in (view.audit, others[name])],
        "changed": changed_rows(view, others[name], comparison, {**request, "with": name}),
    }


def _without_options(sentence: str) -> str:
    """Which slices are compared, without what an option of the command could add."""
    return sentence.partition(";")[0].rstrip(".")


def _nothing_new(second: Audit, comparison: Comparison, name: str) -> str:
    """What is said where the audit of the second model has no slice that is new; "" where it has one."""
    if any(change.kind == "new" for change in comparison.changes):
        return ""
    confirmed = sum(slice_.side == "hard" for slice_ in second.confirmed)
    if not confirmed:
        return f"None: the audit of {name} confirmed no slice."
    if confirmed == 1:
        return f"None: the one slice that the audit of {name} confirmed is known here."
    return f"None: all {numbers.in_words(confirmed)} slices that the audit of {name} confirmed are known here."


def _fill(view: View, comparison: Comparison, name: str) -> Fill:
    """What a line is given: the page of its slice, links to the rows that changed, and some of its rows."""
    slices = {slice_.id for slice_ in (*view.audit.slices, *view.audit.drawn)}
    listed = comparison.facts["changed"]
    members = comparison.facts["members"]

    def fill(change: Change, line: dict[str, Any]) -> None:
        if change.id in listed:
            for kind in CHANGES:
                line[f"{kind}_href"] = _address(name, change.id, kind)
        if change.id in slices:
            line["href"] = view.links.slice(change.id)
        if line["slice"]:
            ids = members.get(change.id, ())[:STRIP]
            line["strip"] = [item(view, row_facts(view.audit, view.backend.row(str(id)))) for id in ids]

    return fill


def _address(name: str, group: str, change: str, page: int = 1) -> str:
    """The rows of a group that changed, one page of them."""
    words = {"with": name, "rows": group, "change": change, "page": page}
    return f"/compare?{urlencode(words)}#changed"


def changed_rows(view: View, second: Audit, comparison: Comparison, request: Request) -> dict[str, Any] | None:
    """Rows that were fixed, or are newly wrong, in a group of the comparison: one page of them.

    None of several labels, where a row may be fixed under one and newly wrong under another.
    """
    changed: Mapping[str, Mapping[str, Sequence[Any]]] = comparison.facts["changed"]
    if not changed:
        return None
    group = request.get("rows", "overall")
    some = [kind for kind in CHANGES if changed.get(group, {}).get(kind)]
    change = request.get("change", (*some, "broken")[0])
    if group not in changed or change not in CHANGES:
        raise PageNotFound(f"The comparison has no rows {group!r}, {change!r}.")
    ids = changed[group][change]
    pages = max(1, -(-len(ids) // MAX_ROWS))
    page = min(_page(request.get("page", "1")), pages)
    first = (page - 1) * MAX_ROWS
    shown = ids[first : first + MAX_ROWS]
    name = request["with"]
    place = f"{first + 1} to {first + len(shown)} of {numbers.count(len(ids))}" if shown else ""
    previous = _address(name, group, change, page - 1) if page > 1 else ""
    following = _address(name, group, change, page + 1) if page < pages else ""
    return {
        "group": group,
        "what": comparison[group].name,
        "change": change,
        "choices": [
            (word, _address(name, group, kind), kind == change, len(changed[group][kind]), CHANGE_KEYS[kind])
            for kind, word in CHANGES.items()
        ],
        "rows": [_row(view, second, str(id)) for id in shown],
        "place": place,
        "previous": previous,
        "next": following,
    }


def _page(text: str) -> int:
    if len(text) > LONGEST_NUMBER or not text.isdecimal():  # Python refuses to read thousands of digits
        return 1
    return max(1, int(text))


def _row(view: View, second: Audit, id: str) -> dict[str, Any]:
    """A row under both models."""
    facts = row_facts(view.audit, view.backend.row(id))
    after = row_facts(second, positions_of(second.evaluation.row_ids, [id])[id])["prediction"]
    holding = next((slice_.id for slice_ in view.audit.slices if slice_.members[facts["row"]]), "")
    href = view.links.row(holding, facts["id"]) if holding else ""
    return {**item(view, facts), "before": facts["prediction"], "after": after, "href": href}


PAGE = Page(
    "compare",
    "page_compare.html",
    context,
    ("/compare",),
    nav="Compare",
    served_keys=(
        ("f w", "Compare: the rows that were fixed, are newly wrong: of the focused slice, else of the rows shown"),
        (", .", "Compare: the rows before, after these"),
    ),
)
