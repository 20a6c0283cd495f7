"""Every address of the app, asked as its pages ask: right words, right numbers, one sentence for every mistake."""

from __future__ import annotations

import html
import io
import json
import re
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from errata.app.audit_rows import MOST_DRAWN
from errata.core import Audit, Evaluation
from errata.inputs.media import ImageBytes
from errata.people.entries import Decision, Drawing
from errata.people.records import Records
from errata.report import to_html
from support.asking import PAGE, Ask, opened, other_audit, sentence
from support.small_audits import image_evaluation, quick_audit, text_evaluation, tile_audit

LOOP = [[-1.2, -1.2], [0.1, -1.2], [0.3, 0.4], [-0.2, 0.9], [-1.2, 0.2]]


def inside(loop: Any, xy: Any) -> Any:
    """By the sum of angles, which is not how the server does it."""
    to = np.asarray(loop)[None] - np.asarray(xy)[:, None]
    angle = np.arctan2(to[..., 1], to[..., 0])
    turn = (np.roll(angle, -1, axis=1) - angle + np.pi) % (2 * np.pi) - np.pi
    return np.abs(turn.sum(axis=1)) > np.pi


def places(audit: Audit) -> Any:
    told = next(one.to_json() for one in audit.explanations if one.kind == "map")
    return np.frombuffer(b64decode(told["xy"]), "<i2").reshape(-1, 2) / 32_767


@pytest.fixture(scope="module")
def text_audit() -> Audit:
    return quick_audit(text_evaluation(400))


# Pages


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/", ["Confirmed slices", "light = night", "What this audit could have missed", "made by machine"]),
        ("/slice/s1", ["light = night", "Members at random", "Words and rules", "Map", "Not decided.", 'data-key="a"']),
        ("/slice/s1/row/row-3", ["Row row-3", "Probabilities", "Metadata", "Its slices", "/thumb/3?px=640"]),
        ("/hypothesis", ["Is your hypothesis true?", "No hypothesis was tested yet."]),
        ("/hypothesis?q=light+%3D+night", ['value="light = night"', "data-now"]),
        ("/annotate", ["What is it really?", "Name the class", "In or out"]),
        ("/annotate/s1", ["Which class is it?", "None of the above", ">1</kbd> cat"]),
        ("/annotate/s1?task=member", ["Does it belong to the slice?"]),
        ("/curate", ["What do we keep?", "Undecided", "None yet."]),
        ("/compare", ["Of ", "Better", "All rows"]),
        ("/compare?with=better", ["After: better"]),
    ],
)
def test_a_page_says_what_it_should(ask: Ask, path: str, words: list[str]) -> None:
    got = ask("GET", path, headers=PAGE)
    assert got.status_code == 200, got.text
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    for word in words:
        assert word in got.text, word


def test_a_loop_that_people_accepted_is_compared_and_on_the_overview(ask: Ask, records: Records, audit: Audit) -> None:
    rows = tuple(f"row-{i}" for i in range(200))
    loop = records.draw(Drawing(name="mine", items=rows, person="Ada"))
    assert "Drawn by hand and accepted" not in ask("GET", "/", headers=PAGE).text
    records.decide(Decision(slice=loop.slice, decision="accepted", name="Odd corner", person="Ada"), version=0)
    overview = ask("GET", "/", headers=PAGE).text
    assert "Drawn by hand and accepted" in overview
    assert '<a href="/slice/drawn-1"><span class="id">drawn-1</span> Odd corner</a>' in overview
    page = ask("GET", "/compare", headers=PAGE).text
    assert '<a href="/slice/drawn-1">drawn-1 Odd corner</a>' in page
    assert f"{int((~audit.discover[:200]).sum())} rows: " in page
    assert "drawn-1 was drawn with the errors in sight" in page
    assert "Starts from 1 slice that people accepted: drawn-1" in page


KEYED = ("/", "/rows", "/compare", "/hypothesis", "/annotate", "/curate", "/log", "/slice/s2", "/slice/drawn-1",
         "/slice/s1/row/row-3", "/annotate/s1", "/annotate/s1?task=member")  # fmt: skip


