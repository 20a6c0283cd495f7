"""Every bad input through the real command: one sentence on stderr, exit code 2, nothing written, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import errata
from support.command import run

N, D = 120, 4
SRC = str(Path(errata.__file__).parents[1])


def good(n: int = N) -> dict[str, Any]:
    """Arrays of an audit that works, with a few errors."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(n, D)), rng.integers(0, 2, n)
    positive = np.where(X[:, 0] > 1, 1 - labels, labels) * 0.8 + 0.1
    return {"embedding": X, "labels": labels, "probs": np.stack([1 - positive, positive], axis=1)}


def without(*names: str, **others: Any) -> dict[str, Any]:
    """The good arrays without some, and with others; `a__b` stands for `a:b`."""
    kept = {name: array for name, array in good().items() if name not in names}
    return {**kept, **{name.replace("__", ":"): np.asarray(array) for name, array in others.items()}}


def broken(name: str, where: Any, value: float) -> dict[str, Any]:
    """The good arrays with one bad value."""
    arrays = good()
    array = arrays[name].astype(np.float64)
    array[where] = value
    return {**arrays, name: array}


Make = Callable[[Path], dict[str, Any]]


def npz(**arrays: Any) -> Callable[[Path], None]:
    return lambda folder: np.savez(folder / "x.npz", **arrays)


def table(**columns: Any) -> pa.Table:
    plain = {"labels": good()["labels"], "embedding": list(good()["embedding"]), "probs": list(good()["probs"])}
    return pa.table({**plain, **columns})


def parquet(**columns: Any) -> Callable[[Path], None]:
    return lambda folder: pq.write_table(table(**columns), folder / "x.parquet")


def text(name: str, content: str | bytes) -> Callable[[Path], None]:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data) and None


