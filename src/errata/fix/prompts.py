"""The plan `prompts`: images to generate from the captions that describe a slice, as a diffusion model takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..core import Audit, InputError, Plan, Slice
from ..core.errors import unknown
from ..core.plan import Prompt
from ..explain.captions import DirectionCaptions
from .targets import check_whole, no_caption, no_targets, target_slices

Side = Literal["hard", "easy", "reference"]
SIDES = ("hard", "easy", "reference")


def plan_prompts(
    audit: Audit, count: int = 100, *, captions: int = 1, side: Side = "hard", slices: Sequence[str] | None = None
) -> Plan:
    """Plan images to generate from the captions of a slice.

    Parameters
    ----------
    audit : Audit
        An audit with captions: made with `texts` and the method `directions`.
    count : int
        Images for each slice.
    captions : int
        Captions of a slice that share the images.
    side : {"hard", "easy", "reference"}
        Captions of the failing side; "easy" and "reference" (the caption of the class alone) are baselines.
    slices : list of str, optional
        Slices to fix: ids, "accepted", "confirmed" or "all". Default: those that people accepted where there are any
        (`load(..., judged=True)`), else the confirmed ones.

    Returns
    -------
    Plan
        Its `prompts` have a text, a class and a count each.

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 2))
    >>> labels = rng.integers(0, 2, 1000)
    >>> wrong = rng.random(1000) < np.where((x[:, 0] > 1) & (labels == 1), 0.8, 0.05)
    >>> evaluation = errata.Evaluation(
    ...     labels=labels,
    ...     predictions=np.where(wrong, 1 - labels, labels),
    ...     representations={"x": x},
    ...     sources={"x": errata.Source(from_model=False)},
    ... )
    >>> texts = errata.Captions(
    ...     texts=("a red cat", "a blue cat"), embeddings=np.array([[1.0, 0.0], [-1.0, 0.0]]), representation="x"
    ... )
    >>> audit = errata.audit(evaluation, methods=["directions"], texts=texts)
    >>> [(prompt.text, prompt.label, prompt.count) for prompt in errata.plan_prompts(audit, count=5).prompts]
    [('a red cat', 1, 5)]
    """
    check_options(count, captions, side)  # also where nothing is to be drawn
    targets = target_slices(audit, slices)
    if not targets:
        return Plan("prompts", no_targets(audit))
    return make_prompts(targets, count, captions=captions, side=side)


def check_options(count: int, captions: int, side: str) -> None:
    """Raise for counts that are none, and for an unknown side."""
    check_whole("count", count, least=1)
    check_whole("captions", captions, least=1)
    if side not in SIDES:
        raise unknown("side", side, SIDES)


def make_prompts(slices: Sequence[Slice], count: int = 100, *, captions: int = 1, side: Side = "hard") -> Plan:
    """Plan `count` images for each slice, shared among its first `captions` captions on one side.

    Parameters
    ----------
    slices : list of Slice
        Slices that have captions.
    count : int
        Images for each slice.
    captions : int
        Captions of a slice that share the images.
    side : {"hard", "easy", "reference"}
        Which captions; "reference" is the caption of the class alone.
    """
    check_options(count, captions, side)
    by_slice = {slice_.id: _prompts_of(slice_, count, captions, side) for slice_ in slices}
    wanted = [prompt for prompts in by_slice.values() for prompt in prompts]
    if not wanted:
        raise InputError(no_caption(slices, "generate images from", side, "give another `side`"))
    why = f"generate {sum(prompt.count for prompt in wanted):,} images of {len(wanted)} {side} captions"
    without = [id for id, prompts in by_slice.items() if not prompts]
    if without:
        why += f"; without captions of that side: {', '.join(without)}"
    drawn = tuple(id for id, prompts in by_slice.items() if prompts)
    return Plan("prompts", why, prompts=tuple(wanted), slices=drawn, facts={"side": side})


def _prompts_of(slice_: Slice, count: int, captions: int, side: str) -> list[Prompt]:
    explanation = slice_.explanation(DirectionCaptions)
    if explanation is None:
        return []
    texts = {
        "reference": [explanation.reference],
        "hard": [row.text for row in explanation.hard[:captions]],
        "easy": [row.text for row in explanation.easy[:captions]],
    }[side]
    label = (slice_.rule.get("scope") or {}).get("label")
    share, spare = divmod(count, max(len(texts), 1))
    counts = [share + (i < spare) for i in range(len(texts))]  # the first ones take what does not divide evenly
    return [Prompt(text, label, n) for text, n in zip(texts, counts, strict=True) if text and n]