@pytest.mark.parametrize("path", KEYED)
def test_no_page_has_a_key_twice(ask: Ask, records: Records, path: str) -> None:
    """The first element would win, and the second never hear of it; `?`, `j` and `k` belong to every page."""
    records.draw(Drawing(name="mine", items=("row-1", "row-2"), person="Ada"))
    keys = ["?", "j", "k", *re.findall(r'data-key="([^"]+)"', ask("GET", path, headers=PAGE).text)]
    assert {key for key in keys if keys.count(key) > 1} == set()
    assert {"O", "R", "C", "H", "A", "U", "g"} <= set(keys)


def test_no_view_of_a_saved_page_has_a_key_twice(audit: Audit) -> None:
    """One view is shown at a time, below the bar; what stands in several views is meant once in each."""
    bar, *views = [re.findall(r'data-key="([^"]+)"', part) for part in to_html(audit).split('<article class="view"')]
    assert {"O", "R", "g"} <= set(bar)
    assert len(views) > 3
    for view in views:
        keys = ["?", "j", "k", *bar, *view]
        assert {key for key in keys if keys.count(key) > 1} == set()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/slice/none", "Slice 'none' does not exist."),
        ("/slice/s1/row/none", "Row 'none' does not exist."),
        ("/slice/none/row/row-1", "Slice 'none' does not exist."),
        ("/annotate/none", "Slice 'none' does not exist."),
        ("/annotate/s1?task=dance", "Task 'dance' does not exist; the tasks are class and member."),
        ("/compare?with=none", "Audit 'none' does not exist; it cannot be compared with."),
        ("/nowhere", "Page '/nowhere' does not exist."),
        ("/api/nowhere", "Page '/api/nowhere' does not exist."),
        ("/api/rows/none", "Row 'none' does not exist."),
        ("/api/queues/none?person=Ada", "Slice 'none' does not exist."),
        ("/static/none.js", "File 'none.js' does not exist."),
    ],
)
def test_what_is_not_there_gets_a_sentence(ask: Ask, path: str, words: str) -> None:
    got = ask("GET", path)
    assert (got.status_code, sentence(got)) == (404, words)
    shown = ask("GET", path, headers=PAGE)
    assert shown.status_code == 404
    if not path.startswith(("/api", "/static")):
        assert "That did not work." in shown.text
        assert words.replace("'", "&#39;") in shown.text


def test_audits_that_cannot_be_compared_say_why(audit: Audit, tmp_path: Path) -> None:
    kept = audit.evaluation
    foreign = replace(audit, evaluation=replace(kept, ids=np.array([f"x{i}" for i in range(len(kept))])))
    records, ask = opened(audit, tmp_path, others=(other_audit("foreign", foreign),))
    with records:
        got = ask("GET", "/compare", headers=PAGE)
    assert got.status_code == 422
    assert "the two models share 0 rows by id" in got.text


def test_a_renamed_slice_has_its_name_everywhere_and_no_machine(ask: Ask, records: Records) -> None:
    given = {
        "slice": "s1",
        "person": "Ada",
        "decision": "accepted",
        "name": "at night",
        "note": "see <b>it</b>",
        "into": None,
    }
    assert ask("POST", "/api/decisions", json={"given": given, "seen": 0}).json()["title"] == "at night"
    page = ask("GET", "/slice/s1").text
    assert "<h1>at night</h1>" in page
    assert "The name covers" not in page, "that was measured of the machine's name"
    assert '<span class="made machine" hidden>' in page
    assert "Accepted by Ada." in page
    assert "see &lt;b&gt;it&lt;/b&gt;" in page
    assert '<span class="id">s1</span> at night</a></h3>' in ask("GET", "/").text
    curated = ask("GET", "/curate").text
    assert '<span class="id">s1</span> at night</a></td>' in curated
    assert "Accepted" in curated
    assert "at night" not in ask("GET", "/annotate").text, "a name may tell the label"
    assert "at night" not in ask("GET", "/annotate/s1").text
    assert "at night" in ask("GET", "/compare").text


