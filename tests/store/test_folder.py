"""An audit and its folder: the same after a round trip, whole or absent whatever happens on the way."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import errata
from errata import Audit, store
from errata.core import InputError
from errata.core import tensor_files as arrays
from errata.explain import restore_explanation
from errata.slicers import restore
from errata.store import atomic, evaluations
from support.bits import same_bits
from support.kinds_of_rows import KINDS, N

ARRAYS = ("losses", "labels", "probs", "predictions", "ids", "groups")


def plain(value: Any) -> Any:
    """As JSON has it."""
    return json.loads(json.dumps(value, default=lambda array: array.tolist()))


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_folder_of_version_0_2_has_no_error_types(saved: Any, tmp_path: Path) -> None:
    audit, folder = saved("plain")
    assert audit.error_types
    old = shutil.copytree(folder, tmp_path / "old")
    facts = json.loads((old / "audit.json").read_text())
    del facts["error_types"]
    for item in facts["slices"]:
        del item["error_types"]
    (old / "audit.json").write_text(json.dumps(facts))
    (old / "checksums.json").unlink()
    loaded = errata.load(old)
    assert loaded.error_types == ()
    assert [found.id for found in loaded.slices] == [found.id for found in audit.slices]


# --- round trip ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_slices_come_back(kind: str, saved: Any) -> None:
    audit, folder = saved(kind)
    loaded = errata.load(folder)
    assert len(loaded.slices) == len(audit.slices)
    assert len(audit.slices) > 0
    for before, after in zip(audit.slices, loaded.slices, strict=True):
        same_bits(before.weights, after.weights)
        for name in (field.name for field in fields(before)):
            if name == "rule":
                assert plain(before.rule) == plain(after.rule)
            elif name == "audited":
                assert before.ids.tolist() == after.ids.tolist()
                assert before.rows("held-out").tolist() == after.rows("held-out").tolist()
            elif name != "weights":
                assert getattr(before, name) == getattr(after, name), name
                assert type(getattr(before, name)) is type(getattr(after, name)), name
        assert np.array_equal(before.members, after.members)
    assert plain([e.to_json() for e in loaded.error_types]) == plain([e.to_json() for e in audit.error_types])
    for one, other in zip(audit.error_types, loaded.error_types, strict=True):
        same_bits(one.weights, other.weights)
        assert np.array_equal(one.members, other.members)
    assert loaded.overall == audit.overall
    assert loaded.silence == audit.silence
    assert plain(loaded.settings) == plain(audit.settings)
    assert loaded.explanations == audit.explanations
    assert np.array_equal(loaded.discover, audit.discover)


@pytest.mark.parametrize("kind", KINDS)
def test_slicers_come_back_and_give_the_same_membership(kind: str, saved: Any) -> None:
    audit, folder = saved(kind)
    loaded = errata.load(folder)
    assert set(loaded.slicers) == set(audit.slicers)
    for task, view in audit.evaluation.tasks():
        for key in {found.slicer for found in audit.slices if found.task == task}:
            before, after = (each.slicers[key] for each in (audit, loaded))
            same_bits(before.membership(view), after.membership(view))
            same_bits(before.thresholds_, after.thresholds_)
            assert plain(list(before.rules_)) == plain(list(after.rules_))
    own = {found.id: found.weights for found in audit.slices if found.column >= 0}
    again = errata.apply(loaded, loaded.evaluation)
    assert set(again) == set(own)
    for name in own:
        same_bits(own[name], again[name])


@pytest.mark.parametrize("kind", KINDS)
def test_the_evaluation_comes_back(kind: str, saved: Any) -> None:
    audit, folder = saved(kind)
    before, after = audit.evaluation, errata.load(folder).evaluation
    for name in ARRAYS:
        same_bits(getattr(before, name), getattr(after, name))
    assert list(before.representations) == list(after.representations)
    for name in before.representations:
        same_bits(before.representations[name], after.representations[name])
        assert isinstance(after.representations[name], np.memmap)
        assert before.source(name) == after.source(name)
    assert list(before.metadata) == list(after.metadata)
    for name in before.metadata:
        assert (
            before.metadata[name].astype(str).tolist()
            == after.metadata[name].astype(before.metadata[name].dtype).astype(str).tolist()
        )
    assert (before.class_names, before.task, before.origin) == (after.class_names, after.task, after.origin)
    if kind != "swapped":
        assert after.fingerprint == before.fingerprint


@pytest.mark.parametrize("kind", ["texts", "images"])
def test_media_come_back(kind: str, saved: Any) -> None:
    audit, folder = saved(kind)
    before, after = audit.evaluation.media, errata.load(folder).evaluation.media
    assert (len(after), after.kind) == (N, before.kind)
    for media, i in ((after, 7), (after.rows(np.array([3, 7])), 1)):
        assert media.text(i) == before.text(7)
        assert media.thumbnail(i, 256) == before.thumbnail(7, 256)
    assert (before.text(7) is None) == (kind == "images")


@pytest.mark.parametrize("kind", ["plain", "texts", "images", "multilabel"])
def test_saved_again_it_has_the_same_bytes(kind: str, saved: Any, tmp_path: Path) -> None:
    _, folder = saved(kind)
    again = files(store.save(errata.load(folder), tmp_path / "again"))
    first = {name: data for name, data in files(folder).items() if name != "report.html"}
    assert [name for name in first if first[name] != again.get(name)] == []
    assert set(again) == set(first)


def test_without_a_reader_a_reference_says_what_it_lacks(saved: Any, tmp_path: Path) -> None:
    audit, _ = saved("plain")
    reference = {"path": str(tmp_path / "x.npz"), "metadata": [], "foreign": []}
    folder = store.save(audit, tmp_path / "audit", reference=reference)
    with pytest.raises(InputError, match=r"refers to .*x\.npz.*does not exist"):
        errata.load(folder)
    (tmp_path / "x.npz").touch()
    with pytest.raises(InputError, match="refers to"):
        store.load(folder, restore, restore_explanation)


# --- whole or not at all -------------------------------------------------------------------------------------

WHOLE = ["audit.json", "checksums.json", "evaluation", "memberships.parquet", "report.html", "slicers"]
DEATHS = {
    "before the first file": ("errata.store.audits.json", "dumps", 0),
    "at the memberships": ("errata.store.evaluations", "write_rows", 0),
    "at the rows": ("errata.store.evaluations", "write_rows", 1),
    "at the first slicer": ("errata.core.tensor_files", "write", 0),
    "at the representations": ("errata.core.tensor_files", "write", 1),
    "at the report": ("pathlib.Path", "write_text", 3),
    "at the checksums": ("errata.store.checksums", "as_text", 0),
    "before it is on disk": ("os", "fsync", 2),
    "before the rename": ("os", "rename", 0),
}

# Imports once, then forks a child for every death. Prints what lay in the folder after each.
KILLER = """
import importlib, json, os, pathlib, signal, sys, time
import errata
from errata import store
from errata.core import tensor_files as arrays
from errata.store import atomic, evaluations

