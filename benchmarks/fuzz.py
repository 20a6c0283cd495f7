"""Mutated files, tables, options, saved audits, hypotheses, answers and requests: does anything end as it must not?

python benchmarks/fuzz.py --minutes 60
python benchmarks/fuzz.py --seed 0 --case 1234      one case again, with its traceback

Every case is made from its seed and number alone, and runs in this process. It may be taken (exit 0 or 1) or refused
(exit 2, one sentence on stderr after warnings of a line each, nothing written; a request: a status below 500). A fault
is anything else: exit code 70, a traceback, a refusal that leaves files, or a case of more than 30 seconds of CPU.
Exits 1 where there was one.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

from errata.cli import main as errata_main
from mutations import NASTY_TEXT, N, Rng, mutate_arrays, mutate_bytes, mutate_json, pick

SECONDS = 30  # of CPU that a case may take
WAITING = 600  # seconds on the clock: it waits for something, however busy the machine is
MEMORY = 6 << 30
RATES = (0.0, 0.0003, 0.003)  # at which parts of a table change
EVERY = 500  # cases between two lines of progress

# fmt: off
METHODS = (
    "gmm", "rules", "high-loss", "spotlight", "confusion", "consensus", "directions", "domino", "planespot",
    "barlow", "multiaccuracy", "george", "infembed", "nothing", "gmm:as_published",
)
# fmt: on


class TooLongError(BaseException):
    """A case took more than its time."""


class FaultError(Exception):
    """A case ended as none may."""


def main() -> None:
    """Run cases until the time is over; print what went wrong, and counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="one case alone, with its traceback")
    parser.add_argument("--kind", choices=sorted(KINDS), help="cases of one kind alone")
    arguments = parser.parse_args()
    prepare()
    cases = [arguments.case] if arguments.case is not None else numbers(arguments.minutes, arguments.kind)
    faults = run_all(arguments.seed, cases, alone=arguments.case is not None)
    sys.exit(1 if faults else 0)


def prepare() -> None:
    """Limit what a case may take, so that a hang or a hunger for memory is a fault of that case."""
    os.environ["ERRATA_TRACEBACK"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _alarm)
    warnings.simplefilter("ignore")


def _alarm(*_: Any) -> None:
    raise TooLongError


def numbers(minutes: float, kind: str | None) -> Iterator[int]:
    """Numbers of cases until the time is over."""
    end = time.monotonic() + 60 * minutes
    case = 0
    while time.monotonic() < end:
        if kind is None or kind_of(case) == kind:
            yield case
        case += 1


def kind_of(case: int) -> str:
    """The kind of a case, by its number."""
    return list(KINDS)[case % len(KINDS)]


def run_all(seed: int, cases: Any, alone: bool = False) -> int:
    """How many cases were at fault; prints each different one."""
    start = time.monotonic()
    counts: collections.Counter[str] = collections.Counter()
    faults: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        stock = Stock(Path(temporary))
        for done, case in enumerate(cases, 1):
            fault = run_case(stock, seed, case, counts, alone)
            if fault is not None:
                place = fault.split(" at ")[-1]
                faults[place] += 1
                if faults[place] == 1:
                    print(f"FAULT in case {case} ({kind_of(case)}): {fault}", flush=True)
            if done % EVERY == 0:
                _progress(done, start, counts, faults)
        _progress(sum(counts.values()), start, counts, faults)
    return sum(faults.values())


def _progress(done: int, start: float, counts: Any, faults: Any) -> None:
    minutes = (time.monotonic() - start) / 60
    print(
        f"{done:,} cases, {minutes:.1f} minutes, {sum(faults.values())} faults: {dict(sorted(counts.items()))}",
        flush=True,
    )


def run_case(stock: Stock, seed: int, case: int, counts: Any, alone: bool) -> str | None:
    """One case in a folder of its own; its fault in one line, None where there is none."""
    folder = stock.root / "case"
    folder.mkdir()
    kind = kind_of(case)
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(WAITING)
        outcome = KINDS[kind](stock, np.random.default_rng([seed, case]), folder)
        counts[f"{kind}: {outcome}"] += 1
        return None
    except TooLongError:
        counts[f"{kind}: fault"] += 1
        if alone:
            traceback.print_exc()
        return f"more than {SECONDS} seconds of CPU, or {WAITING} on the clock"
    except Exception as error:
        counts[f"{kind}: fault"] += 1
        if alone:
            traceback.print_exc()
        return f"{type(error).__name__}: {error}"[:600]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        shutil.rmtree(folder, ignore_errors=True)