@pytest.mark.parametrize("kind", ["text", "losses", "regression"])
def test_every_page_of_other_audits_opens(kind: str, text_audit: Audit, tmp_path: Path) -> None:
    evaluation = text_audit.evaluation
    if kind == "losses":
        plain = Evaluation(losses=evaluation.losses, representations=evaluation.representations)
        text_audit = quick_audit(plain, method="spotlight")
    if kind == "regression":
        rng = np.random.default_rng(0)
        plain = Evaluation(labels=rng.normal(size=400), predictions=rng.normal(size=400), task="regression",
                           losses=evaluation.losses, representations=evaluation.representations)  # fmt: skip
        text_audit = quick_audit(plain, method="spotlight")
    records, ask = opened(text_audit, tmp_path)
    slices = [f"/slice/{found.id}" for found in text_audit.slices]
    queues = [f"/annotate/{found.id}" for found in text_audit.slices[:1]]
    row = str(text_audit.evaluation.row_ids[0])
    rows = [f"{path}/row/{row}" for path in slices[:1]]
    with records:
        for path in ("/", "/hypothesis", "/annotate", "/curate", "/compare", *slices, *queues, *rows):
            got = ask("GET", path, headers=PAGE)
            assert got.status_code == 200, (path, got.text[:300])
        assert ask("GET", "/thumb/0").status_code == 404
        if kind == "text":
            assert "room, number" in ask("GET", slices[0]).text
            assert ask("GET", "/api/queues/s1", params={"person": "Ada"}).json()["items"][0]["text"].startswith("a ")


# Pictures and files


def test_a_thumbnail_is_as_large_as_one_of_four(ask: Ask) -> None:
    for px, at_most in ((1, 72), (72, 72), (73, 112), (112, 112), (2000, 640)):
        got = ask("GET", f"/thumb/5?px={px}&v=1")
        assert got.headers["content-type"] == "image/png"
        assert max(Image.open(io.BytesIO(got.content)).size) <= at_most
        assert got.headers["cache-control"].startswith("private")
    assert ask("GET", "/thumb/5").headers["cache-control"] == "no-cache"
    for px in (0, -5, 2001, 10**9):
        assert sentence(ask("GET", f"/thumb/5?px={px}")).startswith("This request cannot be read. `px`")


def test_a_picture_that_is_broken_or_not_there(audit: Audit, tmp_path: Path) -> None:
    whole = audit.evaluation.media
    assert whole is not None
    good = whole.thumbnail(0, 112)
    assert good is not None
    large = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\1\0\0\x08\2\0\0\0" + bytes(4)  # says 65,536 pixels a side
    pictures = [good, good[:40], b"no picture", b"", large] + [good] * (len(audit.evaluation) - 5)
    other = replace(audit, evaluation=replace(audit.evaluation, media=ImageBytes(pictures)))
    records, ask = opened(other, tmp_path)
    with records:
        assert ask("GET", "/thumb/0").status_code == 200
        for row in (1, 2, 3, 4):
            got = ask("GET", f"/thumb/{row}")
            assert (got.status_code, sentence(got)) == (404, f"Row {row} has no image.")
        for row in (-1, 1000, 10**15):
            assert ask("GET", f"/thumb/{row}").status_code == 404


def test_pictures_are_asked_for_by_many_at_once(ask: Ask) -> None:
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda row: ask("GET", f"/thumb/{row % 50}"), range(200)))
    assert {one.status_code for one in got} == {200}
    assert all(got[i].content == got[i + 50].content for i in range(150))
    assert got[0].content != got[1].content


def test_pages_name_their_audit_in_the_address_of_a_picture(ask: Ask, audit: Audit) -> None:
    """On the same port another audit may follow, and a browser keeps pictures."""
    assert f"&amp;v={audit.evaluation.fingerprint[:8]}" in ask("GET", "/slice/s1").text


@pytest.mark.parametrize("name", ["base.css", "page.js", "hypothesis.js", "annotate.js", "decide.js"])
def test_static_files_come_as_what_they_are(ask: Ask, name: str) -> None:
    got = ask("GET", f"/static/{name}")
    assert got.status_code == 200
    assert got.headers["content-type"].startswith("text/css" if name.endswith("css") else "text/javascript")
    assert "innerHTML" not in got.text


# The map and loops


