"""`.json`, `.jsonl` and `.eval` files as an Evaluation: rows of any table, or a log whose form is known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core import Evaluation, InputError
from ..core.json_text import parse_json
from .files import damaged
from .formats import FileFormat
from .inspect_log import from_inspect, is_inspect_log, read_eval
from .lm_eval import from_lm_eval, is_lm_eval, task_of
from .names import Reading
from .tables import from_arrow, is_records, to_arrow


def read_json(path: Path, reading: Reading) -> Evaluation:
    """A log of Inspect, or a list with one object a row."""
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise damaged(path, error) from error
    if is_inspect_log(value):
        return from_inspect(value, reading)
    if is_records(value) and {"bbox", "score"} <= set(value[0]):
        raise InputError(
            f"`{path.name}` holds boxes that were detected, not what is there; call "
            f"errata.inputs.read_detections({path.name!r}, LABELS), LABELS a folder of .txt files or a COCO .json"
        )
    if not is_records(value):
        raise InputError(
            f"`{path.name}` is neither a log of Inspect nor a list with one object a row; got a {type(value).__name__}"
        )
    return from_arrow(to_arrow(value), reading)


def read_lines(path: Path, reading: Reading) -> Evaluation:
    """Samples of lm-evaluation-harness, or one object a row."""
    rows = load_lines(path)
    if is_lm_eval(rows):
        return from_lm_eval({path: rows}, reading)
    return from_arrow(to_arrow(rows), reading)


def load_lines(path: Path) -> list[Mapping[str, Any]]:
    """The objects of a .jsonl file."""
    rows = []
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = parse_json(line.decode("utf-8"))
            except ValueError as error:
                raise InputError(f"line {number} of `{path}` is no JSON ({error}); write it again") from error
            if not isinstance(row, Mapping):
                raise InputError(f"line {number} of `{path}` must be an object, one a row; got {type(row).__name__}")
            rows.append(row)
    if not rows:
        raise InputError(f"`{path}` has no rows; write it again")
    return rows


def samples_in(folder: Path) -> list[Path]:
    """The samples of the newest run of each task in a folder that lm-evaluation-harness wrote; none of all else."""
    if not os.path.isdir(folder):  # which a name that is too long is not, where pathlib would raise
        return []
    newest = {task_of(path): path for path in sorted(folder.rglob("samples_*.jsonl"), key=lambda path: path.name)}
    return sorted(newest.values())


def read_samples(paths: Sequence[Path], reading: Reading) -> Evaluation:
    """All tasks of a run as one Evaluation, with `task` as metadata."""
    return from_lm_eval({path: load_lines(path) for path in paths}, reading)


JSON = FileFormat("json", (".json",), read_json)
LINES = FileFormat("jsonl", (".jsonl",), read_lines)
EVAL = FileFormat("inspect", (".eval",), read_eval)