# The command


def run(folder: Path, words: list[str]) -> str:
    """Run `errata WORDS` in a folder; "taken" or "refused", or a Fault."""
    before = contents(folder)
    code, err = call(folder, words)
    if code in (0, 1):
        return "taken"
    if code != 2:
        raise FaultError(f"exit {code} of {shown(words)}: {last_frames(err)}")
    *warned, sentence = err.splitlines() or [""]
    if not sentence.startswith("errata: ") or not all(line.startswith("Warning: ") for line in warned):
        raise FaultError(f"no single line after {shown(words)}: {err[:300]!r}")
    if contents(folder) != before:
        raise FaultError(f"left by {shown(words)}: {sorted(set(contents(folder)) ^ set(before))}")
    return "refused"


def call(folder: Path, words: list[str]) -> tuple[Any, str]:
    """Exit code and stderr of a command."""
    err = io.StringIO()
    words = [word.replace("\0", "") for word in words]  # which no word of a command line can hold
    with (
        mock.patch.object(sys, "argv", ["errata", *words]),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(err),
        contextlib.chdir(folder),
    ):
        try:
            errata_main()
        except SystemExit as stop:
            return stop.code, err.getvalue()
    return 0, err.getvalue()


def contents(folder: Path) -> list[str]:
    """Names of all that lies in a folder, with sizes; a lock and SQLite's own files do not count."""
    paths = (path for path in folder.rglob("*") if "records.sqlite" not in path.name)
    return sorted(f"{path.relative_to(folder)} {path.lstat().st_size if path.is_file() else 0}" for path in paths)


def shown(words: list[str]) -> str:
    """A command for a line of text."""
    return " ".join(word if len(word) < 60 else word[:57] + "…" for word in words).encode("unicode_escape").decode()


def last_frames(err: str) -> str:
    """The error and the last places of ours that it passed."""
    frames = [line.strip() for line in err.splitlines() if line.strip().startswith("File ") and "errata" in line]
    places = [frame.replace('File "', "").split("errata/")[-1] for frame in frames[-3:]]
    error = next((line for line in reversed(err.splitlines()) if "Error" in line or "Exception" in line), err[-200:])
    return f"{error[:200]} at {' < '.join(reversed(places))}"


# What is mutated


class Stock:
    """Good files to mutate, a saved audit and its server, made once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = root / "files"
        self.files.mkdir()
        write_all(self.files)
        self.audit = root / "audit"
        words = ["audit", "x.npz", "-o", str(self.audit), "--no-self-test", "--method", "gmm,rules"]
        code, err = call(self.files, words)
        assert code == 0, err
        self._client: Any = None

    def client(self) -> Any:
        """A client of a server of the audit, which is started with the first request."""
        if self._client is None:
            from starlette.testclient import TestClient

            from errata.app.server import create_app
            from errata.cli.serve import questionnaire, records_of_audit
            from errata.workflow import load

            shutil.copytree(self.audit, self.root / "served")
            audit = load(self.root / "served")
            records = records_of_audit(audit, self.root / "served", None)
            app = create_app(audit, records, questionnaire=questionnaire())
            self._client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        return self._client


def good() -> dict[str, Any]:
    """Arrays of a small audit, with a group that is worse."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    labels = rng.integers(0, 2, N)
    wrong = (X[:, 0] > 0.5) | (rng.random(N) < 0.1)
    positive = np.where(labels ^ wrong, 0.8, 0.1)
    return {
        "embedding": X,
        "labels": labels,
        "probs": np.stack([1 - positive, positive], axis=1),
        "predictions": (positive > 0.5).astype(int),
        "losses": rng.random(N) + wrong,
        "ids": np.arange(N),
        "groups": np.arange(N) // 2,
        "metadata:age": rng.random(N),
        "metadata:site": np.where(X[:, 0] > 0, "north", "south"),
        "text": np.array([f"a text of {i % 7}" for i in range(N)]),
    }


def columns(arrays: dict[str, Any]) -> dict[str, list[Any]]:
    """Arrays as columns of a table."""
    return {name.removeprefix("metadata:"): np.asarray(array).tolist() for name, array in arrays.items()}