def test_the_map_has_every_row(ask: Ask, audit: Audit) -> None:
    told = ask("GET", "/api/map").json()
    assert (told["n"], told["of"]) == (1000, 1000)
    xy = np.frombuffer(b64decode(told["xy"]), "<i2").reshape(-1, 2)
    np.testing.assert_allclose(xy / 32_767, places(audit))
    np.testing.assert_array_equal(np.frombuffer(b64decode(told["outcome"]), np.uint8), audit.evaluation.errors)
    for found in audit.slices:
        bits = np.unpackbits(np.frombuffer(b64decode(told["members"][found.id]), np.uint8), bitorder="little")[:1000]
        np.testing.assert_array_equal(bits.astype(bool), found.members)


def test_a_loop_counts_what_lies_inside(ask: Ask, audit: Audit) -> None:
    within, wrong = inside(LOOP, places(audit)), audit.evaluation.errors
    assert wrong is not None
    assert 50 < within.sum() < 900
    assert ask("POST", "/api/lasso", json={"loop": LOOP}).json() == {
        "n": int(within.sum()), "wrong": int((within & wrong).sum()), "others": int((~within).sum()),
        "others_wrong": int((~within & wrong).sum()), "known": True,
    }  # fmt: skip
    far = [[5, 5], [6, 5], [6, 6]]
    assert ask("POST", "/api/lasso", json={"loop": far}).json()["n"] == 0


@pytest.mark.parametrize(
    "loop", [[], [[0, 0], [1, 1]], [[0, 0], [1, 1], ["x", 2]], [[0, 0], [1], [2, 2]], "loop", [[0, 0]] * 5001, None]
)
def test_a_loop_that_is_none(ask: Ask, loop: Any) -> None:
    got = ask("POST", "/api/lasso", json={"loop": loop})
    assert got.status_code == 422
    assert sentence(got).startswith("This request cannot be read. `loop")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_loop_through_nowhere(ask: Ask, number: str) -> None:
    body = f'{{"loop": [[0, 0], [1, 1], [{number}, 0]]}}'
    got = ask("POST", "/api/lasso", content=body, headers={"content-type": "application/json"})
    assert (got.status_code, sentence(got)) == (422, "The points of a loop must be finite numbers.")


@pytest.fixture(scope="module")
def large(audit: Audit) -> Audit:
    return tile_audit(audit, 30)


def test_many_rows_are_thinned_for_drawing_and_never_for_counting(large: Audit, tmp_path: Path) -> None:
    records, ask = opened(large, tmp_path)
    with records:
        told = ask("GET", "/api/map").json()
        counts = ask("POST", "/api/lasso", json={"loop": LOOP}).json()
        page = ask("GET", "/slice/s1").text
        kept = ask("POST", "/api/drawn", json={"loop": LOOP, "name": "loop", "person": "Ada"}).json()
    assert (told["n"], told["of"]) == (MOST_DRAWN, 30_000)
    within, wrong = inside(LOOP, places(large)), large.evaluation.errors
    assert wrong is not None
    assert (counts["n"], counts["wrong"]) == (within.sum(), (within & wrong).sum())
    assert counts["n"] + counts["others"] == 30_000
    assert kept["items"] == within.sum()
    for found in large.slices:
        bits = np.unpackbits(np.frombuffer(b64decode(told["members"][found.id]), np.uint8), bitorder="little")
        assert bits.sum() == found.members.sum(), "members are not thinned"
    assert "20,000 of 30,000 rows drawn. Statistics use all rows." in page


def test_an_audit_without_a_map_says_so(audit: Audit, tmp_path: Path) -> None:
    records, ask = opened(replace(audit, explanations=()), tmp_path)
    with records:
        for got in (ask("GET", "/api/map"), ask("POST", "/api/lasso", json={"loop": LOOP})):
            assert (got.status_code, sentence(got)) == (404, "This audit has no map.")
        assert "data-map=" not in ask("GET", "/slice/s1").text


# Guesses


def test_a_guess_is_measured_on_unseen_rows_only(ask: Ask, audit: Audit) -> None:
    told = ask("POST", "/api/hypotheses", json={"text": "light = night", "slice": "s1", "person": "Ada"}).json()
    unseen, wrong = ~audit.discover, audit.evaluation.errors
    match = (audit.evaluation.metadata["light"] == "night") & unseen
    assert wrong is not None
    assert (told["n"], told["errors"]) == (match.sum(), (match & wrong).sum())
    assert (told["rest_n"], told["rest_errors"]) == ((unseen & ~match).sum(), (unseen & ~match & wrong).sum())
    assert told["sentence"].startswith(f"{match.sum()} held-out rows match. {(match & wrong).sum()} are wrong: ")
    assert told["hypotheses"] == 1
    assert 0 < len(told["shown"]) <= 12
    assert all(audit.evaluation.metadata["light"][row["row"]] == "night" for row in told["shown"])


