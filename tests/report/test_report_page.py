from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from errata.core import Evaluation, Overall
from errata.explain.classes import Classes
from errata.explain.metadata import Metadata
from errata.explain.sizes import Sizes
from errata.explain.tokens import Tokens
from errata.report import marks, to_html
from errata.report.image_sources import EmbeddedImages, data_address, is_small
from errata.report.pages.overview import context
from support.reports import SCRIPTS, view_of

ROLES = {"chosen_on": "discover", "measured_on": "confirm"}
EVIL = "<script>alert('x')</script>"


class _Reader(HTMLParser):
    """Collects tags and visible words; complains of tags that do not match."""

    VOID = frozenset({"meta", "link", "br", "path", "rect", "line", "circle", "use", "image", "input", "img"})

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.words, self.addresses = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.words += [" "] if tag in ("td", "dd", "dt", "p", "li", "h3") else []
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)


def read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    assert reader.open == []
    return reader


def words(html: str) -> str:
    html = re.sub(r"<dialog id=\"glossary\".*?</dialog>", "", html, flags=re.S)  # it has every word
    return " ".join("".join(read(html).words).split())


def test_a_page_says_what_was_found(make_slice, make_audit, confirmed, exemplars):
    few = make_slice(id="s2", verdict="too few to tell", confirm=confirmed(n=11, errors=5, rows_needed=20), beyond=())
    lost = make_slice(id="s3", verdict="not confirmed", confirm=confirmed(gap=0.051, interval=(-0.002, 0.128)))
    text = words(to_html(make_audit(make_slice(explanations=(exemplars,)), few, lost)))
    for part in (
        "One group of inputs holds 75% of this model’s errors.",
        "The model is wrong on 4 of 50 held-out rows: 8.0% (95% interval 3.0 to 19.0).",
        "3 of those errors lie in one confirmed slice that covers 20% of the rows.",
        "Found on 50 rows, measured on 50 others. Intervals are 90%, simultaneous",
        "s1 small triangles made by machine",
        "Worse than the rest, not explained by its class or by low confidence.",
        "45.8% vs 7.6%",
        "82 excess errors (68 to 96)",
        "Not confirmed: 1",
        "Too few to tell: 1",
        "11 held-out rows; at least 20 are needed.",
        "5 of 11 vs 7.6%",
        "What this audit could have missed",
        "Below 50 rows, silence says little.",
        "50 search rows, 50 held-out rows, seed 0",
        "0.1.0",
    ):
        assert part in text
    assert text.count("simultaneous") == 1


def test_a_page_needs_nothing_from_outside(make_slice, make_audit, exemplars, pictures):
    evaluation = Evaluation(losses=np.ones(100), media=pictures(100))
    html = to_html(make_audit(make_slice(explanations=(exemplars,)), evaluation=evaluation))
    reader = read(html)
    assert "http://" not in html
    assert "https://" not in html
    assert "data:image/png" in html
    assert all(address.startswith(("data:", "#")) for address in reader.addresses)
    assert not re.search(r"url\(|@import", html)


def test_user_text_is_escaped_everywhere(make_slice, make_audit, exemplars, texts, value_row):
    row = value_row(EVIL)
    profile = {"column": EVIL, "kind": "categorical", "rows": [row], "left_out": 0}
    token = {
        "token": EVIL, "relative": 2.0, "found_relative": 2.0, "covers": [1, 2], "precise": [1, 2], "n": 2, "errors": 1,
        "error_rate": 0.5, "mean_loss": 1.0, "slice_tokens": [1, 2], "whole_tokens": [1, 2],
    }  # fmt: skip
    length = {"slice": 1.0, "slice_n": 2, "rest": 1.0, "rest_n": 2}
    pair = {"label": EVIL, "prediction": EVIL, "slice": [9, 10], "rest": [1, 10]}
    explanations = (
        exemplars,
        Metadata.from_json({**ROLES, "columns": [profile], "skipped": [{"column": EVIL, "distinct": 9999}]}),
        Classes.from_json({**ROLES, "labels": profile, "predictions": profile, "confused": [pair]}),
        Tokens.from_json({**ROLES, "minimum": 5, "rows": [token], "length": length}),
    )
    evaluation = Evaluation(losses=np.ones(100), media=texts(100, EVIL))
    found = make_slice(name=EVIL, method=EVIL, explanations=explanations, found_by=(EVIL,))
    html = to_html(make_audit(found, evaluation=evaluation, silence=EVIL, settings={EVIL: EVIL}))
    assert html.count('<script type="module">') == SCRIPTS
    assert html.lower().count("<script") == html.count("<script type=")
    assert html.count("&lt;script&gt;") > 15
    read(html)


