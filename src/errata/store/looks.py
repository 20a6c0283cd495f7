"""Earlier audits of the same rows, named by the user or found beside an output."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..core import InputError
from ..core.looks import EarlierLook
from .audits import MOST_BYTES, read_facts

MOST_BYTES_BESIDE = 1 << 26  # of an audit.json that nobody named: a larger one is not read


def earlier_looks(fingerprint: str, folders: Iterable[Path], beside: Path) -> list[EarlierLook]:
    """Looks that saved audits took at the same rows and outcomes.

    Parameters
    ----------
    fingerprint : str
        Of the evaluation.
    folders : iterable of path
        Audits that the user names: an InputError where one cannot be read.
    beside : path
        The new audit's folder: what lies beside it is looked at too. Whatever that is, it never raises.
    """
    looks = {os.path.realpath(folder): _look(Path(folder), fingerprint) for folder in folders}
    parent = beside.absolute().parent
    with suppress(OSError):  # a folder that may not be listed
        for path in sorted(parent.iterdir()):
            with suppress(InputError):  # what is no readable audit was no look at the rows
                looks.setdefault(os.path.realpath(path), _look(path, fingerprint, MOST_BYTES_BESIDE))
    return [look for look in looks.values() if look is not None]


def _look(folder: Path, fingerprint: str, most_bytes: int = MOST_BYTES) -> EarlierLook | None:
    """The look of a saved audit; None where it is of other rows or outcomes."""
    facts = read_facts(folder, most_bytes)
    settings = facts.get("settings")
    if not isinstance(settings, dict):
        raise _damaged(folder, "settings", settings)
    # An audit of a metric may be of some of the rows, and says which evaluation they were of.
    if fingerprint not in (facts.get("fingerprint"), settings.get("rows_of")):
        return None
    # Audits of versions up to 0.3 do not say which look they were: each counts.
    look = settings.get("look", str(folder))
    if not isinstance(look, str):
        raise _damaged(folder, "look", look)
    run = settings.get("run", 1)
    if not isinstance(run, int) or isinstance(run, bool) or run < 1:
        raise _damaged(folder, "run", run)
    return EarlierLook(look, run)


def _damaged(folder: Path, key: str, value: Any) -> InputError:
    return InputError(f"`{folder / 'audit.json'}` is damaged (`{key}` is {value!r:.40}); run the audit again")
