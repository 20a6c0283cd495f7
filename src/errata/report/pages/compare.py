"""Compare: what got better, what got worse, and which rows?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from ...core import Audit, Comparison
from ...core.id_order import positions_of
from .. import numbers
from ..comparison_lines import compare_audits, comparison_lines
from ..contract import Page, PageNotFound, Request, View
from ..gates import comparison_gate
from ..row_facts import row_facts
from ..row_items import item, strip
from ..slice_lines import title_of

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
    comparison = compare_audits(view.audit, others[name])
    return {
        **values,
        "comparison": _lines(view, comparison, name),
        "gate": comparison_gate(comparison, "compare", "worse"),
        "before": "this audit",
        "after": name,
        "level": f"{100 * (1 - 2 * comparison.alpha):.0f}%",
        "confirmed_after": sum(slice_.side == "hard" for slice_ in others[name].confirmed),
        "models": [audit.evaluation.origin.model or "" for audit in (view.audit, others[name])],
        "changed": changed_rows(view, others[name], comparison, {**request, "with": name}),
    }


def _lines(view: View, comparison: Comparison, name: str) -> dict[str, Any]:
    standings = view.backend.standings()
    titles = {slice_.id: title_of(slice_, standings) for slice_ in view.audit.slices}
    lines = comparison_lines(comparison, titles, view.axis)
    slices = {slice_.id: slice_ for slice_ in view.audit.slices}
    loops = {slice_.id for slice_ in view.audit.drawn}
    for line in (*lines["lines"], *lines["new"]):
        for change in CHANGES:
            line[f"{change}_href"] = _address(name, line["id"], change)
        if line["id"] in slices:
            line["href"] = view.links.slice(line["id"])
            line["strip"] = strip(view, slices[line["id"]])[:STRIP]
        elif line["id"] in loops:
            line["href"] = view.links.slice(line["id"])
        elif line["slice"]:
            ids = comparison.facts["changed"][line["id"]]["broken"][:STRIP]
            line["strip"] = [item(view, row_facts(view.audit, view.backend.row(str(id)))) for id in ids]
    return lines


def _address(name: str, group: str, change: str, page: int = 1) -> str:
    """The rows of a group that changed, one page of them."""
    words = {"with": name, "rows": group, "change": change, "page": page}
    return f"/compare?{urlencode(words)}#changed"


def changed_rows(view: View, second: Audit, comparison: Comparison, request: Request) -> dict[str, Any]:
    """Rows that were fixed, or are newly wrong, in a group of the comparison: one page of them."""
    changed: Mapping[str, Mapping[str, Sequence[Any]]] = comparison.facts["changed"]
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