atomic.ABANDONED = -1  # what one death left, the next writer cleans at once
source, target = sys.argv[1], pathlib.Path(sys.argv[2])
deaths, shares = json.loads(sys.argv[3]), json.loads(sys.argv[4])
audit = errata.load(source)

def owner(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(owner(module), attribute)

def die_at(place, name, calls):
    thing, left = owner(place), [calls]
    real = getattr(thing, name)
    def fatal(*args, **kwargs):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return real(*args, **kwargs)
    setattr(thing, name, fatal)

def slowly():
    for thing, name in ((evaluations, "write_rows"), (arrays, "write"), (atomic, "_flush")):
        def slow(*args, real=getattr(thing, name), **kwargs):
            time.sleep(0.04)
            return real(*args, **kwargs)
        setattr(thing, name, slow)

def save_in_a_child(prepare, wait=None):
    child = os.fork()
    if child == 0:
        prepare()
        store.save(audit, target, report="x" * 10_000)
        os._exit(0)
    if wait is not None:
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def seen(code):
    lie = sorted(path.name for path in target.parent.iterdir()) if target.parent.exists() else []
    return {"code": code, "left": lie}

for death in deaths:
    print(json.dumps(seen(save_in_a_child(lambda: die_at(*death)))), flush=True)
if shares:
    start = time.time()
    assert save_in_a_child(slowly) == 0
    whole = time.time() - start
    os.rename(target, str(target) + "-whole")
    for share in shares:
        state = seen(save_in_a_child(slowly, share * whole))
        if target.exists():  # a busy machine may time the first one slow and let a later one finish
            state["files"] = sorted(path.name for path in target.iterdir())
            os.rename(target, f"{target}-whole-{share}")
        print(json.dumps(state), flush=True)
"""


def killed(source: Path, target: Path, deaths: list[Any], shares: list[float]) -> list[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(Path(errata.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", KILLER, str(source), str(target), json.dumps(deaths), json.dumps(shares)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_killed_at_any_call_it_leaves_no_folder(saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, folder = saved("plain")
    target = tmp_path / "parent" / "audit"
    after = killed(folder, target, list(DEATHS.values()), [])
    assert len(after) == len(DEATHS)
    for name, seen in zip(DEATHS, after, strict=True):
        assert seen["code"] == -9, name
        assert "audit" not in seen["left"], name
        assert len(seen["left"]) == 1, name  # what the one before left is gone, its own is there
        assert seen["left"][0].startswith(".audit.partial-")
    monkeypatch.setattr(atomic, "ABANDONED", -1)
    store.save(audit, target)
    assert [path.name for path in target.parent.iterdir()] == ["audit"]
    assert len(errata.load(target).slices) == len(audit.slices)


def test_killed_at_any_moment_it_leaves_no_folder(saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, folder = saved("plain")
    target = tmp_path / "parent" / "audit"
    rng = np.random.default_rng()
    shares = [*np.linspace(0.02, 0.85, 8), *rng.uniform(0, 0.85, 4)]
    after = killed(folder, target, [], shares)
    assert len(after) == 12
    for share, seen in zip(shares, after, strict=True):
        if "audit" in seen["left"]:  # then it is whole
            assert seen["files"] == WHOLE, share
        else:
            assert seen["code"] == -9, share
    in_the_middle = [seen for seen in after if any(".audit.partial-" in name for name in seen["left"])]
    assert len(in_the_middle) >= 6  # else nothing was tried
    monkeypatch.setattr(atomic, "ABANDONED", -1)
    store.save(audit, target)
    left = {path.name.partition("-whole")[0] for path in target.parent.iterdir()}
    assert left == {"audit"}
    assert len(errata.load(target).slices) == len(audit.slices)


ERRORS = [RuntimeError("broken"), OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
PLACES = [(arrays, "write"), (evaluations, "write_rows"), (atomic, "_flush"), (os, "rename")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("owner", "name"), PLACES, ids=lambda value: value if isinstance(value, str) else "")
def test_an_error_in_the_middle_leaves_nothing(
    owner: Any, name: str, error: BaseException, saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    audit, _ = saved("plain")
    expected = InputError if isinstance(error, OSError) else type(error)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(expected) as stop:
            store.save(audit, tmp_path / "new" / "parents" / "audit")
    if isinstance(error, OSError):
        assert "No space left on device" in str(stop.value)
    assert list(tmp_path.iterdir()) == []
    store.save(audit, tmp_path / "new" / "parents" / "audit")


def test_parents_that_hold_something_else_stay(saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, _ = saved("plain")  # made here when this test comes first, so before anything is broken

    def fail(*args: Any, **kwargs: Any) -> None:
        (tmp_path / "new" / "mine.txt").touch()
        raise RuntimeError

    monkeypatch.setattr(atomic, "_flush", fail)
    with pytest.raises(RuntimeError):
        store.save(audit, tmp_path / "new" / "audit")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine.txt"]


DAY = 24 * 3600


def _leftover(folder: Path, age: float, *, lock: bool = True) -> Path:
    """What a writer that was killed leaves."""
    folder.mkdir()
    (folder / "half.json").touch()
    if lock:
        (folder / atomic.LOCK).touch()
    for path in (*folder.iterdir(), folder):
        os.utime(path, (time.time() - age, time.time() - age))
    return folder


def test_what_others_write_or_wrote_stays(saved: Any, tmp_path: Path) -> None:
    """Only what is old and nobody holds goes, and only of this same name; a process number says nothing."""
    audit, _ = saved("plain")
    keep = [
        _leftover(tmp_path / ".audit.partial-fresh", 60),
        _leftover(tmp_path / f".audit.partial-{os.getpid()}", 60, lock=False),
        _leftover(tmp_path / ".other.partial-old", DAY),
        _leftover(tmp_path / ".audit.partial-held", DAY),
    ]
    _leftover(tmp_path / ".audit.partial-old", DAY)
    _leftover(tmp_path / f".audit.partial-{os.getppid()}", DAY, lock=False)
    with open(keep[-1] / atomic.LOCK, "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        store.save(audit, tmp_path / "audit")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*(path.name for path in keep), "audit"])


def test_a_name_with_brackets_is_no_pattern(saved: Any, tmp_path: Path) -> None:
    _leftover(tmp_path / ".a[b].partial-1", DAY)
    _leftover(tmp_path / ".ab.partial-1", DAY)
    store.save(saved("plain")[0], tmp_path / "a[b]")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a[b]", ".ab.partial-1"])


def _outcome(audit: Audit, folder: Path) -> str:
    try:
        store.save(audit, folder)
    except InputError as error:
        return str(error)
    return "written"


def test_of_writers_of_one_output_one_wins(saved: Any, tmp_path: Path) -> None:
    """In threads, which have one process number, as the first processes of containers have."""
    audit, first = saved("plain")
    for attempt in range(5):
        folder = tmp_path / str(attempt) / "audit"
        with ThreadPoolExecutor(4) as pool:
            outcomes = list(pool.map(lambda _, folder=folder: _outcome(audit, folder), range(4)))
        assert outcomes.count("written") == 1, outcomes
        assert all("exists already" in outcome for outcome in outcomes if outcome != "written")
        assert [path.name for path in folder.parent.iterdir()] == ["audit"]
        assert _contents(folder) == _contents(first)


def _contents(folder: Path) -> dict[str, bytes | None]:
    """All files by name; whether there is a report does not matter."""
    contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {**contents, "report.html": None}


@pytest.mark.parametrize("links", [True, False], ids=["links", "a file system without links"])
def test_what_appears_meanwhile_stays(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "x.parquet"

    def write(**options: bool) -> None:
        with store.atomic_file(path, **options) as partial:
            partial.write_text("mine")
            path.write_text("yours")

    with pytest.raises(InputError, match="exists already"):
        write()
    assert {left.name: left.read_text() for left in tmp_path.iterdir()} == {"x.parquet": "yours"}
    write(replace=True)
    assert {left.name: left.read_text() for left in tmp_path.iterdir()} == {"x.parquet": "mine"}
    with store.atomic_file(tmp_path / "y") as partial:
        partial.write_text("new")
    assert (tmp_path / "y").read_text() == "new"


def test_names_and_contents_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files before their folder has its name, and then the folders that hold a new name."""
    steps: list[str] = []
    real_sync = atomic._sync

    def sync(path: Path) -> None:
        steps.append(path.name)
        real_sync(path)

    def rename(source: Path, target: Path, real: Any = os.rename) -> None:
        steps.append("the rename")
        real(source, target)

    monkeypatch.setattr(atomic, "_sync", sync)
    monkeypatch.setattr(os, "rename", rename)
    with store.atomic_folder(tmp_path / "new" / "out") as partial:
        (partial / "deep").mkdir()
        (partial / "deep" / "file").write_text("x")
    before, after = steps[: steps.index("the rename")], steps[steps.index("the rename") + 1 :]
    assert sorted(before) == ["deep", "file", "out"]
    assert after == ["new", tmp_path.name]


def test_a_detour_creates_no_folder(tmp_path: Path) -> None:
    with store.atomic_file(store.check_output(tmp_path / "nope" / ".." / "x.json")) as partial:
        partial.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    with pytest.raises(InputError, match="exists already"):
        store.check_output(tmp_path / "nope" / "..")


def test_nothing_is_overwritten(saved: Any, tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir()
    with pytest.raises(InputError, match="exists already"):
        store.save(saved("plain")[0], tmp_path / "audit")
    assert list((tmp_path / "audit").iterdir()) == []


def test_a_file_is_whole_or_absent_too(tmp_path: Path) -> None:
    with contextlib.suppress(RuntimeError), store.atomic_file(tmp_path / "new" / "x.parquet") as partial:
        partial.write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with store.atomic_file(tmp_path / "x.parquet") as partial:
        partial.write_text("whole")
        assert not (tmp_path / "x.parquet").exists()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"x.parquet": "whole"}
