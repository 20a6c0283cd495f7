"""What all files share: the checks before one is read, and the error for one that is broken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from ..core import InputError
from ..core.paths import check_encodable

UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)  # what arrow raises of damaged bytes, names among them


def check_file(path: Path, suffixes: Sequence[str]) -> None:
    """Raise an InputError unless `path` is a file with one of the suffixes that is not empty."""
    check_encodable(path)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # raised below, after the suffix
    except OSError as error:
        raise InputError(f"`{path}` cannot be read ({error.strerror}); check the path") from error
    if path.is_dir():
        hint = ""
        if any(path.glob("*.txt")):
            hint = "; boxes of a detector are read by errata.inputs.read_detections"
        raise InputError(f"`{path}` is a folder; give a file that ends in {', '.join(suffixes)}{hint}")
    if path.suffix.lower() not in suffixes:
        got = f"`{path.suffix}`" if path.suffix else "no suffix"
        raise InputError(f"`{path}` must end in {', '.join(suffixes)}; got {got}; save it in one of these formats")
    if not path.exists():
        raise InputError(f"the file `{path}` does not exist; check the path")
    if path.stat().st_size == 0:
        raise InputError(f"`{path}` is empty; write it again")


def damaged(path: Path, error: Exception) -> InputError:
    """The error for a file that its reader cannot make sense of."""
    reason = str(error).partition("\n")[0] or type(error).__name__
    return InputError(f"`{path}` is damaged or not what its name says ({reason}); write it again")