def write_all(folder: Path) -> None:
    """The good rows in every format of a file."""
    arrays = good()
    rows = columns(arrays)
    np.savez(folder / "x.npz", **arrays)
    pq.write_table(pa.table(rows), folder / "x.parquet")
    numeric = {name: np.ascontiguousarray(array) for name, array in arrays.items() if array.dtype.kind in "if"}
    save_file(numeric, folder / "x.safetensors")
    records = [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    (folder / "x.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    (folder / "x.json").write_text(json.dumps(records))
    (folder / "x.csv").write_text(as_csv(rows))


def as_csv(rows: dict[str, list[Any]]) -> str:
    """Columns as the text of a csv file."""
    cells = [[f'"{value}"' if isinstance(value, list) else str(value) for value in column] for column in rows.values()]
    return "\n".join([",".join(rows), *(",".join(row) for row in zip(*cells, strict=True))]) + "\n"


# Kinds of cases


def read_words(rng: Rng, name: str) -> list[str]:
    """A command that reads a file, mostly a quick one."""
    if rng.random() < 0.5:
        return ["by", name, "--column", pick(rng, ("age", "site", "label", "embedding", *NASTY_TEXT[:6]))]
    words = ["audit", name, "-o", "out", "--no-self-test", "--no-map", "--method", pick(rng, METHODS[:6])]
    if rng.random() < 0.3:
        words = words[:-2]
    return words + pick(rng, ([], [], ["--metadata", "all"], ["--crossfit"], ["--task", "regression"], ["--reference"]))


def arrays_case(_: Stock, rng: Rng, folder: Path) -> str:
    """An archive of arrays of which some are others."""
    arrays = mutate_arrays(rng, good())
    with contextlib.suppress(ValueError):
        np.savez(folder / "x.npz", **arrays)
    return run(folder, read_words(rng, "x.npz"))


def bytes_case(stock: Stock, rng: Rng, folder: Path) -> str:
    """A file of any format of which some bytes are others."""
    name = pick(rng, sorted(path.name for path in stock.files.iterdir()))
    (folder / name).write_bytes(mutate_bytes(rng, (stock.files / name).read_bytes()))
    return run(folder, read_words(rng, name))


def table_case(_: Stock, rng: Rng, folder: Path) -> str:
    """A table in text or parquet of which some cells and columns are others."""
    rows = mutate_json(
        rng, columns({name: array for name, array in good().items() if rng.random() < 0.7}), pick(rng, RATES)
    )
    kind = pick(rng, ("csv", "jsonl", "json", "parquet"))
    rows = (
        {str(name): column for name, column in rows.items() if isinstance(column, list)}
        if isinstance(rows, dict)
        else {}
    )
    if kind == "csv":
        length = max(map(len, rows.values()), default=0)
        rows = {name: column + [""] * (length - len(column)) for name, column in rows.items()}
        (folder / "x.csv").write_text(as_csv(rows))
    elif kind == "parquet":
        with contextlib.suppress(pa.ArrowException, OverflowError, TypeError):
            pq.write_table(pa.table({name: column[:N] for name, column in rows.items()}), folder / "x.parquet")
    else:
        lists = zip(*rows.values(), strict=False)
        records = mutate_json(rng, [dict(zip(rows, values, strict=False)) for values in lists], pick(rng, RATES))
        lines = "\n".join(map(json.dumps, records if isinstance(records, list) else [records]))
        (folder / f"x.{kind}").write_text(lines if kind == "jsonl" else json.dumps(records))
    return run(folder, read_words(rng, f"x.{kind}"))


OPTIONS: dict[str, tuple[str, ...]] = {
    "--method": METHODS,
    "--set": ("gmm.components=0", "gmm.components=1e9", "gmm.slices=-1", "rules.depth=99", "spotlight.size=nan",
              "spotlight.slices=99999999", "gmm.axes=true", "x", "x=", ".=", "gmm.=1", "gmm.components=[1]",
              "consensus.slices=1000000000", "rules.slices=1e400", "gmm.seed=-1"),
    "--representation": ("embedding", "gmm=embedding", "nope", "=", "a=b=c"),
    "--metadata": ("all", "age", "nope", ""),
    "--foreign": ("embedding", "nope", ""),
    "--task": ("classification", "regression", "nope", ""),
    "--alpha": ("0", "1", "0.5", "nan", "1e-320", "-1", "x"),
    "--delta": ("0", "1", "nan", "-1", "0.999", "1e308"),
    "--tolerance": ("0", "nan", "inf", "-1", "0.5", "1e308"),
    "--within": ("none", "label", "prediction", "auto", "x"),
    "--metric": ("error", "fnr", "fpr", "over_prediction", "under_prediction", "x"),
    "--positive": ("0", "1", "2", "-1", "x", ""),
    "--groups": ("auto", "none", "site", "age", "nope", ""),
    "--seed": ("0", "-1", "4294967295", "4294967296", "1.5", "9" * 40),
    "--search-rows": ("0", "-1", "1", "20", "9" * 20, "x"),
    "--engine": ("local", "x", "", "ray://", "ray:", "cuda"),
    "--memory": ("0", "-1GB", "1KB", "x", "1e99GB", "GB", "9" * 30),
    "--slice": ("a=age < 0.5", "a=", "=age", "a=age <", "a=nope = 3", "a=" + "(" * 500, "a=site = north and age > 0.2"),
    "--after": (".", "x.npz", "nope"),
    "--train": ("x.npz", "x.csv", "nope.npz"),
    "--vocabulary": ("x.csv", "x.npz", "nope"),
    "--texts": ("x.npz", "x.csv", "nope"),
    "--plugin": ("nope", "", "..", "a.b.c", "json"),
    "--fail-on": ("confirmed", "beyond", "x"),
    "--junit": ("out/j.xml", "j.xml", "x.npz", "nope/j.xml", "."),
    "--summary": ("s.md", "x.npz", "s.txt", "nope/s.md"),
}  # fmt: skip
FLAGS = ("--crossfit", "--reference", "--json")


def options_case(stock: Stock, rng: Rng, folder: Path) -> str:
    """Good rows with odd options."""
    for name in ("x.npz", "x.csv"):
        shutil.copy(stock.files / name, folder)
    words = [
        "audit",
        "x.npz",
        "-o",
        pick(rng, ("out",) * 8 + ("x.npz/out", "nope/../out", "deep/er/out", ".", "", "o\x00")),
    ]
    words += ["--no-self-test", "--no-map"]
    for option in rng.choice(list(OPTIONS), size=int(rng.integers(1, 4)), replace=False).tolist():
        value = pick(rng, NASTY_TEXT) if rng.random() < 0.15 else pick(rng, OPTIONS[option])
        words += [option, value]
    if rng.random() < 0.2:
        words.append(pick(rng, FLAGS))
    return run(folder, words)


def saved_case(stock: Stock, rng: Rng, folder: Path) -> str:
    """A saved audit of which a file is damaged, read by the commands that read one."""
    shutil.copytree(stock.audit, folder / "audit")
    shutil.copy(stock.files / "x.npz", folder)
    files = sorted(path for path in (folder / "audit").rglob("*") if path.is_file() and path.name != "report.html")
    damage(rng, pick(rng, files))
    if rng.random() < 0.7:
        (folder / "audit" / "checksums.json").unlink(missing_ok=True)
    commands = (
        ["apply", "audit", "x.npz", "-o", "o.parquet"],
        ["plan", "weights", "audit", "x.npz", "-o", "o.parquet"],
        ["compare", "audit", "x.npz", "--no-search"],
        ["recheck", "audit", "x.npz", "x.npz"],
        ["test", "audit", "age < 0.5"],
        ["audit", "x.npz", "-o", "out", "--after", "audit", "--no-self-test", "--no-map", "--method", "gmm"],
        ["annotations", "export", "audit", "-o", "o.json"],
        ["report", "audit", "-o", "r.html"],
        ["report", "audit", "-o", "r.html", "--no-people"],
    )
    return run(folder, list(pick(rng, commands)))


def damage(rng: Rng, path: Path) -> None:
    """Change a file: values of JSON, or bytes."""
    if path.suffix == ".json" and rng.random() < 0.7:
        changed = mutate_json(rng, json.loads(path.read_text()), pick(rng, (0.003, 0.02, 0.1)))
        path.write_text(json.dumps(changed))
    else:
        path.write_bytes(mutate_bytes(rng, path.read_bytes()))


# fmt: off
PIECES = (
    "age", "site", "north", "label", "prediction", "and", "or", "not", "in", "(", ")", "[", "]", "<", ">", "<=",
    "=", "!=", "==", "0.5", "-1", "1e999", "nan", '"', "'", "“", "”", ",", " ", "text", "contains", "is", "missing",
    "~", "a", "::", "\\", "*", "..", "0x1", "²", "½", "١",
)
# fmt: on


def hypothesis_case(stock: Stock, rng: Rng, folder: Path) -> str:
    """A hypothesis of odd words, tested on a good audit."""
    shutil.copytree(stock.audit, folder / "audit")
    pieces = [pick(rng, PIECES if rng.random() < 0.9 else NASTY_TEXT) for _ in range(int(rng.integers(1, 12)))]
    words = pick(rng, (" ", "", " ")).join(pieces).replace("\x00", "")
    return run(folder, ["test", "audit", "--", words])


ANSWER = {"key": "k1", "queue": "s1", "item": "3", "person": "Ada", "task": "class", "answer": 1, "seconds": 2.5,
          "settles": False, "at": "2026-01-01T00:00:00+00:00"}  # fmt: skip


def answers_case(stock: Stock, rng: Rng, folder: Path) -> str:
    """A file of answers of which some are others, imported."""
    shutil.copytree(stock.audit, folder / "audit")
    fingerprint = json.loads((folder / "audit/audit.json").read_text())["fingerprint"]
    answers = [{**ANSWER, "key": f"k{i}", "item": str(i)} for i in range(3)]
    whole = {"schema": "errata.annotations/1", "fingerprint": fingerprint, "annotations": answers}
    text = json.dumps(mutate_json(rng, whole, 0.02))
    data = mutate_bytes(rng, text.encode()) if rng.random() < 0.2 else text.encode()
    (folder / "a.json").write_bytes(data)
    return run(folder, ["annotations", "import", "audit", "a.json"])


REQUESTS: tuple[tuple[str, Any], ...] = (
    ("/api/annotations", {name: value for name, value in ANSWER.items() if name != "at"}),
    ("/api/decisions", {"given": {"slice": "s1", "decision": "accepted", "person": "Ada", "note": ""}, "seen": 0}),
    ("/api/edits", {"slice": "s1", "item": "3", "inside": True, "person": "Ada"}),
    ("/api/drawn", {"loop": [[0, 0], [0, 9], [9, 9]], "name": "mine", "person": "Ada"}),
    ("/api/lasso", {"loop": [[0, 0], [0, 9], [9, 9]]}),
    ("/api/slices", {"text": "age < 0.5"}),
    ("/api/hypotheses", {"text": "age < 0.5", "person": "Ada", "slice": None}),
    ("/api/annotations/k1/undo", {"person": "Ada"}),
)
# fmt: off
ADDRESSES = (
    "/", "/slice/s1", "/row/3", "/annotate/s1", "/curate", "/hypothesis", "/compare", "/map", "/thumb/3",
    "/api/map", "/api/rows/3", "/api/queues/s1?person=Ada", "/api/answered?person=Ada", "/api/export.json",
    "/api/overlap?slice=s1&into=s2", "/api/questionnaire/s1?person=Ada", "/static/page.js", "/api/accepted",
)
# fmt: on


def request_case(stock: Stock, rng: Rng, _: Path) -> str:
    """A request of odd words to a server."""
    client = stock.client()
    headers = {"accept": pick(rng, ("text/html", "application/json", "*/*"))}
    if rng.random() < 0.3:
        address = mutate_bytes(rng, pick(rng, ADDRESSES).encode()).decode("latin-1")
        address = "/" + "".join(letter for letter in address if letter.isprintable() and letter not in " #")
        response = client.get("/" + address.lstrip("/"), headers=headers)
    else:
        address, body = pick(rng, REQUESTS)
        data = json.dumps(mutate_json(rng, body, 0.12)).encode()
        if rng.random() < 0.15:
            data = mutate_bytes(rng, data)
        response = client.post(address, content=data, headers={**headers, "content-type": "application/json"})
    if response.status_code >= 500:
        raise FaultError(f"status {response.status_code} of {address!r}: {response.text[:200]}")
    return "taken" if response.status_code < 400 else "refused"


KINDS: dict[str, Callable[[Stock, Rng, Path], str]] = {
    "arrays": arrays_case,
    "bytes": bytes_case,
    "table": table_case,
    "options": options_case,
    "saved": saved_case,
    "hypothesis": hypothesis_case,
    "answers": answers_case,
    "request": request_case,
}

if __name__ == "__main__":
    main()
