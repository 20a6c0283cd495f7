"""How the command ends whatever happens: one line, an exit code that means one thing, and a terminal left as it was."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.table import Table

import errata
from errata.core import InputError
from errata.report.printing import printable, safe_console
from support.command import run

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\r\b\u202eevil\ud800"
SRC = str(Path(errata.__file__).parents[1])


@pytest.mark.parametrize(
    "error",
    [RuntimeError("inner\nsecond line"), KeyError("x"), RecursionError(), AssertionError(), ZeroDivisionError("zero")],
    ids=lambda error: type(error).__name__,
)
def test_what_should_not_happen_is_70_and_one_line(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("errata.cli.audit.methods", fail)
    monkeypatch.delenv("ERRATA_TRACEBACK", raising=False)
    code, out, err = run("methods")
    assert (code, out, err.count("\n")) == (70, "", 1)
    assert err.startswith("errata: something failed that should not (" + type(error).__name__)
    assert "ERRATA_TRACEBACK=1" in err
    monkeypatch.setenv("ERRATA_TRACEBACK", "1")
    code, _, err = run("methods")
    assert code == 70
    assert "Traceback (most recent call last)" in err


def test_too_little_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MemoryError

    monkeypatch.setattr("errata.cli.audit.methods", fail)
    code, _, err = run("methods")
    assert code == 70
    assert "memory" in err


def test_an_error_stays_one_line_whatever_name_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise InputError(f"the column `a\nb{ESCAPES}` is bad")

    monkeypatch.setattr("errata.cli.audit.methods", fail)
    code, _, err = run("methods")
    assert (code, err.count("\n")) == (2, 1)
    assert r"a\nb\x1b]0;title\x07\x1b[2J\x9b31m\x0d\x08\u202eevil\ud800" in err


def test_no_name_commands_the_terminal() -> None:
    table = Table("name", title=ESCAPES)
    table.add_row(f"[bold]{ESCAPES}")
    for terminal in (False, True):
        file = io.StringIO()
        safe_console(file=file, force_terminal=terminal, width=200, highlight=False).print(table, ESCAPES)
        text = file.getvalue()
        assert text.count(r"\x1b]0;title") == 3
        for sign in ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\u202e", "\ud800"):
            assert sign not in text
        assert ("\x1b[1m" in text) == terminal  # its own colours stay


def test_letters_of_all_scripts_stay() -> None:
    text = "naïve\u00a0日本語 نمی\u200cخواهم 👩\u200d🔬\tx\n"
    assert printable(text) == text


def test_names_of_a_file_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """The names of classes and columns, through the whole command."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    labels = rng.integers(0, 2, 400)
    wrong = (X[:, 0] > 0.8) | (rng.random(400) < 0.05)
    names = [f"cat{ESCAPES[:-1]}", "dog"]
    metadata = np.where(X[:, 0] > 0.8, f"site{ESCAPES[:-1]}", "other")
    arrays = {"labels": labels, "predictions": np.where(wrong, 1 - labels, labels), "class_names": names}
    np.savez(tmp_path / "x.npz", **arrays, **{"metadata:place\x1b[5m": metadata})
    code, out, err = run("audit", "x.npz", "-o", "out", "--no-self-test", folder=tmp_path)
    assert (code, err) == (0, "")
    assert r"\x1b[" in out
    for sign in ("\x1b", "\x07", "\x9b", "\u202e"):
        assert sign not in out


def test_a_reader_that_has_seen_enough_is_no_failed_gate(tmp_path: Path) -> None:
    """As `errata methods | head -0`."""
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONPATH": SRC}
    words = [sys.executable, "-m", "errata", "methods"]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, env=environment, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


GROUPS = ("slicers", "explanations", "pages", "parts", "commands", "plans", "inputs")
BROKEN = {
    "raises.py": "raise RuntimeError('at home only')\n",
    "leaves.py": "import sys\nsys.exit(0)\n",
    "number.py": "THING = 3\n",
}


def test_a_broken_extension_breaks_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    lines = [
        f"[errata.{group}]\na = raises:THING\nb = leaves:THING\nc = number:THING\nd = gone:THING\n" for group in GROUPS
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", losses=rng.random(100), embedding=rng.normal(size=(100, 3)))
    code, _, err = run("audit", "x.npz", "-o", "out", "--no-self-test", folder=tmp_path)
    assert code == 0
    assert (tmp_path / "out" / "report.html").exists()
    warned = err.splitlines()
    assert all(line.startswith("Warning: the entry point `errata.") for line in warned)
    assert len(set(warned)) == len(warned)
    assert "`errata.slicers: a = raises:THING` cannot be imported (RuntimeError: at home only)" in err
    assert "`errata.explanations: b = leaves:THING` cannot be imported (SystemExit: 0)" in err
    assert "errata.commands" not in err  # a command of ours waits for nobody else's
    assert "`errata.pages: c = number:THING` has no `name`" in err
    assert "errata.inputs: d = gone:THING" in err
    code, out, err = run("--help")
    assert code == 0
    assert "audit" in out
    assert "`errata.commands: b = leaves:THING` cannot be imported (SystemExit: 0)" in err