def test_an_empty_audit_is_a_result(make_audit):
    text = words(to_html(make_audit()))
    assert text.count("No slice was confirmed.") >= 2
    assert "Below 50 rows, silence says little." in text
    assert "Not confirmed" not in text


def test_losses_are_never_called_errors(make_slice, make_audit, confirmed):
    overall = Overall(100, None, 0.41, 50, 5, 0.1, (0.04, 0.2), "loss above 2.31")
    found = make_slice(confirm=confirmed(error_rate=None))
    text = words(to_html(make_audit(found, evaluation=Evaluation(losses=np.arange(100.0)), overall=(("", overall),))))
    assert "One group of inputs has more losses above 2.31 than the rest." in text
    assert "98 of 214 held-out rows have a loss above 2.31: 45.8%" in text
    assert "82 excess losses above 2.31 (68 to 96)" in text
    assert "mean loss 1.2" in text
    assert "wrong" not in text
    assert "error" not in text


def test_an_easy_slice_says_better(make_slice, make_audit, confirmed):
    seen = confirmed(errors=3, rate=3 / 214, gap=-0.112, interval=(-0.15, -0.08))
    text = words(to_html(make_audit(make_slice(side="easy", confirm=seen))))
    assert "better than the rest" in text
    assert "The gap is −11.2 points (−15.0 to −8.0)." in text
    assert "No worse slice was confirmed; one group is better than the rest." in text


def test_a_multi_label_audit_names_its_labels(make_slice, make_audit):
    labels = np.zeros((100, 2), int)
    evaluation = Evaluation(labels=labels, predictions=labels, class_names=("cat", "night"))
    each = Overall(100, 0.04, 0.04, 50, 4, 0.08, (0.03, 0.19), "error")
    audit = make_audit(make_slice(task="night"), evaluation=evaluation, overall=(("cat", each), ("night", each)))
    text = words(to_html(audit))
    assert "cat: The model is wrong on 4 of 50" in text
    assert "night: The model is wrong on 4 of 50" in text
    assert "label night" in text
    assert "One group of inputs is worse than the rest." in text


def test_a_number_by_construction_is_not_shown(make_slice, make_audit):
    text = words(to_html(make_audit(make_slice(verdict="not confirmed", reason="unconfirmable"))))
    assert "so a high error is by construction." in text
    assert "45.8%" not in text


def test_an_approximation_that_says_nothing_is_not_said_to_read_the_outcome(audit):
    """It stood beside "measured on an approximation that does not read the outcome", and its rate further down."""
    found = replace(audit.slices[0], verdict="not confirmed", reason="unconfirmable", fidelity=0.16)
    text = words(to_html(replace(audit, slices=(found,))))
    assert "so a high error is by construction" not in text
    assert "What was measured in its place does not, holds mostly other rows, and was not confirmed" in text
    assert "16.0% of its rows are the method’s own" in text
    assert "No number is shown." in text
    assert "wrong here" not in text
    assert "Predicted positive" not in text


def test_more_than_five_slices_are_folded_with_their_count(make_slice, make_audit):
    html = to_html(make_audit(*(make_slice(id=f"s{j}") for j in range(7))))
    assert "7 confirmed slices, 5 shown. Show 2 more" in words(html)
    assert html.count('class="find"') == 7


def test_profiles_and_words_are_shown_with_their_counts(make_slice, make_audit, value_row):
    rows = [value_row("stripes"), value_row(None, slice=[3, 11], n=12, errors=4)]
    profile = {"column": "ground", "kind": "categorical", "rows": rows, "left_out": 0}
    data = {**ROLES, "columns": [profile], "skipped": [{"column": "file", "distinct": 1797}]}
    text = words(to_html(make_audit(make_slice(explanations=(Metadata.from_json(data),)))))
    assert "ground = stripes" in text
    assert "ground stripes 80.0% 10.0% 8.0× 42.0% 21 of 50" in text
    assert "ground missing 3 of 11 10.0% 8.0× 4 of 12" in text
    assert "file (1,797 values)" in text


def test_pictures_keep_to_their_budget(make_slice, make_audit, exemplars, pictures):
    evaluation = Evaluation(losses=np.ones(100), media=pictures(100, noise=250_000))
    html = to_html(make_audit(make_slice(explanations=(exemplars,)), evaluation=evaluation))
    assert len(html) < 2_000_000
    assert "4 of 8 images are left out to keep them under 1.5 MB in this file." in words(html)
    # What is not folded away comes first: the four random members of the strip.
    assert [f'id="p{i}"' in html for i in (5, 7, 9, 11, 1, 3, 51, 61)] == [True] * 4 + [False] * 4


