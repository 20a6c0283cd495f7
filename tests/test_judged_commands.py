"""What people decided, in every command that starts from it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import errata
from errata.people.entries import Annotation, Decision, Drawing, Edit
from errata.people.records import Records
from support.command import run

N = 3000


def write_rows(path: Path, seed: int, first_id: int, rates: tuple[float, float]) -> None:
    rng = np.random.default_rng(seed)
    kind = rng.choice(list("abcde"), N)
    labels = rng.integers(0, 2, N)
    risk = 0.05 + rates[0] * (kind == "a") + rates[1] * (kind == "b")
    wrong = rng.random(N) < risk
    np.savez(
        path,
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        ids=np.arange(N) + first_id,
        **{"metadata:kind": kind, "embedding": rng.normal(size=(N, 2))},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of two slices, which two people judged, and files of other rows beside it."""
    place = tmp_path_factory.mktemp("judged")
    write_rows(place / "rows.npz", 0, 0, (0.5, 0.4))
    write_rows(place / "train.npz", 1, 10_000, (0.5, 0.4))
    write_rows(place / "after.npz", 1, 10_000, (0.1, 0.4))
    own = ["--slice", "first=kind = a", "--slice", "second=kind = b"]
    done = run(
        "audit", "rows.npz", "-o", "audit", "--no-map", "--no-self-test", "--method", "rules", *own, folder=place
    )
    assert done.code == 0, done.err
    audit = errata.load(place / "audit")
    ids = {slice_.name: slice_.id for slice_ in audit}
    names = {slice_.id: slice_.name for slice_ in audit}
    first = audit[ids["first"]]
    with Records(place / "audit", fingerprint=audit.evaluation.fingerprint, slices=names) as records:
        records.decide(
            Decision(slice=first.id, decision="accepted", person="Ana", name="Kind A", note="ask Bo"), version=0
        )
        for row in first.rows("held-out")[:4]:
            records.edit(Edit(slice=first.id, item=str(audit.evaluation.row_ids[row]), inside=False, person="Ana"))
        for person in ("Ana", "Bo"):
            item = str(audit.evaluation.row_ids[first.rows("held-out")[9]])
            records.annotate(Annotation(queue=first.id, item=item, person=person, task="member", answer="in"))
    (place / "ids.json").write_text(json.dumps(ids))
    return place


def ids_of(folder: Path) -> tuple[str, str]:
    ids = json.loads((folder / "ids.json").read_text())
    return ids["first"], ids["second"]


def test_the_report_is_written_anew_with_names_and_who_decided(folder: Path) -> None:
    before = (folder / "audit" / "report.html").read_text()
    assert "Kind A" not in before
    assert run("report", "audit", folder=folder).code == 0
    page = (folder / "audit" / "report.html").read_text()
    for words in ("Kind A", "Accepted by Ana", "ask Bo", "Edited by people: 0 rows put in, 4 put out",
                  "no confirmation", "What people saw", "2 people answered 1 row"):  # fmt: skip
        assert words in page, words
    assert run("report", "audit", "--no-people", "-o", "plain.html", folder=folder).code == 0
    plain = (folder / "plain.html").read_text()
    assert "Kind A" in plain
    assert "Accepted." in plain
    assert "Ana" not in plain
    assert "ask Bo" not in plain
    assert errata.load(folder / "audit").slices  # its checksums hold


def test_the_slices_as_left_are_files(folder: Path) -> None:
    first, _ = ids_of(folder)
    assert run("report", "audit", "-o", "slices.json", "--slices", "all", folder=folder).code == 0
    facts = json.loads((folder / "slices.json").read_text())
    assert facts["schema"] == "errata.judgement/1"
    line = next(line for line in facts["slices"] if line["id"] == first)
    assert (line["name"], line["name_as_found"], line["decision"]) == ("Kind A", "first", "accepted")
    assert line["held_out"]["n"] == line["held_out_as_found"]["n"] - 4
    assert not line["clean"]
    done = run("report", "audit", "-o", "rows.parquet", folder=folder)
    assert f"1 slice that people accepted: {first}" in done.out
    table = pq.read_table(folder / "rows.parquet").to_pydict()
    assert set(table["slice"]) == {first}
    assert len(table["id"]) == int(errata.load(folder / "audit")[first].members.sum()) - 4
    assert run("report", "audit", "-o", "rows.docx", folder=folder).code == 2
    before = (folder / "audit" / "report.html").read_bytes()
    refused = run("report", "audit", "--slices", "confirmed", folder=folder)
    assert refused.code == 2
    assert "`--slices` chooses what a .json, .csv or .parquet file holds; a page shows all slices" in refused.err
    assert (folder / "audit" / "report.html").read_bytes() == before


