"""Size against loss, of slices that people changed: always on rows that nobody searched for them."""

from __future__ import annotations

import re

import numpy as np

from errata import workflow
from errata.core.audit import of_kind
from errata.core.judgement import Judgement, as_left
from errata.explain.sizes import Sizes
from errata.report import numbers, to_html
from support.small_audits import image_evaluation


def test_a_changed_slice_of_a_cross_fit_is_measured_where_it_was_not_searched() -> None:
    audit = workflow.audit(
        image_evaluation(1200), methods=["domino"], groups="none", self_test=False, map=False, crossfit=True
    )
    slice_ = next(one for one in audit.slices if one.confirmed_on == "discover")
    (plot,) = of_kind(audit.explanations, Sizes)
    before = next(entry for entry in plot.slices if entry.id == slice_.id)
    out = int(np.flatnonzero(slice_.members & audit.discover)[0])
    left = as_left(audit, Judgement(moved={slice_.id: {str(audit.evaluation.row_ids[out]): False}}))
    held_out = left[slice_.id].members & audit.discover
    assert held_out.sum() == before.point.n - 1
    table = to_html(left).partition('id="h-sizes"')[2].partition("</table>")[0]
    row = next(line for line in table.split("<tr>") if f">{slice_.id}</span>" in line)
    loss = numbers.quantity(float(audit.evaluation.losses[held_out].mean()))
    assert re.findall(r'class="num">([^<]*)<', row)[::2] == [str(held_out.sum()), loss]
