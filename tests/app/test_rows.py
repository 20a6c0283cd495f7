"""All rows, asked as the page asks: what matches is what numpy says, what is written is read back."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from errata.app.row_queries import RowFinder, RowQuery, read_loop
from errata.core import Audit, InputError
from errata.people.entries import Edit
from errata.people.records import Records
from support.asking import Ask, opened, sentence
from support.small_audits import image_evaluation, quick_audit, text_evaluation, tile_audit


@pytest.fixture
def both(audit: Audit, tmp_path: Path) -> Iterator[tuple[Records, Ask]]:
    records, ask = opened(audit, tmp_path)
    with records:
        yield records, ask


@pytest.fixture
def ask(both: tuple[Records, Ask]) -> Ask:
    return both[1]


def rows_of(ask: Ask, **asked: Any) -> list[int]:
    """Every row that matches, page by page."""
    found: list[int] = []
    while True:
        got = ask("GET", "/api/rows", params={**asked, "start": len(found), "count": 150})
        assert got.status_code == 200, got.text
        found += [line["row"] for line in got.json()["rows"]]
        if len(found) >= got.json()["total"]:
            assert len(found) == got.json()["total"]
            return found


def wrong_rows(audit: Audit) -> Any:
    assert audit.evaluation.errors is not None
    return audit.evaluation.errors


def test_every_filter_is_what_numpy_says(ask: Ask, audit: Audit) -> None:
    rows = audit.evaluation
    members = audit.slices[0].members
    night = np.asarray(rows.metadata["light"]) == "night"
    size = np.asarray(rows.metadata["size"])
    wrong = wrong_rows(audit)
    confirmed = np.zeros(len(rows), dtype=bool)
    for found in audit.slices:
        confirmed |= found.members & (found.verdict == "confirmed")
    for asked, expected in [
        ({}, np.ones(len(rows), dtype=bool)),
        ({"slice": "s1"}, members),
        ({"slice": "s1", "side": "out"}, ~members),
        ({"slice": "s1", "side": "any"}, members | True),
        ({"outcome": "wrong"}, wrong),
        ({"outcome": "right", "slice": "s1"}, ~wrong & members),
        ({"where": "light = night and size > 5"}, night & (size > 5)),
        ({"where": 'label = "cat" and prediction = "dog"'}, (rows.labels == 0) & (rows.predictions == 1)),
        ({"role": "held-out"}, ~audit.discover),
        ({"role": "search", "where": "size <= 2"}, audit.discover & (size <= 2)),
        ({"verdict": "confirmed"}, confirmed),
        ({"verdict": "none"}, ~np.any([found.members for found in audit.slices], axis=0)),
    ]:
        assert sorted(rows_of(ask, **asked)) == np.flatnonzero(expected).tolist(), asked


def test_orders_are_sorted_and_others_are_drawn(ask: Ask, audit: Audit) -> None:
    rows = audit.evaluation
    assert rows.losses is not None
    assert rows.probs is not None
    values = {"loss": rows.losses, "confidence": rows.probs.max(axis=1), "depth": audit.slices[0].weights}
    for order, by in values.items():
        down = by[rows_of(ask, slice="s1", order=order)]
        assert (np.diff(down) <= 0).all(), order
        assert (np.diff(by[rows_of(ask, slice="s1", order=order, up=True)]) >= 0).all(), order
    first, again, others = (rows_of(ask, slice="s1", seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != others
    assert sorted(first) == sorted(others)


def test_more_like_this_is_the_nearest_first(ask: Ask, audit: Audit) -> None:
    X = np.asarray(audit.evaluation.representations["features"], dtype=np.float64)
    found = rows_of(ask, like="row-5")
    distances = np.linalg.norm(X[found] - X[5], axis=1)
    assert found[0] == 5
    assert (np.diff(distances) > -1e-5).all()


def test_beside_a_row_are_the_nearest_right_ones_of_its_label(ask: Ask, audit: Audit) -> None:
    """By all pairs in double precision, which is not how the server does it."""
    rows = audit.evaluation
    assert rows.labels is not None
    X = np.asarray(rows.representations["features"], dtype=np.float64)
    asked = {"slice": "s1", "outcome": "wrong", "beside": True, "count": 20}
    got = ask("GET", "/api/rows", params=asked).json()["rows"]
    assert len(got) == 20
    for line in got:
        fits = (rows.labels == rows.labels[line["row"]]) & ~wrong_rows(audit)
        distances = np.where(fits, np.linalg.norm(X - X[line["row"]], axis=1), np.inf)
        assert line["beside"][0]["row"] == int(distances.argmin())
        assert line["beside"][0]["wrong"] is False
    right = next(i for i in range(len(rows)) if not wrong_rows(audit)[i])
    near = ask("GET", f"/api/near/row-{right}").json()
    assert right not in [line["row"] for line in near["near"]]  # not its own neighbour
    assert len(near["near"]) == 6
    assert near["slices"] == [found.id for found in audit.slices if found.members[right]]


def test_columns_add_up_inside_and_outside(ask: Ask, audit: Audit) -> None:
    view = ask("GET", "/api/view", params={"slice": "s1"}).json()
    assert view["n"] == int(audit.slices[0].members.sum())
    assert view["wrong"] == int((wrong_rows(audit) & audit.slices[0].members).sum())
    columns = {column["name"]: column["bars"] for column in view["columns"]}
    assert set(columns) == {"mistake", "label", "prediction", "light", "size"}
    for name in ("label", "prediction", "light", "size"):
        assert sum(bar["in"] for bar in columns[name]) == view["n"], name
        assert sum(bar["out"] for bar in columns[name]) == view["others"], name
    assert sum(bar["in"] for bar in columns["mistake"]) == view["wrong"]
    for name, bars in columns.items():  # a bar that is clicked lists just its rows
        for bar in bars:
            both = ask("GET", "/api/rows", params={"slice": "s1", "where": bar["condition"]}).json()
            assert both["total"] == bar["in"], (name, bar)
    lows = [float(bar["label"].split()[0]) for bar in columns["size"][1:-1]]
    assert lows == sorted(lows)
    assert len(lows) > 3


def test_a_loop_lists_what_lies_inside(ask: Ask) -> None:
    loop = [[-1.1, -1.1], [0.2, -1.1], [0.2, 1.1], [-1.1, 1.1]]
    text = ";".join(f"{x},{y}" for x, y in loop)
    listed = ask("GET", "/api/view", params={"loop": text}).json()
    counted = ask("POST", "/api/lasso", json={"loop": loop}).json()
    assert {name: listed[name] for name in counted} == counted
    assert 0 < listed["n"] < listed["n"] + listed["others"]


def test_rows_that_people_moved(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    out = str(audit.evaluation.row_ids[audit.slices[0].rows()[0]])
    into = str(audit.evaluation.row_ids[np.flatnonzero(~audit.slices[0].members)[0]])
    records.edit(Edit(slice="s1", item=out, inside=False, person="Ada"))
    records.edit(Edit(slice="s1", item=into, inside=True, person="Ada"))
    for moved, id in (("out", out), ("in", into)):
        got = ask("GET", "/api/rows", params={"slice": "s1", "moved": moved, "side": "any"}).json()
        assert [line["id"] for line in got["rows"]] == [id], moved


def test_a_row_that_people_put_out_is_gone_from_a_list_that_was_seen(both: tuple[Records, Ask], audit: Audit) -> None:
    records, ask = both
    slice_ = audit.slices[0]
    seen = rows_of(ask, slice=slice_.id, order="given")
    first = str(audit.evaluation.row_ids[seen[0]])
    assert slice_.id in ask("GET", f"/api/near/{first}").json()["slices"]
    records.edit(Edit(slice=slice_.id, item=first, inside=False, person="Ada"))
    assert rows_of(ask, slice=slice_.id, order="given") == seen[1:]
    assert slice_.id not in ask("GET", f"/api/near/{first}").json()["slices"]


def test_files_hold_every_row_that_matches(ask: Ask, audit: Audit) -> None:
    asked = {"slice": "s1", "outcome": "wrong", "order": "loss"}
    rows = rows_of(ask, **asked)
    ids = [str(id) for id in audit.evaluation.row_ids[rows]]
    assert ask("GET", "/api/export/rows.ids", params=asked).text.split() == ids
    table = pd.read_csv(io.BytesIO(ask("GET", "/api/export/rows.csv", params=asked).content))
    parquet = pd.read_parquet(io.BytesIO(ask("GET", "/api/export/rows.parquet", params=asked).content))
    assert audit.evaluation.losses is not None
    for frame in (table, parquet):
        assert frame["id"].tolist() == ids
        assert np.allclose(frame["loss"], audit.evaluation.losses[rows])
        assert frame["light"].tolist() == np.asarray(audit.evaluation.metadata["light"])[rows].tolist()
        assert frame["wrong"].all()
        assert set(frame["label"]) <= {"cat", "dog"}


def test_a_spreadsheet_runs_nothing_of_a_file(tmp_path: Path) -> None:
    """Text that begins as a formula has an apostrophe before it, numbers have none, and parquet has all as it was."""
    n = 200
    cells = ['=HYPERLINK("x")', "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "-", "\t=1+1", "\r=1+1"]
    harmless = ["-2.5", "+1e-3", "plain - text", "a\r=1+1"]
    quoted = [f"'{cell}" for cell in cells] + harmless
    cells += harmless
    notes = np.array([cells[i % len(cells)] for i in range(n)], dtype=object)
    shift = np.where(np.arange(n) % 2, -1.5, 2.0)
    rows = text_evaluation(n, metadata={"=note": notes, "shift": shift})
    records, ask = opened(quick_audit(rows), tmp_path)
    with records:
        content = ask("GET", "/api/export/rows.csv", params={"order": "given"}).content
        table = pd.read_csv(io.BytesIO(content), dtype={"'=note": str})
        parquet = pd.read_parquet(io.BytesIO(ask("GET", "/api/export/rows.parquet", params={"order": "given"}).content))
    first = table["'=note"][: len(cells)].tolist()
    assert first == quoted
    assert np.allclose(table["shift"], shift)
    assert parquet["=note"].tolist() == notes.tolist()


def test_files_of_odd_columns_are_read_back(tmp_path: Path) -> None:
    """Dates, text with commas and line ends, missing values, a column with a name of ours."""
    n = 200
    notes = np.array([f'a "b", {i}\nc' for i in range(n)], dtype=object)
    notes[3] = None
    days = np.datetime64("2024-01-01") + np.arange(n)
    metadata = {"note": notes, "day": days, "loss": np.arange(n), "share": np.where(np.arange(n) % 2, np.nan, 0.5)}
    rows = text_evaluation(n, metadata=metadata)
    records, ask = opened(quick_audit(rows), tmp_path)
    with records:
        for kind, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
            got = ask("GET", f"/api/export/rows.{kind}", params={"order": "given"})
            frame = read(io.BytesIO(got.content))
            assert len(frame) == n
            assert frame["note"][4] == notes[4]
            assert frame["note"].fillna("")[3] == ""
            assert frame["share"].isna().sum() == n // 2
            assert str(frame["day"][1])[:10] == "2024-01-02"
            assert np.allclose(frame["loss"], rows.losses)
            assert frame["text"][0] == rows.media.text(0)  # type: ignore[union-attr]
        nothing = ask("GET", "/api/export/rows.parquet", params={"where": "share = 0.5 and share is missing"})
        assert len(pd.read_parquet(io.BytesIO(nothing.content))) == 0


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"where": "sise > 3"}, 422, "Unknown column “sise”. Did you mean “size”?"),
        ({"slice": "s99"}, 404, "does not exist"),
        ({"like": "nobody"}, 404, "does not exist"),
        ({"order": "depth"}, 422, "name one"),
        ({"order": "near"}, 422, "Near to what?"),
        ({"order": "beauty"}, 422, "order"),
        ({"loop": "1,2;3"}, 422, "A loop"),
        ({"loop": "1,2;nan,3;2,2"}, 422, "A loop"),
        ({"count": 100_000}, 422, "count"),
        ({"start": -1}, 422, "start"),
    ],
)
def test_a_mistake_gets_one_sentence(ask: Ask, asked: dict[str, Any], status: int, words: str) -> None:
    got = ask("GET", "/api/rows", params=asked)
    assert got.status_code == status
    assert words in sentence(got)


def test_words_are_looked_for_or_searched_by_an_encoder(tmp_path: Path) -> None:
    audit = quick_audit(text_evaluation(400))
    records, ask = opened(audit, tmp_path / "plain.sqlite")
    with records:
        found = rows_of(ask, where="dim")
        assert found
        assert all("dim" in (audit.evaluation.media.text(row) or "") for row in found)  # type: ignore[union-attr]
    by = np.random.default_rng(0).random(400)
    records, ask = opened(audit, tmp_path / "encoder.sqlite", search=lambda words: by)
    with records:
        assert rows_of(ask, where="a dim room") == np.argsort(-by).tolist()
        assert ask("GET", "/api/rows", params={"where": "a dim room"}).json()["order"] == "near"


def test_losses_alone_have_no_outcome_to_filter_by(tmp_path: Path) -> None:
    plain = image_evaluation(300, labels=None, predictions=None, probs=None, class_names=None)
    records, ask = opened(quick_audit(plain, method="spotlight"), tmp_path)
    with records:
        assert "neither wrong nor right" in sentence(ask("GET", "/api/rows", params={"outcome": "wrong"}))
        assert ask("GET", "/api/rows", params={"order": "loss", "beside": True}).status_code == 200
        assert "no confidence" in sentence(ask("GET", "/api/rows", params={"order": "confidence"}))
        assert ask("GET", "/rows").status_code == 200


def test_what_is_remembered_is_bounded(audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from errata.app import row_queries
    from errata.app.audit_rows import AuditRows
    from errata.app.served_audit import ServedAudit

    with Records(tmp_path, fingerprint="f", slices={}) as records:
        finder = RowFinder(ServedAudit(audit, records, AuditRows(audit)))
        monkeypatch.setattr(row_queries, "CACHED", 3 * 4 * len(audit.evaluation))
        for seed in range(10):
            finder.find(RowQuery(seed=seed))
        assert len(finder._found) == 3
        assert list(finder._found)[-1].seed == 9


def test_a_loop_is_read_or_refused() -> None:
    assert read_loop("0,0;1,0;1,1").tolist() == [[0, 0], [1, 0], [1, 1]]
    for text in ("", "a", "1,2;3,4", "1,2,3;1,2,3;1,2,3"):
        with pytest.raises(InputError):
            read_loop(text)


def test_many_rows_are_asked_for_a_page_at_a_time(audit: Audit, tmp_path: Path) -> None:
    """How fast 200,000 are is in benchmarks/app.py; here, that no answer grows with the rows."""
    large = tile_audit(audit, 30)
    records, ask = opened(large, tmp_path)
    with records:
        view = ask("GET", "/api/view", params={"where": "light = night"})
        assert view.json()["n"] == 30 * int((np.asarray(audit.evaluation.metadata["light"]) == "night").sum())
        assert len(view.content) < 20_000
        page = ask("GET", "/api/rows", params={"start": 10_000, "count": 60})
        assert page.json()["total"] == 30 * len(audit.evaluation)
        assert len(page.json()["rows"]) == 60
