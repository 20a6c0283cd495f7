"""A map in an audit: places of all rows, kept through saving, and read back by the pages."""

from __future__ import annotations

import json

import numpy as np

import errata
from errata import Evaluation
from errata.report import to_html
from errata.report.script_data import held_out_data, map_data, outcomes, positions, script_json


def audited(n: int = 200) -> errata.Audit:
    rng = np.random.default_rng(0)
    blob = np.arange(n) % 2
    labels = rng.integers(2, size=n)
    wrong = rng.random(n) < np.where(blob == 1, 0.6, 0.05)
    evaluation = Evaluation(
        labels=labels, predictions=np.where(wrong, 1 - labels, labels),
        representations={"seen": rng.normal(size=(n, 5)) + 12 * blob[:, None]},
        metadata={"side": np.array(["a", "b"])[blob]},
    )  # fmt: skip
    return errata.audit(evaluation, methods=["gmm"])


def test_rows_that_are_alike_lie_together():
    audit = errata.explain.draw_map(audited())
    xy = positions(audit).astype(float)
    blob = np.arange(200) % 2
    centres = np.array([xy[blob == side].mean(axis=0) for side in (0, 1)])
    nearest = np.linalg.norm(xy[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == blob).mean() > 0.95
    assert np.abs(xy).max() <= 32767


def test_a_map_is_saved_and_drawn_once(tmp_path):
    audit = errata.explain.draw_map(errata.explain.draw_map(audited()))
    assert [one.kind for one in audit.explanations].count("map") == 1
    errata.save(audit, tmp_path / "audit")
    again = errata.load(tmp_path / "audit")
    assert np.array_equal(positions(again), positions(audit))
    assert again.explanations == audit.explanations


def test_without_a_representation_there_is_no_map():
    bare = errata.audit(Evaluation(labels=np.arange(60) % 2, predictions=np.zeros(60, int)), methods=["confusion"])
    assert errata.explain.draw_map(bare) is bare
    assert positions(bare) is None
    assert map_data(bare) is None


def test_the_page_has_the_numbers_of_the_map():
    audit = errata.explain.draw_map(audited())
    html = to_html(audit)
    text = html.partition('id="map-data">')[2].partition("</script>")[0]
    told = json.loads(text)
    assert told == map_data(audit)
    assert told["n"] == told["of"] == 200
    assert '<div class="map" data-map="s1"' in html
    assert '<div class="map"' not in to_html(audited())


def test_some_rows_of_a_map():
    audit = errata.explain.draw_map(audited())
    rows = np.array([3, 50, 120])
    told = map_data(audit, rows)
    assert (told["n"], told["of"]) == (3, 200)
    assert told["xy"] != map_data(audit)["xy"]


def test_outcomes_are_right_wrong_or_unknown():
    audit = audited()
    assert outcomes(audit).tolist() == audit.evaluation.errors.astype(int).tolist()
    rows = Evaluation(losses=np.random.default_rng(0).random(60), representations={"x": np.eye(60)[:, :4]})
    losses = errata.audit(rows, methods=["gmm"])
    assert set(outcomes(losses)) == {2}
    assert held_out_data(losses)["n"] == (~losses.discover).sum(), "they are listed, though nothing can be tested"


def test_a_guess_in_a_saved_page_sees_confirm_rows_only():
    audit = audited()
    told = held_out_data(audit)
    assert told["n"] == (~audit.discover).sum() == len(told["columns"]["side"]["values"])
    assert told["columns"]["side"]["values"] == audit.evaluation.metadata["side"][~audit.discover].tolist()


def test_json_cannot_end_its_script_json():
    evil = {"a": "</script><script>alert(1)</script>", "b": "\u2028"}
    assert "<" not in script_json(evil)
    assert json.loads(script_json(evil)) == evil