def test_guesses_are_kept_and_counted_by_slice_and_by_person(ask: Ask, records: Records) -> None:
    def guess(text: str, slice: str | None) -> dict[str, Any]:
        hypothesis = {"text": text, "slice": slice, "person": "Ada"}
        told: dict[str, Any] = ask("POST", "/api/hypotheses", json=hypothesis).json()
        return told

    assert [guess(text, "s1")["hypotheses"] for text in ("night", "size > 5", "night", "size > 6")] == [1, 2, 2, 3]
    fourth = guess("size > 7", "s1")
    assert "4 hypotheses tested here; the interval allows for all of them." in fourth["sentence"]
    assert guess("night", "s2")["hypotheses"] == 1
    assert [guess(text, at)["hypotheses"] for text, at in (("night", None), ("day", ""))] == [1, 2]
    assert {one.person for one in records.hypotheses("s1")} == {"Ada"}
    page = ask("GET", "/hypothesis").text
    assert "2 hypotheses" in page
    assert ">night</a>" in page
    assert ">day</a>" in page


def test_words_match_whole_words_of_texts(text_audit: Audit, tmp_path: Path) -> None:
    records, ask = opened(text_audit, tmp_path)
    with records:
        told = ask("POST", "/api/hypotheses", json={"text": "dim room"}).json()
    dim = (np.arange(400) % 7 == 0) & ~text_audit.discover
    assert told["n"] == dim.sum()
    assert all("dim" in row["text"] for row in told["shown"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sise > 5", "Did you mean"),
        ("light = nigth", "night"),
        ("size >", ""),
        ("(size > 5", ""),
        ("", ""),
        ("size > 5 and", ""),
        ("\u2028", ""),
        ("x" * 1500, ""),
    ],
)
def test_a_mistake_in_a_guess_gets_one_sentence_and_is_not_counted(
    ask: Ask, records: Records, text: str, words: str
) -> None:
    got = ask("POST", "/api/hypotheses", json={"text": text, "slice": "s1"})
    told = sentence(got) if got.status_code == 422 else got.json()["sentence"]
    assert words in told
    assert got.status_code == 422 or got.json()["n"] == 0
    assert records.hypotheses("s1") == () or got.status_code == 200


def test_a_guess_about_no_known_slice(ask: Ask, records: Records) -> None:
    got = ask("POST", "/api/hypotheses", json={"text": "night", "slice": "s99"})
    assert (got.status_code, sentence(got)) == (404, "Slice 's99' does not exist.")
    assert sentence(ask("POST", "/api/hypotheses", json={})) == "This request cannot be read. `text`: Field required."


# Judgement


def test_rows_put_in_and_out_are_kept_and_shown_again(ask: Ask, audit: Audit) -> None:
    members = audit["s1"].members
    member = str(audit.evaluation.row_ids[members][0])
    other, stays = map(str, audit.evaluation.row_ids[~members][:2])
    out = {"slice": "s1", "item": member, "inside": False, "person": "Ada"}
    assert ask("POST", "/api/edits", json=out).json() == {member: False}
    for item, inside in ((other, True), (stays, False)):  # the third is out already
        ask("POST", "/api/edits", json={"slice": "s1", "item": item, "inside": inside, "person": "Ada"})
    edits = re.search('data-edits="([^"]*)"', ask("GET", "/slice/s1").text)
    assert edits is not None
    assert json.loads(html.unescape(edits[1])) == {member: False, other: True}
    assert (
        ask("POST", "/api/edits", json={"slice": "s1", "item": "none", "inside": True, "person": "Ada"}).status_code
        == 404
    )
    assert (
        ask("POST", "/api/edits", json={"slice": "s9", "item": "row-1", "inside": True, "person": "Ada"}).status_code
        == 422
    )


