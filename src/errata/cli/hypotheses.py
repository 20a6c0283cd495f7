"""`errata test`: hypotheses of one's own, tested on the held-out rows of a saved audit."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core import InputError
from ..report.printing import echo
from .common import Database, Dir

if TYPE_CHECKING:
    from ..core import Audit


def run_tests(
    folder: Dir,
    hypotheses: Annotated[
        list[str], typer.Argument(metavar="HYPOTHESIS...", help="Such as “age < 5 and site = a”, or words.")
    ],
    task: Annotated[str, typer.Option(help="The label, in a multi-label audit.")] = "",
    database: Database = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Add each that is confirmed to the slices of the audit, in DIR.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Test whether rows that match are worse than the others, on held-out rows; every one counts against the others."""
    from .. import hypothesis
    from ..workflow import load

    audit = load(folder)
    view = dict(audit.evaluation.tasks()).get(task, audit.evaluation)
    texts = list(dict.fromkeys(hypothesis.parse(text, view).text for text in hypotheses))
    with _records(audit, folder, database) as records:
        earlier = set() if records is None else {record.text for record in records.hypotheses(None)}
        number = len(earlier | set(texts))
        results = [hypothesis.run_test(audit, text, hypotheses=number, task=task) for text in texts]
        if records is not None:
            for result in results:
                if result.text not in earlier and result.errors is not None:
                    records.add_hypothesis(_line(result))
        everything = number if records is None else max(number, len(records.hypothesis_texts()))
    kept = {result.text: _keep(folder, result, everything) for result in results if keep}
    if as_json:
        echo(json.dumps([{**result.to_json(), **kept.get(result.text, {})} for result in results], indent=1))
        return
    for result in results:
        echo(f"{result.text}: {result.verdict}\n  {result.sentence}")
        if keep:
            echo(f"  {_kept_words(kept[result.text])}")
    if number > 1:
        echo(f"Judged as {number:,} hypotheses on the same held-out rows.")


def _keep(folder: Path, result: Any, hypotheses: int) -> dict[str, Any]:
    """Return the id of the new slice, its verdict, and of how many; or why there is none."""
    from ..workflow import keep_in_folder

    if result.verdict != "confirmed":
        return {"kept": None, "not_kept": "it is not confirmed"}
    try:
        audit, slice_ = keep_in_folder(folder, result.text, hypotheses=hypotheses, task=result.task)
    except InputError as error:
        return {"kept": None, "not_kept": str(error).rstrip(".")}
    return {"kept": slice_.id, "kept_verdict": slice_.verdict, "tested": audit.settings["tested"]}


def _kept_words(facts: dict[str, Any]) -> str:
    if facts["kept"] is None:
        return f"Not kept: {facts['not_kept']}."
    return f"Kept as {facts['kept']}: {facts['kept_verdict']}, as one of {facts['tested']:,} that were tested."


def _records(audit: Audit, folder: Path, database: str | None) -> AbstractContextManager[Any]:
    """Return what people recorded of the audit, so that hypotheses of the app count too; none without a database."""
    if find_spec("sqlalchemy") is None:
        return nullcontext()
    from .serve import records_of_audit

    records: AbstractContextManager[Any] = records_of_audit(audit, folder, database)
    return records


def _line(result: Any) -> Any:
    from ..hypothesis import WordQuery
    from ..people.entries import Hypothesis

    rest_errors = 0
    if result.rest_rate is not None:
        rest_errors = round(result.rest_rate * result.rest_n)
    kind: Any = "condition"
    if isinstance(result.condition.meaning, WordQuery):
        kind = "words"
    return Hypothesis(
        text=result.text,
        kind=kind,
        person="command",
        slice=None,
        n=result.n,
        errors=result.errors,
        rest_n=result.rest_n,
        rest_errors=rest_errors,
    )