def test_each_picture_is_stored_once(make_slice, make_audit, exemplars, pictures):
    evaluation = Evaluation(losses=np.ones(100), media=pictures(100))
    found = [make_slice(id=f"s{j}", explanations=(exemplars,)) for j in range(3)]
    assert to_html(make_audit(*found, evaluation=evaluation)).count("data:image/png") == 8


def test_a_picture_that_cannot_be_read_is_counted(pictures):
    class Broken(pictures):
        def thumbnail(self, i, px):
            raise OSError("gone")

    store = EmbeddedImages(Broken(3))
    assert store.symbol(1) is None
    assert (store.missing, store.requested) == ({1}, 1)


def test_picture_kinds(pictures):
    small, large = pictures(2, px=8).thumbnail(0, 9), pictures(2, px=64).thumbnail(0, 9)
    assert is_small(small)
    assert not is_small(large)
    assert data_address(small).startswith("data:image/png;base64,iVBOR")
    assert data_address(b"\xff\xd8\xff").startswith("data:image/jpeg;base64,")


def test_one_axis_for_the_whole_page(make_slice, confirmed):
    assert marks.error_axis([make_slice()]).top == 0.6
    assert marks.error_axis([make_slice(confirm=confirmed(rate=0.61))]).top == 1.0
    assert marks.error_axis([make_slice(confirm=confirmed(rate=0.9), verdict="not confirmed")]).top == 0.6
    assert marks.error_axis([]).top == 0.6


def test_a_whisker_clears_the_rest_by_the_lower_end_of_the_gap(make_slice, confirmed):
    seen = confirmed(rate=0.45, rest_rate=0.06, interval=(0.3, 0.6))
    drawn = marks.whisker(make_slice(), seen, marks.Axis(0.6))
    assert drawn.low - drawn.rest == pytest.approx(100 * 0.3 / 0.6)
    assert drawn.dot == pytest.approx(75.0)
    assert drawn.high == 100.0
    assert drawn.leaves_right
    assert not marks.whisker(make_slice(), confirmed(interval=(0.3, 0.99)), marks.Axis(1.0)).leaves_right
    assert not drawn.leaves_left


@pytest.mark.parametrize(
    ("largest", "wanted"),
    [(0.083, [0, 0.02, 0.04, 0.06, 0.08, 0.1]), (2.3, [0, 0.5, 1, 1.5, 2, 2.5]), (1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0])],
)
def test_ticks_are_round_and_start_at_zero(largest, wanted):
    assert marks.nice_ticks(largest) == pytest.approx(wanted)


def test_size_against_loss_is_drawn_and_tabled(make_slice, make_audit):
    point = {"id": "s1", "name": "small triangles", "side": "hard", "verdict": "confirmed"}
    data = {
        "task": "", "measured_on": "confirm", "overall": 0.5,
        "slices": [{**point, "n": 10, "share": 0.05, "mean_loss": 2.0}],
        "clusters": [{"cluster": 3, "n": 20, "share": 0.1, "mean_loss": 1.0}],
    }  # fmt: skip
    plot = marks.size_plot(Sizes.from_json(data))
    assert (plot["slices"][0]["x"], plot["slices"][0]["y"]) == pytest.approx((50.0, 0.0))
    assert plot["clusters"][0]["y"] == pytest.approx(50.0)
    text = words(to_html(make_audit(make_slice(), explanations=(Sizes.from_json(data),))))
    assert "s1 small triangles 10 5.0% 2" in text
    assert "cluster 3 20 10.0% 1" in text


def test_errors_in_two_slices_are_counted_once(make_slice, make_audit):
    wider = make_slice(id="s2", weights=(np.arange(100) < 60).astype(float))
    shown = context(view_of(make_audit(make_slice(), wider)), {})
    assert shown["shares"].slices == (3, 1)
    assert shown["shares"].outside == 0
    assert shown["title"] == "Two groups of inputs hold 100% of this model’s errors."


def test_settings_and_fingerprint_are_on_the_page(make_audit):
    audit = make_audit()
    text = words(to_html(audit))
    assert audit.evaluation.fingerprint in text
    assert "spotlight, domino" in text
    assert "alpha 0.05" in text


def test_an_easy_slice_holds_no_errors(make_slice, make_audit):
    easy = make_slice(id="s2", side="easy", weights=(np.arange(100) >= 50).astype(float))
    shown = context(view_of(make_audit(make_slice(), easy)), {})
    assert shown["shares"].slices == (3,)
    assert shown["shares"].outside == 1
