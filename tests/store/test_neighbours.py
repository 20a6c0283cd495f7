"""What lies beside an output is somebody else's: looking there for earlier audits never stops an audit."""

from __future__ import annotations

import json
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from errata import store
from errata.core import InputError
from errata.core.audit import SCHEMA

NOBODY = 65534
PRINT = "of these rows"
DEEP = 100_000


def _audit(folder: Path, **facts: object) -> None:
    folder.mkdir()
    (folder / "audit.json").write_text(json.dumps({"schema": SCHEMA, "fingerprint": PRINT, **facts}))


def _text(folder: Path, text: str | bytes) -> None:
    folder.mkdir()
    (folder / "audit.json").write_bytes(text.encode() if isinstance(text, str) else text)


def _link(folder: Path) -> None:
    folder.symlink_to(folder.name)


def _pipe(folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / "audit.json")


def _huge(folder: Path) -> None:
    """More than any machine has memory for, and nothing on disk."""
    folder.mkdir()
    with (folder / "audit.json").open("wb") as file:
        file.truncate(1 << 40)


NEIGHBOURS: dict[str, Callable[[Path], None]] = {
    "nested lists": lambda folder: _text(folder, "[" * DEEP),
    "nested objects": lambda folder: _text(folder, '{"a":' * DEEP),
    "a link to itself": _link,
    "a pipe": _pipe,
    "a terabyte": _huge,
    "no text": lambda folder: _text(folder, b"\xff\xfe\x00"),
    "a long number": lambda folder: _text(folder, "1" * 10_000),
    "no settings": lambda folder: _audit(folder),
    "settings that are a list": lambda folder: _audit(folder, settings=[]),
    "a look that is a list": lambda folder: _audit(folder, settings={"look": [1], "run": 1}),
    "a run that is text": lambda folder: _audit(folder, settings={"look": "a", "run": "one"}),
    "a run without end": lambda folder: _audit(folder, settings={"look": "a", "run": float("inf")}),
    "run 0": lambda folder: _audit(folder, settings={"look": "a", "run": 0}),
    "a true run": lambda folder: _audit(folder, settings={"look": "a", "run": True}),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_damaged_neighbour_is_no_look(name: str, tmp_path: Path) -> None:
    _audit(tmp_path / "first", settings={"look": "a", "run": 1})
    NEIGHBOURS[name](tmp_path / "neighbour")
    looks = store.earlier_looks(PRINT, [], tmp_path / "new")
    assert [(look.look, look.run) for look in looks] == [("a", 1)]


@pytest.mark.parametrize("name", [name for name in NEIGHBOURS if name != "a long number"])
def test_one_that_is_named_is_refused(name: str, tmp_path: Path) -> None:
    NEIGHBOURS[name](tmp_path / "named")
    with pytest.raises(InputError, match="named"):
        store.earlier_looks(PRINT, [tmp_path / "named"], tmp_path / "new")


def test_a_neighbour_that_nobody_named_is_not_read_where_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errata.store.looks.MOST_BYTES_BESIDE", 1000)
    _audit(tmp_path / "large", settings={"look": "a", "run": 1}, silence="x" * 1000)
    assert store.earlier_looks(PRINT, [], tmp_path / "new") == []
    named = store.earlier_looks(PRINT, [tmp_path / "large"], tmp_path / "new")
    assert [known.look for known in named] == ["a"]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that others may read, and so may all above it: not those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_folders_of_other_users_are_no_look(shared: Path) -> None:
    """As in a shared temporary folder, where nobody may look into the folders of others."""
    tmp_path = shared
    _audit(tmp_path / "readable", settings={"look": "a", "run": 1})
    _audit(tmp_path / "secret", settings={"look": "b", "run": 2})
    _audit(tmp_path / "secret file", settings={"look": "c", "run": 3})
    (tmp_path / "secret" / "inner").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "secret" / "inner")
    (tmp_path / "secret").chmod(0o700)
    (tmp_path / "secret file" / "audit.json").chmod(0o600)

    def look() -> None:
        looks = store.earlier_looks(PRINT, [], tmp_path / "new")
        assert [known.look for known in looks] == ["a"]
        with pytest.raises(InputError, match="secret"):
            store.earlier_looks(PRINT, [tmp_path / "secret"], tmp_path / "new")

    assert _as_nobody(look) == 0


def _as_nobody(work: Callable[[], None]) -> int:
    """Do the work in a process of another user; return its exit code."""
    child = os.fork()
    if child == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
