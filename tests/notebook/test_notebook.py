"""Frames, plots and cells of a notebook say what the audit says."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from errata import workflow
from errata.core import Audit, Evaluation, InputError
from errata.core.judgement import Judgement, as_left
from errata.notebook import plots
from support.small_audits import image_evaluation, text_evaluation


@pytest.fixture(scope="module")
def audit() -> Audit:
    return workflow.audit(image_evaluation(), methods=["domino", "gmm"])


@pytest.fixture(scope="module")
def by_loss() -> Audit:
    rows = image_evaluation()
    return workflow.audit(Evaluation(losses=rows.losses, representations=rows.representations), methods=["gmm"])


# --- frames ----------------------------------------------------------------------------------------------------


def test_a_frame_of_slices(audit: Audit) -> None:
    frame = audit.to_frame()
    assert frame.index.tolist() == [slice_.id for slice_ in audit]
    assert frame.index.name == "slice"
    for slice_ in audit:
        line = frame.loc[slice_.id]
        assert slice_.confirm is not None
        assert (line["n"], line["errors"], line["gap"]) == (
            slice_.confirm.n,
            slice_.confirm.errors,
            slice_.confirm.gap,
        )
        assert (line["gap_low"], line["gap_high"]) == slice_.confirm.interval
        assert line["rows"] == len(slice_.rows())
    assert frame["errors"].sum() / frame["n"].sum() > audit.overall[0][1].confirm_rate


def test_a_frame_tells_numbers_that_people_changed(audit: Audit) -> None:
    first = audit.slices[0]
    moved = {str(i): False for i in np.array(audit.evaluation.row_ids)[first.members & ~audit.discover][:3]}
    frame = as_left(audit, Judgement(moved={first.id: moved})).to_frame()
    assert frame["changed"].tolist() == [slice_.id == first.id for slice_ in audit]
    assert frame.loc[first.id, "n"] == first.confirm.n - 3  # type: ignore[union-attr]
    assert not audit.to_frame()["changed"].any()


def test_a_frame_of_no_slices_has_the_same_columns(audit: Audit) -> None:
    empty = replace(audit, slices=()).to_frame()
    assert len(empty) == 0
    assert empty.columns.tolist() == audit.to_frame().columns.tolist()
    assert (empty.dtypes == audit.to_frame().dtypes).all()


def test_what_was_not_measured_is_missing(audit: Audit) -> None:
    untested = replace(audit, slices=(replace(audit.slices[0], confirm=None), *audit.slices[1:]))
    frame = untested.to_frame()
    assert frame.loc["s1", ["n", "gap", "p_value"]].isna().all()
    assert frame.loc["s2", "n"] == audit["s2"].confirm.n  # type: ignore[union-attr]
    assert frame["n"].dtype == "Int64"  # whole numbers stay whole beside a missing one


def test_a_frame_of_rows() -> None:
    rows = text_evaluation(50, metadata={"label": np.arange(50), "light": np.arange(50) % 2})
    frame = rows.to_frame()
    assert frame.index.tolist() == rows.row_ids.tolist()
    assert frame["label"].tolist() == [("cat", "dog")[label] for label in rows.labels]
    assert frame["error"].tolist() == (frame["label"] != frame["prediction"]).tolist()
    assert frame["text"].iloc[3] == rows.media.text(3)  # type: ignore[union-attr]
    assert frame["metadata:label"].tolist() == list(range(50))
    assert np.array_equal(frame["confidence"], rows.probs.max(axis=1))
    assert frame.groupby("light")["error"].mean().sum() == pytest.approx(
        rows.errors[::2].mean() + rows.errors[1::2].mean()
    )


def test_a_frame_of_several_labels_and_of_targets() -> None:
    labels = np.array([[1, 0], [0, 1], [1, 1]])
    frame = Evaluation(labels=labels, predictions=1 - labels, class_names=("hat", "coat")).to_frame()
    assert frame.columns.tolist() == ["label:hat", "label:coat", "prediction:hat", "prediction:coat", "loss"]
    targets = Evaluation(labels=np.array([0.5, 1.5]), predictions=np.array([0.25, 1.0]), groups=["a", "a"]).to_frame()
    assert targets.columns.tolist() == ["label", "prediction", "loss", "group"]
    assert targets["label"].tolist() == [0.5, 1.5]


# --- cells -----------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.opened.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_cell_is_the_overview(audit: Audit) -> None:
    page = audit._repr_html_()
    tags = Tags(page)
    assert tags.open == []
    assert set(tags.opened) <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert tags.opened.count("tr") == 1 + min(len(audit), 10)
    assert len(page) < 10_000
    assert "errors" in page
    assert audit.silence in page


def test_a_cell_is_escaped(audit: Audit) -> None:
    bad = replace(audit.slices[0], name="<script>alert(1)</script>", task="<img src=x>", verdict="confirmed")
    page = replace(audit, slices=(bad,), silence="<script>", overall=(("<img src=x>", audit.overall[0][1]),))
    assert not {"script", "img"} & set(Tags(page._repr_html_()).opened)


def test_a_cell_of_losses_and_of_nothing(audit: Audit, by_loss: Audit) -> None:
    assert "<th" in by_loss._repr_html_()
    assert ">bad</th>" in by_loss._repr_html_()
    assert "<table" not in replace(audit, slices=())._repr_html_()


# --- plots -----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _close() -> object:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def test_gaps_are_drawn_where_they_are(audit: Audit) -> None:
    ax = audit.plot()
    segments = [line for line in ax.get_lines() if len(line.get_xdata()) == 2 and line.get_linewidth() == 1.5]
    drawn = [tuple(line.get_xdata()) for line in segments]
    expected = [tuple(100 * edge for edge in slice_.confirm.interval) for slice_ in audit]  # type: ignore[union-attr]
    assert np.allclose(drawn, expected)
    assert ax.get_yticklabels()[0].get_text().startswith("s1  ")
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first slice on top


def test_sizes_are_drawn_where_they_are(audit: Audit) -> None:
    ax = audit.plot("sizes")
    drawn = {(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.get_lines() if line.get_marker() in "os"}
    assert drawn == {(slice_.confirm.n, 100 * slice_.confirm.rate) for slice_ in audit}  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", plots.KINDS)
def test_a_plot_is_saved_and_not_blank(audit: Audit, by_loss: Audit, kind: str, tmp_path: Path) -> None:
    for number, result in enumerate((audit, by_loss)):
        result.plot(kind).figure.savefig(tmp_path / f"{number}.png")
        with Image.open(tmp_path / f"{number}.png") as image:
            assert np.asarray(image.convert("L")).std() > 10


def test_a_plot_goes_where_it_is_told(audit: Audit) -> None:
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2)
    assert audit.plot("sizes", ax=axes[1]) is axes[1]
    assert not axes[0].get_lines()


def test_a_name_is_no_mathematics(audit: Audit, tmp_path: Path) -> None:
    odd = replace(audit.slices[0], name=r"price $\frac{$")
    replace(audit, slices=(odd,)).plot().figure.savefig(tmp_path / "odd.png")


def test_long_names_leave_room_for_the_gaps(audit: Audit) -> None:
    long = tuple(replace(slice_, name="a word and another, " * 20) for slice_ in audit)
    figure = replace(audit, slices=long).plot().figure
    figure.draw_without_rendering()
    box = figure.axes[0].get_window_extent()
    assert box.width > 0.5 * figure.bbox.width
    for text in (figure.axes[0].xaxis.label, figure.axes[0].title):
        extent = text.get_window_extent()
        assert figure.bbox.x0 <= extent.x0 < extent.x1 <= figure.bbox.x1


def test_a_plot_of_nothing_says_so(audit: Audit) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        replace(audit, slices=()).plot()
    with pytest.raises(InputError, match="unknown kind of plot `size`; did you mean `sizes`"):
        audit.plot("size")
