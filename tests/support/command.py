"""The command `errata` in this process: another one would import the package for seconds."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from errata.cli import main


class Done(NamedTuple):
    code: Any
    out: str
    err: str


def run(*words: object, folder: Path | None = None) -> Done:
    """Run `errata WORDS`, in `folder` where it is given; return its exit code, stdout and stderr."""
    out = io.StringIO()
    err = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", ["errata", *map(str, words)]))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        if folder is not None:
            stack.enter_context(contextlib.chdir(folder))
        stop = stack.enter_context(pytest.raises(SystemExit))
        main()
    return Done(stop.value.code, out.getvalue(), err.getvalue())
