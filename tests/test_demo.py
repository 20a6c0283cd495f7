"""What the demo says of the groups that were planted, from audits made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errata.bench import recipes
from errata.cli.examples import EXAMPLES, DemoExample, answer
from errata.core import Audit, Evaluation, Overall, Slice

N = 40
GROUP = np.arange(N) < 10  # five of them are held-out rows


def audit_of(*slices: tuple[str, Any]) -> Audit:
    """Slices of a verdict and its members; odd rows confirm."""
    found = [
        Slice(f"s{j + 1}", "gmm", "", verdict, 0.5, {}, np.asarray(members, dtype=float), found_by=("gmm", "domino"))
        for j, (verdict, members) in enumerate(slices)
    ]
    evaluation = Evaluation(losses=np.ones(N))
    overall = Overall(N, None, None, N // 2, 0, 0.0, (0.0, 0.1), "error")
    return Audit(tuple(found), evaluation, np.arange(N) % 2 == 0, (("", overall),), {}, "")


CASES = [
    ([], "not found (5 held-out rows)."),
    ([("confirmed", ~GROUP)], "not found (5 held-out rows)."),
    ([("confirmed", np.arange(N) < 24)], "not found (5 held-out rows)."),  # less than half of it: 5 of 12
    ([("not confirmed", GROUP)], "found, not confirmed, as s1 by gmm, domino: 5 of its 5 held-out rows, of 5 in all."),
    (
        [("too few to tell", GROUP), ("confirmed", np.arange(N) < 4)],
        "found and confirmed as s2 by gmm, domino: 2 of its 2 held-out rows, of 5 in all.",
    ),
    (
        [("confirmed", np.arange(N) < 4), ("confirmed", np.arange(N) < 12)],
        "found and confirmed as s2 by gmm, domino: 5 of its 6 held-out rows, of 5 in all.",
    ),
]


@pytest.mark.parametrize(("slices", "sentence"), CASES)
def test_every_planted_group_is_answered(slices: list[tuple[str, Any]], sentence: str) -> None:
    audit = audit_of(*slices)
    example = DemoExample(audit.evaluation, {"dogs in snow": GROUP}, "Planted: 1.")
    assert answer(example, audit).splitlines() == ["Planted: 1.", f"- dogs in snow: {sentence}"]


def test_the_network_learns_on_one_thread_and_gives_the_others_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the same seed finds other slices on another number of cores."""
    torch = pytest.importorskip("torch")
    threads = [2]  # tests have one: set, not asked for
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads[-1])
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    monkeypatch.setattr(recipes, "train", lambda *given, **more: pytest.fail(f"{threads[-1]} threads"))
    with pytest.raises(pytest.fail.Exception, match="1 threads"):
        EXAMPLES["scenes"](0, lambda what, share: None)
    assert threads == [2, 1, 2]
