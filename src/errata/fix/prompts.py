"""Pictures to draw: the captions that describe a slice, as a diffusion model takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..core import InputError, Slice
from ..core.errors import unknown
from ..core.plan import Plan, Prompt

SIDES = ("hard", "easy", "reference")


def prompts(
    slices: Sequence[Slice], count: int = 100, *, captions: int = 1, side: Literal["hard", "easy", "reference"] = "hard"
) -> Plan:
    """`count` pictures for each slice, shared among its first `captions` captions on one side.

    "reference": the caption of the class alone, which is what the others are compared with.
    """
    if count < 1 or captions < 1:
        raise InputError(f"`count` and `captions` must be at least 1; got {count} and {captions}")
    if side not in SIDES:
        raise unknown("side", side, SIDES)
    asked = [prompt for found in slices for prompt in _of(found, count, captions, side)]
    if not asked:
        raise InputError("no slice has captions to draw; audit with `texts` and the method `directions`")
    said = f"draw {sum(p.count for p in asked):,} pictures of {len(asked)} {side} captions"
    return Plan("prompts", said, prompts=tuple(asked), slices=tuple(s.id for s in slices), facts={"side": side})


def _of(found: Slice, count: int, captions: int, side: str) -> list[Prompt]:
    data = next((one.data for one in found.explanations if one.kind == "captions"), None)
    if data is None:
        return []
    texts = [data["reference"]] if side == "reference" else [row["text"] for row in data[side][:captions]]
    label = (found.rule.get("scope") or {}).get("label")
    share, spare = divmod(count, max(len(texts), 1))
    return [Prompt(text, label, share + (i < spare)) for i, text in enumerate(texts) if text and share + (i < spare)]