def test_plans_and_rechecks_start_from_accepted_slices(folder: Path) -> None:
    first, second = ids_of(folder)
    done = run("plan", "weights", "audit", "train.npz", "-o", "plan.parquet", folder=folder)
    assert f"Starts from 1 slice that people accepted: {first}" in done.out
    assert f"lie in {first} and" in done.out
    done = run("plan", "weights", "audit", "train.npz", "-o", "both.parquet", "--slices", "confirmed", folder=folder)
    assert f"{first}, {second}" in done.out or f"{second}, {first}" in done.out
    assert "Starts from" not in done.out
    done = run("recheck", "audit", "train.npz", "after.npz", "--json", folder=folder)
    assert [change["name"] for change in json.loads(done.out)["changes"]] == ["all rows", "the rest", "Kind A"]
    assert "people accepted" in done.err
    done = run("apply", "audit", "train.npz", "-o", "members.parquet", folder=folder)
    assert pq.read_table(folder / "members.parquet").column_names == ["id", first, f"{first}:in"]
    done = run("apply", "audit", "train.npz", "-o", "x.parquet", "--slices", "s77", folder=folder)
    assert (done.code, "unknown slice" in done.err) == (2, True)


def test_a_comparison_starts_from_them_too_and_takes_a_folder_by_another_name(folder: Path) -> None:
    first, _ = ids_of(folder)
    done = run("compare", "train.npz", "after.npz", "--slices-of", "audit", "--no-search", "--json", folder=folder)
    facts = json.loads(done.out)
    assert [change["id"] for change in facts["changes"]] == ["overall", first]
    assert facts["facts"]["chosen"].startswith("Starts from 1 slice")
    done = run("compare", "train.npz", "after.npz", "--slices", "audit", folder=folder)
    assert done.code == 2
    assert "--slices-of" in done.err


def test_rules_find_their_columns_in_a_table_whatever_the_command(folder: Path) -> None:
    """A table has plain columns, and the audit was told with `--metadata` which of them it may read."""
    for name in ("train", "after"):
        with np.load(folder / f"{name}.npz") as rows:
            table = {key.removeprefix("metadata:"): rows[key] for key in rows if key != "embedding"}
            pq.write_table(pa.table({**table, "embedding": list(rows["embedding"])}), folder / f"{name}.parquet")
    first, _ = ids_of(folder)
    files = ["train.parquet", "after.parquet"]
    done = run("plan", "weights", "audit", files[0], "-o", "plain.parquet", folder=folder)
    assert (done.code, f"lie in {first} and" in done.out) == (0, True), done.err
    moved = f"People moved rows of {first}: that counts among the audited rows; others are placed by rule."
    assert moved in done.out
    done = run("recheck", "audit", *files, "--json", folder=folder)
    assert done.code == 0, done.err
    assert moved in done.err
    assert json.loads(done.out)["changes"][-1]["name"] == "Kind A"
    done = run("compare", *files, "--slices-of", "audit", "--no-search", "--json", folder=folder)
    assert done.code == 0, done.err
    assert [change["id"] for change in json.loads(done.out)["changes"]] == ["overall", first]


NO_RULE = "a loop has no rule for other rows; describe it as a condition and test it: errata test DIR CONDITION --keep"
LEFT_OUT = f"Left out drawn-1, which people drew by hand and accepted: {NO_RULE}."
LOOP = range(0, 600)  # ids of the rows in it


@pytest.fixture
def place(folder: Path, tmp_path: Path) -> Path:
    """The same audit, of which nobody accepted anything but a loop; and another model on the same rows."""
    shutil.copytree(folder / "audit", tmp_path / "audit", ignore=shutil.ignore_patterns("records*"))
    for name in ("train.npz", "after.npz"):
        shutil.copy(folder / name, tmp_path)
    write_rows(tmp_path / "other.npz", 0, 0, (0.1, 0.1))
    audit = errata.load(tmp_path / "audit")
    names = {slice_.id: slice_.name for slice_ in audit}
    with Records(tmp_path / "audit", fingerprint=audit.evaluation.fingerprint, slices=names) as records:
        loop = records.draw(Drawing(name="My loop", items=tuple(map(str, LOOP)), person="Ana"))
        records.draw(Drawing(name="Undecided", items=("1", "2"), person="Ana"))
        records.decide(Decision(slice=loop.slice, decision="accepted", person="Ana", name="Odd corner"), version=0)
    return tmp_path


