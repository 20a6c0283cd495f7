"""Attacks on the newer options and formats, each through the command: exit 2, one sentence, nothing written."""

from __future__ import annotations

import json
import os
import shlex
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command import run

N = 120
Make = Callable[[Path], object]


def good() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    labels = rng.integers(0, 2, N)
    positive = np.where(X[:, 0] > 1, 1 - labels, labels) * 0.8 + 0.1
    probs = np.stack([1 - positive, positive], axis=1)
    metadata = {"metadata:age": rng.integers(1, 90, N), "metadata:site": rng.choice(["a", "b"], N)}
    return {"embedding": X, "labels": labels, "probs": probs, **metadata}


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x.npz and its audit `a`, which no test changes."""
    folder = tmp_path_factory.mktemp("stock")
    np.savez(folder / "x.npz", **good())
    words = ["--no-self-test", "--no-map", "--method", "rules", "--slice", "old=age > 40"]
    assert run("audit", folder / "x.npz", "-o", folder / "a", *words).code == 0
    return folder


def listing(*folders: Path) -> list[tuple[str, int]]:
    paths = [path for folder in folders for path in folder.rglob("*") if not path.name.startswith("records.sqlite")]
    return sorted((str(path), path.lstat().st_size) for path in paths)


def check_refused(words: list[str], folder: Path, stock: Path) -> str:
    before = listing(folder, stock)
    code, _, err = run(*words, folder=folder)
    assert code == 2, err
    *notes, sentence = err.splitlines()
    assert sentence.startswith("errata: "), err
    assert all(note.startswith("Warning: ") for note in notes), err  # of files that were not read
    assert "\x1b" not in err
    assert listing(folder, stock) == before
    return str(err)


# --- options, by the command that takes them; X: the rows, A: their audit

AUDIT = {
    "--alpha": ["0", "1", "nan", "inf", "1e-400", "0,05"],
    "--delta": ["nan", "-1", "2"],
    "--tolerance": ["nan", "-inf"],
    "--seed": ["-1", "1.5", "99999999999999999999"],
    "--search-rows": ["0", "-5", "1e9"],
    "--memory": ["9" * 400, "9999999TB", "0", "-1GB", "xGB", "1e400GB", "GB", "2 GB GB"],
    "--engine": ["''", "gpu", "local:2", "ray:", "ray://", "ray:host", "ray:-1:x", "'ray://user:pw@h:1'"],
    "--within": ["''", "label,prediction"],
    "--metric": ["errors"],
    "--groups": ["nope", "embedding"],
    "--task": ["Regression", "detection"],
    "--slice": ["''", "=", "x=", "'=age > 3'", "'x=nope = 3'", "'x=age > 3 and'", "'x=label = nope'", "'x=site = \"a'"],
    "--set": ["=", "gmm", "gmm.=", "gmm.nope=1", "nope.k=1", ".k=1", "gmm.__class__=1"],
    "--method": ["''", "gmm:", "gmm:nope", ":", "../x", "'gmm;rules'", "__init__"],
    "--plugin": ["''", "os.path:", "nope", "./x.py", ".."],
    "--representation": ["nope", "gmm=", "=embedding", "gmm=nope"],
    "--metadata": ["nope", "embedding"],
    "--foreign": ["nope", "labels"],
    "--train": [".", "nope.npz", "/dev/zero"],
    "--texts": [".", "nope.npz", "/dev/zero"],
    "--vocabulary": [".", "nope.txt", "/dev/zero", "/dev/null", "9" * 5000],
    "--influence": ["P", "P=", "P=0", "P=-1", "P=nan", "Q=1", "rows=0", "damping=-1"],
    "--after": [".", "nope"],
    "--junit": ["''", ".", "/dev/null/j.xml"],
}
TOO_LONG = "9" * 400  # characters of a name; a file may have 255
LONG_PATHS = [
    "audit LONG -o o",
    "audit X -o LONG",
    "audit X -o o --train LONG --junit j.xml",
    "audit X -o o --texts LONG",
    "audit X -o o --after LONG",
    "audit X -o o --junit LONG",
    "apply A LONG -o p.parquet",
    "apply A X -o LONG",
    "apply A X -o p.parquet --database LONG",
    "compare LONG X",
    "compare A LONG",
    "compare A X --slices-of LONG",
    "recheck A LONG X -o c.json",
    "report LONG -o r.html",
    "report A -o LONG.html",
    "plan weights A LONG -o p.parquet",
    "test LONG 'age > 3'",
    "test A 'age > 3' --database LONG",
    "serve LONG",
    "serve A --certificate LONG",
    "serve A --with LONG",
    "annotations log LONG",
    "annotations import A LONG",
    "people add LONG Ann",
    "defuse LONG -o run --model m:n",
    "bench planted -o LONG",
    "bench planted --json LONG",
]
OTHERS = [
    *(words.replace("LONG", TOO_LONG) for words in LONG_PATHS),
    *(f"report A -o {path}" for path in ("''", "r.txt", "r", "/dev/null", "r.csv.gz", "..")),
    *(f"{words} --slices {names}"
      for words in ("report A -o r.html", "apply A X -o r.parquet", "compare A X --no-search")
      for names in ("''", "nope", "s999", "accepted", "all,s1", "ALL", "'s1;s2'")),
    *(f"apply A X -o r.parquet --fail-on {share}" for share in ("nan", "-1", "2", "inf")),
    *(f"apply A X -o {path}" for path in ("r.npz", "''", "/dev/null", ".")),
    *(f"annotations log A --database {place}" for place in ("''", "://", "sqlite://", "sqlite:///:memory:", "mongodb://x",
      "postgresql://x:99999/y", "x.txt", "nope/x.sqlite", "http://x", "'sqlite:///x.sqlite?mode=memory&uri=true'")),
    *(f"annotations import A {path}" for path in ("''", ".", "nope.json", "/dev/zero")),
    *(f"people add {path} Ann" for path in ("''", ".", "/dev/null", "/dev/full")),
    *(f"test A -- {text}" for text in ("''", "'age >'", "'nope = 3'", "'age > nan'", "'age in (1,2'", "'= 3'")),
    "test A 'age > 3' --task nope",
    *(f"bench {name} {words}" for name in ("planted", "captured", "spotcheck", "settings")
      for words in ("--seed -1", "-o /dev/null", "--method nope")),
    *(f"compare A {path} -o c" for path in ("''", ".", "nope", "/dev/zero")),
    *(f"recheck A {path} {path} -o c.json" for path in ("''", ".", "nope", "/dev/zero")),
    "compare A X --no-search --by nope",
    *(f"serve A --port 0 --host {host}" for host in ("''", "999.1.1.1", "'a b'", "'[::1]'", "::1%nope")),
    *(f"serve A --port {port}" for port in ("70000", "-1")),
    *(f"serve A --port 0 --address {url}" for url in ("ftp://x", "https://", "https://user@x",
      "'https://a b/x'", "'https://a b'", "https://é.example")),
    *(f"serve A --port 0 --certificate {path}" for path in (".", "/dev/zero", "X")),
    *(f"serve A --port 0 --people {path}" for path in (".", "/dev/zero", "X")),
]  # fmt: skip
COMMANDS = [
    *(f"audit X -o out --no-self-test --no-map --method rules {option} {value}" for option, values in AUDIT.items()
      if option != "--method" for value in values),
    *(f"audit X -o out --no-self-test --no-map --method {value}" for value in AUDIT["--method"]),
    *OTHERS,
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_that_is_wrong_is_refused(command: str, stock: Path, tmp_path: Path) -> None:
    places = {"X": str(stock / "x.npz"), "A": str(stock / "a")}
    words = [places.get(word, word) for word in shlex.split(command)]
    check_refused(words, tmp_path, stock)


# --- files


def deep(opening: str) -> str:
    return opening * 100_000


def tensors(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one_tensor(**facts: Any) -> bytes:
    whole = {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}
    return tensors({"labels": {**whole, **facts}}, bytes(8))


FILES: dict[str, str | bytes] = {
    "latin.csv": b"labels,predictions,n\xe9\n1,1,1\n",
    "utf16.csv": "labels,predictions\n1,1\n".encode("utf-16"),
    "nul.csv": "labels,predictions\n1,\0\n",
    "mark.csv": "\ufeff",
    "twice.csv": "labels,labels,predictions\n1,1,1\n",
    "ragged.csv": "labels,predictions,a\n1,1\n1,1,1,1\n",
    "open.csv": 'labels,predictions,a\n"1,1,1\n',
    "wide.csv": ",".join(f"c{i}" for i in range(20_000)) + "\n",
    "gz.csv": b"\x1f\x8b\x08" + bytes(50),
    "deep.json": deep("["),
    "deep-objects.json": deep('{"a":'),
    "null.json": "null",
    "mixed.json": '[{"labels": 1}, 2]',
    "nested.json": '[{"labels": {"a": 1}, "predictions": 1}]',
    "half.json": '[{"labels": "\\ud800", "predictions": "a"}]',
    "big.json": '[{"labels": %s, "predictions": 1}]' % ("9" * 4000),
    "behind.json": '[{"labels": 1, "predictions": 1}] x',
    "bytes.json": b"\xff\xfe[]",
    "deep.jsonl": deep("["),
    "deep-objects.jsonl": deep('{"a":'),
    "null.jsonl": "null",
    "list.jsonl": "[1]",
    "bytes.jsonl": b"\xff\xfe{}",
    "text.eval": "hello",
    "deep.safetensors": tensors(deep("[").encode()),
    "list.safetensors": tensors(b"[]"),
    "none.safetensors": tensors({}),
    "short.safetensors": b"\1\2",
    "long.safetensors": struct.pack("<Q", 2**63) + b"{}",
    "negative.safetensors": one_tensor(shape=[-1]),
    "beyond.safetensors": one_tensor(shape=[10], data_offsets=[0, 80]),
    "type.safetensors": one_tensor(dtype="X99"),
    "words.safetensors": one_tensor(data_offsets=["0", "8"]),
    "huge.safetensors": one_tensor(shape=[2**62, 4], data_offsets=[0, 0]),
    "junk.parquet": b"PAR1" + bytes(20),
    "junk.arrow": b"ARROW1\0\0" + bytes(20),
    "junk.feather": b"FEA1" + bytes(20),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["audit {} -o out --no-map", "by {} --column a"])
def test_a_file_that_is_none_is_refused(name: str, command: str, stock: Path, tmp_path: Path) -> None:
    content = FILES[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    check_refused(shlex.split(command.format(name)), tmp_path, stock)


def write_table(folder: Path, **columns: Any) -> None:
    rows = {"labels": good()["labels"], "probs": list(good()["probs"]), "embedding": list(good()["embedding"])}
    pq.write_table(pa.table({**rows, **columns}), folder / "x.parquet")


TABLES: dict[str, dict[str, Any]] = {
    "no label": {"labels": pa.nulls(N, pa.int64())},
    "structs": {"embedding": pa.array([{"a": 1.0}] * N)},
    "ragged": {"embedding": pa.array([[1.0] * (i % 3 + 1) for i in range(N)])},
    "a hole": {"embedding": pa.array([[1.0, None]] * N)},
    "durations": {"labels": pa.array([1] * N, pa.duration("ns"))},
    "some labels": {"labels": pa.array([None, "a"] * (N // 2)).dictionary_encode()},
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_wrong_is_refused(name: str, stock: Path, tmp_path: Path) -> None:
    write_table(tmp_path, **TABLES[name])
    check_refused(["audit", "x.parquet", "-o", "out", "--no-map"], tmp_path, stock)


def write_eval(folder: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(folder / "x.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


EVALS: dict[str, dict[str, bytes]] = {
    "no header": {"samples/1.json": b"{}"},
    "a broken sample": {"header.json": b'{"version": 2, "eval": {}}', "samples/1.json": b'{"id": 1'},
    "a deep sample": {"header.json": b'{"version": 2, "eval": {}}', "samples/1.json": deep("[").encode()},
    "a deep header": {"header.json": deep('{"a":').encode()},
    "names that lead out": {"../../header.json": b"{}", "samples/../../x.json": b"{}"},
}


@pytest.mark.parametrize("name", EVALS)
def test_a_log_that_is_none_is_refused(name: str, stock: Path, tmp_path: Path) -> None:
    write_eval(tmp_path, EVALS[name])
    check_refused(["audit", "x.eval", "-o", "out", "--no-map"], tmp_path, stock)


# --- folders of files

LABELS = good()["labels"]


def save(name: str, array: Any) -> Make:
    return lambda folder: np.save(folder / name, array)


def link(name: str, target: str) -> Make:
    return lambda folder: os.symlink(target, folder / name)


FOLDERS: dict[str, tuple[Make, ...]] = {
    "nothing": (),
    "a folder": (lambda folder: (folder / "sub").mkdir(),),
    "hidden": (save(".labels.npy", LABELS),),
    "arrays beside tables": (save("labels.npy", LABELS), lambda folder: write_table(folder)),
    "half of an array": (save("predictions.npy", LABELS), lambda at: (at / "labels.npy").write_bytes(b"\x93NU")),
    "a link to itself": (link("labels.npy", "labels.npy"), save("predictions.npy", LABELS)),
    "a link to nothing": (link("labels.npy", "nope"), save("predictions.npy", LABELS)),
    "a link to a device": (link("labels.npy", "/dev/zero"), save("predictions.npy", LABELS)),
    "two lengths": (save("labels.npy", LABELS), save("predictions.npy", LABELS[:5])),
    "a single value": (save("labels.npy", np.array(1)), save("predictions.npy", LABELS)),
    "objects": (save("labels.npy", np.array([None] * N, dtype=object)), save("predictions.npy", LABELS)),
    "an embedding alone": (save("embedding.npy", good()["embedding"]),),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_holds_no_rows_is_refused(name: str, stock: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for make in FOLDERS[name]:
        make(tmp_path / "in")
    check_refused(["audit", "in", "-o", "out", "--no-map"], tmp_path, stock)


# --- people

HASH = "a" * 64


def people(*names: str, digests: tuple[str, ...] = (HASH, "b" * 64)) -> str:
    facts = {name: {"sha256": digest} for name, digest in zip(names, digests, strict=False)}
    return json.dumps({"schema": "errata.people/1", "people": facts})


PEOPLE = {
    "an escape sequence": people("\x1b[2J"),
    "no name": people(""),
    "spaces": people(" Ann"),
    "half of a letter": people("\ud800"),
    "two with one token": people("Ann", "Ben", digests=(HASH, HASH)),
    "large letters": people("Ann", digests=("A" * 64,)),
    "a line's end": people("Ann", digests=(HASH + "\n",)),
    "deep": deep("["),
    "a list for a schema": '{"schema": ["errata.people/1"], "people": {}}',
}


@pytest.mark.parametrize("command", ["people list p.json", "serve nowhere --port 0 --people p.json"])
@pytest.mark.parametrize("name", PEOPLE)
def test_people_that_are_none_are_refused(name: str, command: str, stock: Path, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(PEOPLE[name])
    check_refused(shlex.split(command), tmp_path, stock)


@pytest.mark.parametrize("name", ["", "  ", " a", "a\nb", "\u202eabc", "a\u200b", "a\u0085b", "\u2028", "x" * 101])
def test_a_name_that_cannot_be_read_is_refused(name: str, stock: Path, tmp_path: Path) -> None:
    check_refused(["people", "add", "p.json", name], tmp_path, stock)


def test_what_is_odd_about_an_input_is_one_line_in_every_command(stock: Path, tmp_path: Path) -> None:
    """`compare` printed the place in the code, and a line of it."""
    arrays = good()
    np.savez(tmp_path / "turned.npz", **{**arrays, "probs": arrays["probs"][:, ::-1]})
    code, _, err = run("compare", stock / "a", "turned.npz", "--no-search", folder=tmp_path)
    assert code == 0
    assert err.startswith("Warning: accuracy is")
    assert (err.count("\n"), ".py" in err) == (1, False)