def truncated(folder: Path) -> None:
    np.savez(folder / "x.npz", **good())
    whole = (folder / "x.npz").read_bytes()
    (folder / "x.npz").write_bytes(whole[: len(whole) // 2])


def flipped(folder: Path) -> None:
    """A byte of an array changed after it was written: the archive's own checksum says so."""
    np.savez(folder / "x.npz", **good())
    whole = bytearray((folder / "x.npz").read_bytes())
    whole[300] ^= 0xFF
    (folder / "x.npz").write_bytes(bytes(whole))


def damaged_names(folder: Path) -> None:
    """A parquet file that says the name of a column in other bytes than UTF-8."""
    pq.write_table(table(), folder / "x.parquet", store_schema=False)
    whole = (folder / "x.parquet").read_bytes()
    (folder / "x.parquet").write_bytes(whole.replace(b"labels", b"lab\xf3ls"))


def damaged_text(folder: Path) -> None:
    """A parquet file with a text in other bytes than UTF-8."""
    rows = table(text=["a long text"] * N)
    pq.write_table(rows, folder / "x.parquet", compression="none", use_dictionary=False, write_statistics=False)
    whole = (folder / "x.parquet").read_bytes()
    (folder / "x.parquet").write_bytes(whole.replace(b"a long text", b"a lo\xffg text"))


def everything(*makers: Callable[[Path], Any]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for maker in makers:
            maker(folder)

    return make


def csv(header: str, cells: Callable[[int], str], n: int = N) -> Callable[[Path], None]:
    lines = [header] if header else []
    return text("x.csv", "\n".join([*lines, *(cells(i) for i in range(n))]) + "\n")


GOOD = npz(**good())
NPZ, TABLE, CSV = "x.npz -o out", "x.parquet -o out", "x.csv -o out"
SPOTLIGHT = "x.npz -o out --method spotlight --set"
NEW = "audit x.npz -o o.parquet"
NOT_AUDIT = everything(GOOD, lambda folder: (folder / "other").mkdir())
OBJECTS = np.array([{"a": 1}] * N, dtype=object)
RAGGED = [[0.0] * (D if i != 7 else D - 1) for i in range(N)]
TEXT_LABELS = np.where(good()["labels"], "cat", "bird")

# name: (how the folder is made, the words after `errata audit`, words of the sentence)
AUDIT: dict[str, tuple[Callable[[Path], Any], str, tuple[str, ...]]] = {
    # files
    "missing file": (GOOD, "nope.npz -o out", ("does not exist", "nope.npz")),
    "a folder": (NOT_AUDIT, "other -o out", ("is a folder", ".npz")),
    "empty file": (text("x.npz", ""), NPZ, ("is empty",)),
    "wrong suffix": (text("x.txt", "{}"), "x.txt -o out", ("must end in", ".parquet", "`.txt`")),
    "no suffix": (text("x", "1"), "x -o out", ("must end in", "no suffix")),
    "name too long": (GOOD, "y" * 300 + ".npz -o out", ("cannot be read", "too long")),
    "truncated npz": (truncated, NPZ, ("damaged", "write it again")),
    "flipped byte": (flipped, NPZ, ("damaged", "write it again")),
    "text called npz": (text("x.npz", "hello, world"), NPZ, ("damaged",)),
    "npy called npz": (lambda f: np.save(f / "x.npy", np.ones(3)) or (f / "x.npy").rename(f / "x.npz"),
                       NPZ, ("single array", "np.savez")),
    "text called parquet": (text("x.parquet", "hello"), TABLE, ("damaged",)),
    "a column's name in other bytes": (damaged_names, TABLE, ("damaged", "write it again")),
    "a text in other bytes": (damaged_text, TABLE, ("`text` in `x.parquet` is damaged", "UTF8", "write it again")),
    "a name in other bytes": (GOOD, "x\udcff.npz -o out", ("not in UTF-8", "rename it")),
    "an output in other bytes": (GOOD, "x.npz -o o\udcff", ("not in UTF-8", "rename it")),
    "object array": (npz(**without("labels", labels=OBJECTS)), NPZ, ("object array", "`labels`", "pickle")),
    # names
    "unknown array": (npz(**without(embeding=np.ones((N, 2)))), NPZ, ("`embeding`", "did you mean `embedding`")),
    "unknown metadata": (npz(**without(metadata__age=np.ones(N))), "x.npz -o out --metadata metadata:aged",
                         ("metadata column", "did you mean `metadata:age`")),
    "unknown metadata, table": (parquet(age=np.ones(N)), "x.parquet -o out --metadata aeg", ("did you mean `age`",)),
    "unknown representation": (GOOD, "x.npz -o out --representation clip", ("unknown representation `clip`",)),
    "unknown foreign": (GOOD, "x.npz -o out --foreign embeding", ("did you mean `embedding`",)),
    "misspelt column": (parquet(Losses=np.ones(N)), TABLE, ("`Losses`", "`losses`", "rename it")),
    "one name twice": (npz(**without(embedding__embedding=np.ones((N, 2)))), NPZ, ("one name", "rename")),
    "csv without a header": (csv("", lambda i: f"{i},0.5,1"), CSV, ("no column that is known", "`0`")),
    "csv with half a row": (csv("labels,losses", lambda i: "1,2" if i != 5 else "1"), CSV, ("damaged", "2")),
    # arrays
    "nothing to search": (npz(**without("embedding")), NPZ, ("neither an embedding nor metadata", "--metadata all")),
    "several predictions of one label": (npz(**without("probs", predictions=np.zeros((N, 7), int), losses=np.ones(N))),
                                         NPZ, ("`predictions` must have one column", "(120, 7)", "`probs`")),
    "no rows with hard predictions": (npz(labels=np.empty(0, int), predictions=np.empty(0, int),
                                          embedding=np.empty((0, D))), NPZ, ("at least", "rows")),
    "nothing at all": (npz(ids=np.arange(N)), NPZ, ("needs losses", "got none")),
    "no outcome": (npz(**without("labels", "probs")), NPZ, ("needs `losses`", "add it")),
    "regression without predictions": (npz(**without("probs", "labels", labels=np.linspace(0, 1, N))), NPZ,
                                       ("needs `losses`",)),
    "cells without labels": (npz(**without("labels", "probs", losses=np.ones(N))), "x.npz -o out --method confusion",
                                 ("`confusion`", "needs `labels`")),
    "three rows": (npz(**{k: v[:3] for k, v in good().items()}), NPZ, ("at least 20 rows", "got 3")),
    "no rows": (npz(**{k: v[:0] for k, v in good().items()}), NPZ, ("no rows",)),
    "rows missing": (npz(**without("probs", probs=good()["probs"][1:])), NPZ, ("`probs` has 119 rows", "120")),
    "flat embedding": (npz(**without("embedding", embedding=np.ones(N))), NPZ, ("matrix", "(n, d)", "(120,)")),
    "no columns": (npz(**without("embedding", embedding=np.ones((N, 0)))), NPZ, ("d at least 1",)),
    "deep labels": (npz(**without("labels", labels=np.ones((N, 2, 2)))), NPZ, ("`labels`", "(120, 2, 2)")),
    "a single label": (npz(**without("labels", labels=np.array(1), losses=np.ones(N))), NPZ, ("`labels`",)),
    "NaN in losses": (npz(**without(losses=np.full(N, np.nan))), NPZ, ("`losses` has NaN", "row 0")),
    "NaN in an embedding": (npz(**broken("embedding", (7, 1), np.nan)), NPZ, ("embedding", "NaN", "row 7")),
    "infinite embedding": (npz(**broken("embedding", (9, 1), np.inf)), NPZ, ("infinite", "row 9")),
    "infinite loss": (npz(**without(losses=np.r_[np.ones(N - 1), -np.inf])), NPZ, ("infinite", "row 119")),
    "complex embedding": (npz(**without("embedding", embedding=np.ones((N, 2)) * 1j)), NPZ, ("numbers", "complex")),
    "text losses": (npz(**without(losses=np.full(N, "high"))), NPZ, ("`losses` must be numbers",)),
    "class without probability": (npz(**broken("labels", 11, 2)), NPZ, ("0 to 1", "got 2 at row 11")),
    "negative class": (npz(**broken("labels", 3, -1)), NPZ, ("got -1 at row 3",)),
    "half a class": (npz(**broken("labels", 3, 0.5)), NPZ, ("class indices", "0.5 at row 3")),
    "probability over one": (npz(**broken("probs", (4, 0), 1.5)), NPZ, ("[0, 1]", "1.5", "row 4", "softmax")),
    "sums": (npz(**broken("probs", (5, 0), 0.55)), NPZ, ("sum to 1", "row 5")),
    "duplicate ids": (npz(**without(ids=np.r_[0, np.arange(N - 1)])), NPZ, ("unique", "rows 0 and 1")),
    "fractional ids": (npz(**without(ids=np.arange(N) / 2)), NPZ, ("`ids` must be whole numbers or text",)),
    "flat groups": (npz(**without(groups=np.zeros((N, 2)))), NPZ, ("`groups`", "one value a row")),
    "one group": (npz(**without(groups=np.zeros(N))), NPZ, ("cannot be split", "group")),
    "text against numbers": (npz(**without("probs", "labels", labels=TEXT_LABELS, predictions=good()["labels"])),
                             NPZ, ("`labels` is text", "`predictions` is numbers")),
    "class without a name": (npz(**without("labels", labels=TEXT_LABELS, class_names=["cat", "dog"])), NPZ,
                             ("'bird'", "known: cat, dog")),
    "too few names": (npz(**without(class_names=["cat"])), NPZ, ("1 names", "2 columns")),
    "names twice": (npz(**without(class_names=["cat", "cat"])), NPZ, ("unique",)),
    "multi-label of threes": (npz(**without("labels", labels=np.full((N, 2), 3))), NPZ, ("0 or 1", "got 3")),
    "multi-label shapes": (npz(**without("labels", labels=np.ones((N, 3), int))), NPZ, ("(120, 3)", "(120, 2)")),
    "flat metadata": (npz(**without(metadata__age=np.ones((N, 2)))), NPZ, ("metadata `age`", "one value")),
    "two media": (npz(**without(text=np.full(N, "a"), image_path=np.full(N, "b"))), NPZ, ("both", "`image_path`")),
    "short texts": (npz(**without(text=np.full(N - 1, "a"))), NPZ, ("119 items", "120 rows")),
    # tables
    "ragged lists": (parquet(embedding=RAGGED), TABLE, ("different lengths", "row 7 has 3")),
    "numbers for lists": (parquet(embedding=np.ones(N)), TABLE, ("`embedding` must be a column of lists",)),
    "null in a list": (parquet(embedding=[[1.0, None]] * N), TABLE, ("missing value inside", "row 0")),
    "null label": (parquet(labels=[None, *good()["labels"][1:].tolist()]), TABLE, ("missing", "row 0")),
    "probabilities twice": (parquet(**{"prob:a": np.ones(N)}), TABLE, ("both", "`prob:a`")),
    "text for pictures": (parquet(image=["a"] * N), TABLE, ("`image`", "JPEG or PNG bytes")),
    "csv class without a column": (csv("labels,prob:cat,prob:dog,embedding", lambda i: "bird,0.5,0.5,1 2"), CSV,
                                   ("'bird'", "known: cat, dog")),
    "csv words for numbers": (csv("losses,embedding", lambda i: f"1.5,{'1 2' if i != 4 else 'a b'}"), CSV,
                              ("`embedding`", "row 4", "[0.1, 0.2]")),
    # methods and options
    "unknown method": (GOOD, "x.npz -o out --method spotligt", ("unknown method", "did you mean `spotlight`")),
    "unknown preset": (GOOD, "x.npz -o out --method spotlight:publishd", ("unknown preset", "as_published")),
    "method twice": (GOOD, "x.npz -o out --method gmm,gmm", ("twice", "name each once")),
    "method twice, repeated": (GOOD, "x.npz -o out --method gmm --method gmm", ("twice",)),
    "no method": (GOOD, "x.npz -o out --method ,", ("`methods` is empty",)),
    "unknown option": (GOOD, f"{SPOTLIGHT} spotlight.sise=0.1", ("unknown option", "did you mean `size`")),
    "option of another method": (GOOD, "x.npz -o out --method spotlight --set gmm.components=3",
                                 ("an option is for method `gmm`", "--method gmm")),
    "option of a method that the default does not run": (GOOD, "x.npz -o out --set spotlight.size=0.05",
                                                         ("an option is for method `spotlight`", "--method spotlight")),
    "unknown scope": (GOOD, "x.npz -o out --within labels", ("unknown `within`", "did you mean `label`")),
    "scope that a method has already": (GOOD, "x.npz -o out --method confusion --within label", ("cells",)),
    "wrong type of option": (GOOD, f"{SPOTLIGHT} spotlight.size=big", ("`spotlight.size`", "a number", "'big'")),
    "whole number asked for": (GOOD, f"{SPOTLIGHT} spotlight.slices=2.5",
                               ("`spotlight.slices`", "an integer", "2.5")),
    "true is no number": (GOOD, f"{SPOTLIGHT} spotlight.slices=true",
                          ("`spotlight.slices`", "an integer", "True")),
    "unknown choice": (GOOD, f"{SPOTLIGHT} spotlight.shape=cube", ("`spotlight.shape`", "'cube'")),
    "option out of range": (GOOD, f"{SPOTLIGHT} spotlight.size=0.9", ("`spotlight.size`", "at most 0.5", "0.9")),
    "negative option": (GOOD, "x.npz -o out --method gmm --set gmm.components=0", ("`gmm.components`", "at least 1")),
    "infinite option": (GOOD, f"{SPOTLIGHT} spotlight.advanced.barrier=Infinity", ("finite", "'Infinity'")),
    "overflowing option": (GOOD, f"{SPOTLIGHT} spotlight.advanced.barrier=1e999", ("finite", "'1e999'")),
    "overflowing option without a 0": (GOOD, f"{SPOTLIGHT} spotlight.advanced.barrier=.1e999",
                                       ("finite", "'.1e999'")),
    "not a number by Python's name": (GOOD, f"{SPOTLIGHT} spotlight.size=nan", ("a number", "'nan'")),
    "digits with an underscore": (GOOD, f"{SPOTLIGHT} spotlight.slices=1_0", ("an integer", "'1_0'")),
    "set without =": (GOOD, f"{SPOTLIGHT} spotlight.size", ("METHOD.KEY=VALUE", "'spotlight.size'")),
    "set without a method": (GOOD, "x.npz -o out --set size=0.1", ("METHOD.KEY=VALUE", "'size=0.1'")),
    "representation that nobody searches": (GOOD, "x.npz -o out --method confusion --representation embedding",
                                            ("--representation embedding", "confusion", "leave it out")),
    "representation of a method without": (GOOD, "x.npz -o out --method confusion --representation confusion=embedding",
                                           ("unknown option of method `confusion`",)),
    "negative seed": (GOOD, "x.npz -o out --seed -1", ("`seed`", "got -1")),
    "large seed": (GOOD, "x.npz -o out --seed 4294967296", ("`seed`", "4294967295")),
    "seed as an option": (GOOD, f"{SPOTLIGHT} spotlight.seed=-2", ("`spotlight.seed`", "got -2")),
    "text seed": (GOOD, "x.npz -o out --seed one", ("--seed", "integer")),
    "alpha 2": (GOOD, "x.npz -o out --alpha 2", ("`alpha`", "between 0 and 0.5", "2.0")),
    "alpha NaN": (GOOD, "x.npz -o out --alpha nan", ("`alpha`", "nan")),
    "delta 3": (GOOD, "x.npz -o out --delta 3", ("`delta`", "at least 0 and below 1", "3.0")),
    "no such option": (GOOD, "x.npz -o out --colour red", ("No such option", "--colour")),
    "no output": (GOOD, "x.npz", ("Missing option", "--output")),
    "no input": (GOOD, "-o out", ("Missing argument", "INPUT")),
    "two inputs": (GOOD, "x.npz y.npz -o out", ("unexpected", "y.npz")),
    # other folders and files
    "after what is no audit": (NOT_AUDIT, "x.npz -o out --after other", ("not an audit", "audit.json")),
    "after nothing": (GOOD, "x.npz -o out --after nowhere", ("not an audit", "nowhere")),
    "vocabulary is missing": (GOOD, "x.npz -o out --vocabulary words.txt", ("cannot be read", "words.txt")),
    "empty vocabulary": (everything(GOOD, lambda f: (f / "words.txt").write_text("\n \n")),
                         "x.npz -o out --vocabulary words.txt", ("has no word", "one a line")),
    "vocabulary without texts": (everything(GOOD, lambda f: (f / "words.txt").write_text("free\n")),
                                 "x.npz -o out --vocabulary words.txt", ("`vocabulary`", "these rows have none")),
    "vocabulary without words": (everything(npz(**good(), text=np.full(N, "a text")),
                                            lambda f: (f / "words.txt").write_text("free\n…\n")),
                                 "x.npz -o out --vocabulary words.txt", ("no word in '…'", "entry 2")),
    "train is missing": (GOOD, "x.npz -o out --train y.npz", ("does not exist", "y.npz")),
    "train is the same": (GOOD, "x.npz -o out --train x.npz", ("also in `train`", "not trained on")),
    "output exists": (NOT_AUDIT, "x.npz -o other", ("exists already", "name another")),
    "output is a file": (GOOD, "x.npz -o x.npz", ("exists already",)),
    "output under a file": (GOOD, "x.npz -o x.npz/deep/out", ("cannot be written", "not a folder")),
    "output where nobody may write": (GOOD, "x.npz -o /proc/errata-test", ("cannot be written",)),
    "output name too long": (GOOD, "x.npz -o " + "y" * 300, ("cannot be written", "too long")),
    "partial name too long": (GOOD, "x.npz -o deep/" + "y" * 250, ("cannot be written", "too long")),
    "broken link as output": (everything(GOOD, lambda f: (f / "link").symlink_to("nowhere")), "x.npz -o link",
                              ("exists already",)),
    "a single probability": (npz(**without("probs", probs=np.array(1.0), losses=np.ones(N))), NPZ, ("`probs`",)),
    "multi-label text": (npz(**without("probs", "labels", labels=np.full((N, 2), "a"))), NPZ, ("`labels`",)),
    "tolerance NaN": (npz(**without("labels", "probs", losses=np.arange(N) / N)), "x.npz -o out --tolerance nan",
                      ("`tolerance`",)),
    "huge embedding": (npz(**without("embedding", embedding=good()["embedding"] * 1e200)), NPZ, ("embedding",)),
    "huge losses": (npz(**without(losses=np.linspace(0.5, 1, N) * 1e308)), NPZ, ("losses",)),
    "renamed option": (GOOD, "x.npz -o out --method gmm --set gmm.reduce=4", ("`gmm.reduce` is now `gmm.axes`",)),
    "advanced option": (GOOD, f"{SPOTLIGHT} spotlight.barrier=2", ("is now `spotlight.advanced.barrier`",)),
    "unknown advanced option": (GOOD, f"{SPOTLIGHT} spotlight.advanced.stepz=2", ("`advanced.steps`",)),
    "no mapping": (GOOD, f"{SPOTLIGHT} spotlight.advanced=3", ("`spotlight.advanced` must be a mapping",)),
    "no axes": (GOOD, "x.npz -o out --method gmm --set gmm.axes=0", ("`gmm.axes`",)),
    "negative count": (GOOD, "x.npz -o out --method confusion --set confusion.slices=-1", ("`confusion.slices`",)),
    "empty preset": (GOOD, "x.npz -o out --method spotlight:", ("preset",)),
}  # fmt: skip


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """All that lies in a folder, with sizes and times."""
    stats = {path.relative_to(folder).as_posix(): path.lstat() for path in folder.rglob("*")}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def refused(folder: Path, command: list[str], words: tuple[str, ...]) -> None:
    """The whole claim: exit 2, one line, its key words, and nothing written."""
    before = tree(folder)
    code, out, err = run(*command, folder=folder)
    assert code == 2, (out, err)
    assert err.startswith("errata: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    for word in words:
        assert word in err
    assert tree(folder) == before
    assert not Path("/proc/errata-test").exists()


@pytest.mark.parametrize("name", AUDIT)
def test_audit_refuses(name: str, tmp_path: Path) -> None:
    make, command, words = AUDIT[name]
    make(tmp_path)
    refused(tmp_path, ["audit", *command.split(" ")], words)


def test_the_good_input_is_good(tmp_path: Path) -> None:
    """Else the whole table could be refused for one reason."""
    everything(GOOD, parquet(), csv("labels,losses,embedding", lambda i: f"1,{i % 7},{i} {i % 5}"))(tmp_path)
    for i, name in enumerate(("x.npz", "x.parquet", "x.csv")):
        code, _, err = run("audit", name, "-o", f"out{i}", "--no-self-test", folder=tmp_path)
        assert (code, err) == (0, "")


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    GOOD(folder)
    errata.save(errata.audit(errata.collect(folder / "x.npz"), methods=["spotlight"]), folder / "audit")
    return folder


def _edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "audit" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        (folder / "audit" / "checksums.json").unlink()  # as one who means it would

    return edit


def _cut(name: str, keep: float) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        path = folder / "audit" / name
        data = path.read_bytes()
        path.write_bytes(data[: int(keep * len(data))])

    return cut


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "audit" / name).unlink()


def nothing(folder: Path) -> None:
    """The folder as it is."""


WIDE = npz(embedding=np.ones((5, D + 1)))
OTHER = npz(**{"embedding:other": np.ones((5, D))})
# name: (what is done to a good audit, the words after `errata apply`, words of the sentence)
APPLY: dict[str, tuple[Callable[[Path], Any], str, tuple[str, ...]]] = {
    "no audit": (lambda f: (f / "other").mkdir(), "other x.npz -o o.parquet", ("not an audit", "audit.json")),
    "no folder": (nothing, "nowhere x.npz -o o.parquet", ("not an audit", "nowhere")),
    "a file": (nothing, "x.npz x.npz -o o.parquet", ("not an audit",)),
    "damaged json": (_cut("audit.json", 0.5), NEW, ("audit.json", "damaged", "again")),
    "another form": (_edit("audit.json", "errata.audit/1", "errata.audit/9"), NEW, ("errata.audit/9",)),
    "a json list": (lambda f: (f / "audit/audit.json").write_text("[1]"), NEW, ("schema None",)),
    "a key is gone": (_edit("audit.json", '"silence"', '"silent"'), NEW, ("damaged", "silence")),
    "no memberships": (_remove("memberships.parquet"), NEW, ("damaged", "again")),
    "half of the memberships": (_cut("memberships.parquet", 0.5), NEW, ("damaged", "again")),
    "half of a slicer": (_cut("slicers/spotlight.json", 0.5), NEW, ("damaged", "again")),
    "half of its arrays": (_cut("slicers/spotlight.safetensors", 0.5), NEW, ("damaged", "again")),
    "no arrays": (_cut("slicers/spotlight.safetensors", 0), NEW, ("damaged", "again")),
    "an unknown slicer": (_edit("slicers/spotlight.json", '"name": "spotlight"', '"name": "spot"'),
                          NEW, ("spot", "not installed here")),
    "half of the rows": (_cut("evaluation/rows.parquet", 0.5), NEW, ("damaged", "again")),
    "half of the embedding": (_cut("evaluation/representations.safetensors", 0.5), NEW, ("damaged",)),
    "no evaluation": (_remove("evaluation/evaluation.json"), NEW, ("damaged", "again")),
    "other columns": (WIDE, NEW, ("4 columns", "got 5")),
    "another representation": (OTHER, NEW, ("unknown representation `embedding`",)),
    "missing rows": (nothing, "audit y.npz -o o.parquet", ("does not exist", "y.npz")),
    "output exists": (text("o.parquet", "mine"), NEW, ("exists already",)),
    "output is no parquet": (nothing, "audit x.npz -o o.csv", ("must end in .parquet", "`.csv`")),
    "output without suffix": (nothing, "audit x.npz -o out", ("must end in .parquet", "nothing")),
    "output under a file": (nothing, "audit x.npz -o x.npz/o.parquet", ("cannot be written",)),
    "gate over one": (nothing, "audit x.npz -o o.parquet --fail-on 2", ("--fail-on", "between 0 and 1", "2.0")),
    "gate below zero": (nothing, "audit x.npz -o o.parquet --fail-on -0.1", ("--fail-on", "-0.1")),
    "gate NaN": (nothing, "audit x.npz -o o.parquet --fail-on nan", ("--fail-on", "nan")),
}  # fmt: skip


def _copy(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir()
        else:
            place.write_bytes(path.read_bytes())


@pytest.mark.parametrize("name", APPLY)
def test_apply_refuses(name: str, audited: Path, tmp_path: Path) -> None:
    spoil, command, words = APPLY[name]
    _copy(audited, tmp_path)
    spoil(tmp_path)
    refused(tmp_path, ["apply", *command.split(" ")], words)


def test_a_moved_or_changed_reference_is_refused(tmp_path: Path) -> None:
    GOOD(tmp_path)
    code, _, _ = run("audit", "x.npz", "-o", "audit", "--reference", "--no-self-test", folder=tmp_path)
    assert code == 0
    np.savez(tmp_path / "new.npz", embedding=np.ones((3, D)))
    np.savez(tmp_path / "x.npz", **without(losses=np.ones(N)))
    words = ["apply", "audit", "new.npz", "-o", "o.parquet"]
    refused(tmp_path, words, ("x.npz", "other rows now"))
    (tmp_path / "x.npz").unlink()
    refused(tmp_path, words, ("x.npz", "does not exist"))


@pytest.mark.parametrize("words", [["nope"], ["audit"], ["methods", "extra"], ["--colour"], ["demo", "-o", "here"]])
def test_other_commands_refuse(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    refused(tmp_path, words, ())


AS_A_PROCESS = """
import contextlib, json, runpy, sys

for command in json.loads(sys.argv[1]):
    sys.argv = ["errata", "audit", *command]
    try:
        runpy.run_module("errata", run_name="__main__")
    except SystemExit as stop:
        sys.stdout.write(f"{stop.code}\\n")
"""


def test_the_process_refuses_too(tmp_path: Path) -> None:
    """As `python -m errata`, without a test's hands on its streams: four commands in one process, to import once."""
    names = ["truncated npz", "sums", "unknown method", "no such option"]
    commands = []
    for name in names:
        make, command, _ = AUDIT[name]
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        make(folder)
        commands.append([f"{folder.name}/{command.split(' ')[0]}", *command.split(" ")[1:]])
    before = tree(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", AS_A_PROCESS, json.dumps(commands)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": SRC}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["2"] * len(names), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(names)
    for name, line in zip(names, lines, strict=True):
        assert line.startswith("errata: ")
        assert all(word in line for word in AUDIT[name][2])
    assert tree(tmp_path) == before


def test_the_table_is_long_enough() -> None:
    assert len(AUDIT) + len(APPLY) >= 40
