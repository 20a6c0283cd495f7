"""One gate: the page `/compare`, its saved form and `errata compare --fail-on worse` say the same of two folders."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import errata
from errata.app.access import Access
from errata.cli.serve import AuditSite
from errata.core import InputError
from errata.people.entries import Decision, Drawing, Edit
from errata.people.records import Records
from support.asking import PAGE, ask
from support.command import run

N = 2400
Judge = Callable[[errata.Audit, Records], None]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
LABELS = RNG.integers(0, 2, N)
HARD = np.select([X[:, 0] > 1, X[:, 1] > 1.2], [0.5, 0.4], 0.06)


SAME = RNG.random(N) < 0.8  # rows with the same draw under all models, as two models of one data set have
DRAWS = RNG.random(N)
CORNER = X[:, 2] > 1.2
COLUMNS = {"site": RNG.choice(["north", "south"], N), "first": X[:, 0], "second": X[:, 1], "third": X[:, 2]}


def rows(risk: np.ndarray, seed: int) -> errata.Evaluation:
    """Outcomes at this risk."""
    draws = np.where(SAME, DRAWS, np.random.default_rng(seed).random(N))
    return errata.Evaluation(
        labels=LABELS,
        predictions=LABELS ^ (draws < risk),
        metadata=COLUMNS,
    )


SECONDS = {
    "the same": rows(HARD, 4),
    # fixed where slices are known, broken where nobody looks: only the search sees it
    "worse where nobody looks": rows(np.where(CORNER, 0.35, HARD * 0.55), 5),
    "worse in a known slice": rows(np.where(X[:, 0] > 1, 0.8, HARD * 0.6), 6),
    "a little worse in all": rows(HARD + 0.012, 7),
    "better": rows(HARD * 0.3, 8),
}


def regression(scale: np.ndarray) -> errata.Evaluation:
    noise = np.random.default_rng(9).normal(size=N) * scale
    return errata.Evaluation(labels=X[:, 1], predictions=X[:, 1] + noise, task="regression", metadata=COLUMNS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("gates")
    audits = {"first": rows(HARD, 3), **SECONDS}
    audits["regression"] = regression(np.where(X[:, 0] > 1, 3.0, 1.0))
    audits["worse regression"] = regression(np.where(CORNER, 3.0, np.where(X[:, 0] > 1, 3.0, 1.0)))
    for name, evaluation in audits.items():
        errata.save(errata.audit(evaluation, methods=["rules"]), place / name)
    return place


def accept_last(audit: errata.Audit, records: Records) -> None:
    records.decide(Decision(slice=audit.slices[-1].id, decision="accepted", person="Ada"), version=0)


def reject_first(audit: errata.Audit, records: Records) -> None:
    records.decide(Decision(slice=audit.confirmed[0].id, decision="rejected", person="Ada"), version=0)


def merge_and_accept(audit: errata.Audit, records: Records) -> None:
    first, second = audit.slices[:2]
    records.decide(Decision(slice=second.id, decision="merged", into=first.id, person="Ada"), version=0)
    records.decide(Decision(slice=first.id, decision="accepted", person="Ada"), version=0)


def move_rows(audit: errata.Audit, records: Records) -> None:
    first = audit.confirmed[0]
    records.decide(Decision(slice=first.id, decision="accepted", person="Ada"), version=0)
    for row in first.rows("held-out")[:9]:
        records.edit(Edit(slice=first.id, item=str(row), inside=False, person="Ada"))


def draw_a_loop(audit: errata.Audit, records: Records) -> None:
    inside = tuple(str(row) for row in np.flatnonzero(CORNER))
    loop = records.draw(Drawing(name="corner", items=inside, person="Ada"))
    records.decide(Decision(slice=loop.slice, decision="accepted", person="Ada"), version=0)


def decide_nothing(audit: errata.Audit, records: Records) -> None:
    """The confirmed slices are compared."""


def shown(page: str) -> str:
    """The verdict of a page."""
    verdict = re.search(r'<div class="gate(?: pass)?"><b>(.*?)</b>', page)
    assert verdict is not None, page
    return html.unescape(verdict[1])


def check(place: Path, first: str, second: str, judge: Judge, tmp_path: Path) -> int:
    """Page, saved page and command must say the same; return the exit code."""
    audit = errata.load(place / first)
    database = f"sqlite:///{tmp_path / 'records.sqlite'}"
    saved = tmp_path / "compared.html"
    with AuditSite().open_app(place / first, database, [place / second], access=Access()) as app:
        names = {slice_.id: slice_.name for slice_ in audit.slices}
        with Records(database, fingerprint=audit.evaluation.fingerprint, slices=names) as records:
            judge(audit, records)
        page = ask(app, "GET", "/compare", headers=PAGE)
    done = run(*("compare", place / first, place / second, "--database", database, "--fail-on", "worse", "-o", saved))
    assert (page.status_code, done.err) == (200, "")
    assert shown(page.text) in done.out.replace("\n", " ")
    assert shown(page.text) == shown(saved.read_text())
    assert shown(page.text).startswith("Gate fails" if done.code else "Gate passes")
    assert re.findall(r"<h1>(.*?)</h1>", page.text) == re.findall(r"<h1>(.*?)</h1>", saved.read_text())
    return int(done.code)


@pytest.mark.parametrize("judge", [accept_last, reject_first, merge_and_accept, move_rows, draw_a_loop])
@pytest.mark.parametrize("second", ["worse where nobody looks", "worse in a known slice"])
def test_page_and_command_have_one_verdict(place: Path, second: str, judge: Judge, tmp_path: Path) -> None:
    check(place, "first", second, judge, tmp_path)


def test_the_verdict_is_that_of_the_models(place: Path, tmp_path: Path) -> None:
    """Else the property would hold of a page that always says one thing."""
    codes = {}
    for second in SECONDS:
        folder = tmp_path / second
        folder.mkdir()
        codes[second] = check(place, "first", second, decide_nothing, folder)
    assert codes["better"] == 0
    assert codes["the same"] == 0
    assert codes["worse where nobody looks"] == 1
    assert codes["worse in a known slice"] == 1


def test_models_of_a_number_are_compared_too(place: Path, tmp_path: Path) -> None:
    assert check(place, "regression", "worse regression", decide_nothing, tmp_path) == 1


def test_what_cannot_be_compared_is_refused_before_anything_is_served(place: Path, tmp_path: Path) -> None:
    open_app = partial(AuditSite().open_app, access=Access())
    with (
        pytest.raises(InputError, match="cannot be compared with"),
        open_app(place / "first", f"sqlite:///{tmp_path / 'r.sqlite'}", [place / "regression"]),
    ):
        pass
