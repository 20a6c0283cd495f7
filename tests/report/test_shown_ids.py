"""What a person reads of a slice can be typed: its id, which commands and addresses take, and no other number."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from errata.report import to_html

Make = Callable[..., Any]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def audit_of_two(make_audit: Make, make_slice: Make) -> Any:
    """Slices whose ids are not their places in the list, such as after one was left out."""
    return make_audit(make_slice(id="s4", name="small triangles"), make_slice(id="s2", name="dim light"))


def test_the_list_shows_ids_and_no_places(make_audit: Make, make_slice: Make) -> None:
    html = to_html(audit_of_two(make_audit, make_slice))
    titles = [words(title) for title in re.findall(r"<h3><a [^>]*>(.*?)</a>", html)]
    assert titles[:2] == ["s4 small triangles", "s2 dim light"]


def test_the_page_of_a_slice_says_its_id(make_audit: Make, make_slice: Make) -> None:
    text = words(to_html(audit_of_two(make_audit, make_slice)))
    assert "Slice s4, 1 of 2" in text
    assert "Slice s2, 2 of 2" in text