def test_a_loop_is_kept_as_a_slice_drawn_by_hand(ask: Ask, records: Records, audit: Audit) -> None:
    kept = ask("POST", "/api/drawn", json={"loop": LOOP, "name": "mine <i>", "person": "Ada"}).json()
    within = inside(LOOP, places(audit))
    assert (kept["slice"], kept["items"]) == ("drawn-1", within.sum())
    assert set(records.drawn()[0].items) == set(audit.evaluation.row_ids[within].tolist())
    page = ask("GET", "/curate").text
    assert "mine &lt;i&gt;" in page
    assert f'<td class="num" data-head="Rows">{within.sum()}</td><td class="by" data-head="Drawn by">Ada</td>' in page
    assert '<td data-head="Decision">Undecided</td>' in page
    got = ask("POST", "/api/drawn", json={"loop": [[5, 5], [6, 5], [6, 6]], "name": "empty", "person": "Ada"})
    assert "needs at least one row" in sentence(got)


def test_one_row_in_words(ask: Ask, audit: Audit) -> None:
    told = ask("GET", "/api/rows/row-7").json()
    assert (told["row"], told["id"], told["role"]) == (7, "row-7", "discover" if audit.discover[7] else "confirm")
    assert told["label"] in ("cat", "dog")
    assert dict(told["metadata"])["light"] in ("night", "day")


def test_ids_with_odd_letters_have_an_address(tmp_path: Path) -> None:
    odd = ["a/b", "c d", "é?", "#5", "50%", "../x", "a&b=c", "<i>", "//e", "x;y"]
    names = np.array(odd + [f"row-{i}" for i in range(len(odd), 400)])
    audit = quick_audit(image_evaluation(400, ids=names))
    records, ask = opened(audit, tmp_path)
    with records:
        for i, name in enumerate(odd):
            address = f"/slice/s1/row/{quote(name, safe='')}"
            got = ask("GET", address)
            assert got.status_code == 200, name
            assert f"/thumb/{i}?px=640" in got.text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/api/rows?seed=-5", 422),
        (f"/api/rows?seed={'9' * 30}", 422),
        (f"/api/rows?start={'9' * 5000}", 422),
        (f"/compare?page={'9' * 5000}", 200),  # Python refuses to read so many digits
        ("/compare?page=-1", 200),
        ("/compare?page=²", 200),
    ],
)
def test_odd_numbers_in_an_address_are_no_fault_of_ours(ask: Ask, address: str, status: int) -> None:
    assert ask("GET", address).status_code == status


def test_rows_that_were_fixed_are_shown_where_none_is_newly_wrong(ask: Ask) -> None:
    shown = ask("GET", "/compare").text
    assert 'data-key="f" aria-current="true"' in shown
    assert "No row." not in shown


def test_the_api_is_documented(ask: Ask) -> None:
    told = ask("GET", "/api/openapi.json").json()
    assert set(told["paths"]) == {
        "/api/map", "/api/lasso", "/api/hypotheses", "/api/rows/{row}", "/api/queues/{queue}", "/api/annotations",
        "/api/annotations/{key}/undo", "/api/decisions", "/api/edits", "/api/drawn", "/api/export.json",
        "/api/accepted", "/api/answered", "/api/log", "/api/overlap", "/api/questionnaire/{queue}", "/api/slices",
        "/api/rows", "/api/view", "/api/near/{row}", "/api/at/{position}", "/api/export/rows.{kind}",
    }  # fmt: skip
    undocumented = [path for path, ways in told["paths"].items() for way in ways.values() if not way.get("description")]
    assert undocumented == []


def test_the_log_says_who_did_what(ask: Ask) -> None:
    line = {"queue": "s1", "item": "row-1", "person": "<b>Eve</b>", "task": "class", "answer": 0}
    assert ask("POST", "/api/annotations", json=line).status_code == 200
    assert ask("GET", "/api/log?of=%3Cb%3EEve%3C/b%3E").json()[-1]["action"] == "answered"
    page = ask("GET", "/log").text
    assert (
        '&lt;b&gt;Eve&lt;/b&gt;</a></td><td>Answered</td><td class="long">s1, row-1</td><td class="long">class: 0</td>'
        in page
    )
    assert "<b>Eve</b>" not in page
    assert "Nobody did anything yet." in ask("GET", "/log?of=nobody").text
