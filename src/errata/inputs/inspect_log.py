"""The logs of Inspect (`.json`, and `.eval`, which is a zip of them) as an Evaluation."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..core import Evaluation, InputError
from ..core.json_text import parse_json
from .files import damaged
from .llm_samples import Sample, from_samples
from .names import Reading

ZSTD = 93  # the number of that compression in a zip
LOCAL_HEADER = 30  # bytes before the name of a file in a zip
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer


def is_inspect_log(value: Any) -> bool:
    """Whether a .json file is a log of Inspect."""
    return isinstance(value, Mapping) and isinstance(value.get("eval"), Mapping)


def read_eval(path: Path, reading: Reading) -> Evaluation:
    """A log in Inspect's own format."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")]
            header = parse_json(read_member(path, archive, "header.json"))
            samples = [parse_json(read_member(path, archive, name)) for name in sorted(names)]
    except (zipfile.BadZipFile, pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise damaged(path, error) from error
    return from_inspect({**header, "samples": samples}, reading)


def read_member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    """One file of a zip, which may be compressed by zstd: `zipfile` reads that from Python 3.14 on, arrow always."""
    info = archive.getinfo(name)
    if info.compress_type != ZSTD:
        return archive.read(name)
    with path.open("rb") as file:
        file.seek(info.header_offset + LOCAL_HEADER - 4)
        lengths = struct.unpack("<HH", file.read(4))  # of its name and its further fields, which stand in between
        file.seek(sum(lengths), 1)
        packed = file.read(info.compress_size)
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        return bytes(stream.read())


def from_inspect(log: Mapping[str, Any], reading: Reading) -> Evaluation:
    """An Evaluation of the samples of a log; the first scorer counts. Epochs of one sample are one group."""
    if not log.get("samples"):
        raise InputError(f"{reading.where} has no samples, only results; log them (`--log-samples`) and evaluate again")
    task = str(log["eval"].get("task", ""))
    return from_samples([sample for row in log["samples"] for sample in _samples(row, task)], reading)


def _samples(row: Mapping[str, Any], task: str) -> Iterable[Sample]:
    """One sample, or none where it has no score: an error of the run is no error of the model."""
    scores = row.get("scores") or {}
    if not scores:
        return
    name, score = next(iter(scores.items()))
    value = _value(score.get("value"), name, row)
    target = row.get("target", "")
    if isinstance(target, list):
        target = ", ".join(map(str, target))
    identifier = str(row["id"])
    epoch = row.get("epoch", 1)
    yield Sample(
        id=f"{identifier}, epoch {epoch}",
        score=value,
        prompt=_text(row.get("input", "")),
        answer=str(score.get("answer") or ""),
        target=str(target),
        multiple_choice=bool(row.get("choices")) and len(str(target)) == 1,
        group=identifier,
        metadata={"task": task, **(row.get("metadata") or {})},
    )


def _value(value: Any, scorer: str, row: Mapping[str, Any]) -> float:
    if isinstance(value, Mapping) and value:
        value = next(iter(value.values()))
    if isinstance(value, str) and value in GRADES:
        return GRADES[value]
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the scorer `{scorer}` gave {value!r} for sample {row['id']}; scores are C, P, I, N or numbers from 0 to 1"
        ) from error


def _text(prompt: Any) -> str:
    """A prompt, or the last message of the user in a list of them."""
    if isinstance(prompt, str):
        return prompt
    messages = [message for message in prompt if isinstance(message, Mapping)]
    asked = [message for message in messages if message.get("role") == "user"] or messages
    if not asked:
        return ""
    content = asked[-1].get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