ON_OTHER_ROWS = {
    "plan": ["plan", "weights", "audit", "train.npz", "-o", "plan.parquet"],
    "recheck": ["recheck", "audit", "train.npz", "after.npz"],
    "apply": ["apply", "audit", "train.npz", "-o", "members.parquet"],
    "compare": ["compare", "train.npz", "after.npz", "--slices-of", "audit", "--no-search"],
}


@pytest.mark.parametrize("command", ON_OTHER_ROWS)
def test_a_loop_is_left_out_on_other_rows_and_the_command_says_so(place: Path, folder: Path, command: str) -> None:
    words = ON_OTHER_ROWS[command]
    done = run(*words, folder=place)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert LEFT_OUT in said
    instead = "all 3 slices" if command == "apply" else "3 confirmed slices"
    assert f"No other slice is accepted: starts from {instead}." in said
    others = [word.replace("plan.parquet", "x.parquet").replace("members", "y") for word in words]
    done = run(*others, "--slices", "drawn-1", folder=place)
    assert (done.code, f"slice drawn-1 was drawn by hand: {NO_RULE}" in done.err) == (2, True), done.err
    done = run(*others, "--slices", "accepted", folder=place)
    assert (done.code, f"only drawn-1 is accepted, and was drawn by hand: {NO_RULE}" in done.err) == (2, True), done.err
    done = run(*others, "--slices", "confirmed", folder=place)
    assert (done.code, "drawn-1" in done.out) == (0, False), done.err


def test_beside_other_accepted_slices_a_loop_is_left_out_too(place: Path, folder: Path) -> None:
    first, _ = ids_of(folder)
    audit = errata.load(place / "audit")
    names = {slice_.id: slice_.name for slice_ in audit}
    with Records(place / "audit", fingerprint=audit.evaluation.fingerprint, slices=names) as records:
        records.decide(Decision(slice=first, decision="accepted", person="Ana"), version=0)
    done = run(*ON_OTHER_ROWS["plan"], folder=place)
    assert f"Starts from 1 slice that people accepted: {first};" in done.out
    assert LEFT_OUT in done.out
    assert "No other slice" not in done.out
    done = run(*ON_OTHER_ROWS["recheck"], "--slices", "accepted", folder=place)
    assert LEFT_OUT in done.out
    done = run("report", "audit", "-o", "rows.csv", folder=place)
    assert f"Starts from 2 slices that people accepted: {first}, drawn-1" in done.out


def test_a_loop_is_exported_and_on_the_page(place: Path) -> None:
    done = run("report", "audit", "-o", "rows.parquet", folder=place)
    assert "Starts from 1 slice that people accepted: drawn-1" in done.out
    table = pq.read_table(place / "rows.parquet").to_pydict()
    assert set(table["slice"]) == {"drawn-1"}
    assert set(table["name"]) == {"Odd corner"}
    assert sorted(map(int, table["id"])) == list(LOOP)
    assert run("report", "audit", "-o", "slices.json", "--slices", "all", folder=place).code == 0
    lines = {line["id"]: line for line in json.loads((place / "slices.json").read_text())["slices"]}
    assert {"drawn-1", "drawn-2"} < set(lines)
    assert (lines["drawn-1"]["name_as_found"], lines["drawn-1"]["decision"]) == ("My loop", "accepted")
    assert (lines["drawn-1"]["held_out"], lines["drawn-1"]["clean"]) == (None, False)
    assert run("report", "audit", folder=place).code == 0
    page = (place / "audit" / "report.html").read_text()
    assert "Odd corner" in page
    assert "A loop drawn by eye is chosen after seeing the errors." in page
    assert "Undecided" not in page


def test_a_loop_is_compared_on_the_audited_rows(place: Path) -> None:
    done = run("compare", "audit", "other.npz", "--no-search", "--json", folder=place)
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert [change["id"] for change in facts["changes"]] == ["overall", "drawn-1"]
    audit = errata.load(place / "audit", judged=True)
    (loop,) = [slice_ for slice_ in audit.drawn if slice_.id == "drawn-1"]
    before = audit.evaluation.errors
    assert before is not None
    held_out = loop.rows("held-out")
    line = facts["changes"][1]
    assert (line["name"], line["n"]) == ("Odd corner", len(held_out))
    assert line["before_errors"] == int(before[held_out].sum())
    assert "Starts from 1 slice that people accepted: drawn-1" in facts["facts"]["chosen"]
    assert any("drawn-1 was drawn with the errors in sight" in note for note in facts["facts"]["notes"])
    named = run("compare", "audit", "other.npz", "--no-search", "--json", "--slices", "drawn-1", folder=place)
    assert json.loads(named.out)["changes"][1]["n"] == len(held_out)
