"""The samples that lm-evaluation-harness writes with `--log_samples`, `samples_TASK_DATE.jsonl`, as an Evaluation."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Evaluation, InputError
from .class_order import InputWarning
from .llm_samples import Sample, from_samples
from .names import Reading

QUESTIONS = ("question", "query", "input", "prompt", "text", "problem", "sentence", "goal", "ctx", "premise")
# What a row holds beside its metrics.
OUTPUTS = {"target", "arguments", "resps", "filtered_resps", "filter", "input", "metrics"}
KEYS = {*OUTPUTS, "doc_id", "doc", "doc_hash", "prompt_hash", "target_hash"}
ANSWERS = {"answer", "answers", "answerKey", "target", "label", "gold", "choices", "endings", "solution"}
LETTERS = "ABCDEFGHIJ"


def is_lm_eval(rows: Sequence[Any]) -> bool:
    """Whether rows of a .jsonl file are samples of the harness."""
    if not rows or not isinstance(rows[0], Mapping):
        return False
    return "doc_id" in rows[0] and ("filtered_resps" in rows[0] or "resps" in rows[0])


def from_lm_eval(files: Mapping[Path, Sequence[Mapping[str, Any]]], reading: Reading) -> Evaluation:
    """An Evaluation of the samples of one or more tasks.

    files: path -> its rows. The score is the first metric of a row that is a number from 0 to 1; where a task has
    several filters, the first one counts.
    """
    samples: list[Sample] = []
    for path, rows in files.items():
        task = task_of(path)
        rows = _first_filter(rows, path)
        metric = _metric(rows, path)
        samples += [_sample(row, task, metric, several=len(files) > 1) for row in rows]
    return from_samples(samples, reading)


def task_of(path: Path) -> str:
    """`mmlu_anatomy` from `samples_mmlu_anatomy_2024-05-01T12-00-00.123.jsonl`."""
    name = path.name.removesuffix(".jsonl").removeprefix("samples_")
    return re.sub(r"_\d{4}-\d{2}-\d{2}(T[\d.:-]+)?$", "", name)


def _first_filter(rows: Sequence[Mapping[str, Any]], path: Path) -> list[Mapping[str, Any]]:
    filters = list(dict.fromkeys(str(row.get("filter")) for row in rows))
    if len(filters) > 1:
        others = ", ".join(filters[1:])
        warnings.warn(
            f"`{path.name}` has several filters: `{filters[0]}` is read, {others} not", InputWarning, stacklevel=2
        )
    return [row for row in rows if str(row.get("filter")) == filters[0]]


def _metric(rows: Sequence[Mapping[str, Any]], path: Path) -> str:
    """The first metric whose values are numbers from 0 to 1."""
    named = [str(name) for name in rows[0].get("metrics", ())]
    if not named:  # releases before 0.4.5 do not list them
        named = [name for name in rows[0] if name not in KEYS]
    for name in named:
        values = [row.get(name) for row in rows]
        if all(isinstance(value, int | float) and 0 <= value <= 1 for value in values):
            return name
    raise InputError(
        f"`{path.name}` has no metric from 0 to 1 for all samples (it has {', '.join(named) or 'none'}); evaluate with "
        "one such as acc or exact_match"
    )


def _sample(row: Mapping[str, Any], task: str, metric: str, several: bool) -> Sample:
    doc = row.get("doc") or {}
    if not isinstance(doc, Mapping):
        doc = {"text": doc}
    identifier = str(row["doc_id"])
    if several:
        identifier = f"{task}/{identifier}"
    choice = _choice(row)
    answer = LETTERS[choice] if choice is not None else _answer(row)
    target = str(row.get("target", ""))
    if choice is not None and re.fullmatch(r"\d", target):
        target = LETTERS[int(target)]
    return Sample(
        id=identifier,
        score=float(row[metric]),
        prompt=_prompt(row, doc),
        answer=answer,
        target=target,
        multiple_choice=choice is not None and len(target) == 1,
        metadata={"task": task, **{name: value for name, value in doc.items() if name not in {*QUESTIONS, *ANSWERS}}},
    )


def _choice(row: Mapping[str, Any]) -> int | None:
    """The number of the choice with the largest likelihood; None where the sample is no multiple choice."""
    answers = row.get("filtered_resps") or ()
    if not 2 <= len(answers) <= 10 or not all(
        isinstance(answer, list | tuple) and len(answer) == 2 for answer in answers
    ):
        return None
    try:
        return int(np.argmax([float(answer[0]) for answer in answers]))
    except (TypeError, ValueError):
        return None


def _answer(row: Mapping[str, Any]) -> str:
    answer: Any = row.get("filtered_resps") or row.get("resps") or ""
    while isinstance(answer, list | tuple) and answer:
        answer = answer[0]
    return str(answer)


def _prompt(row: Mapping[str, Any], doc: Mapping[str, Any]) -> str:
    """The question of the document, without the examples that stand before it in the prompt."""
    question = next((doc[name] for name in QUESTIONS if isinstance(doc.get(name), str)), None)
    if question is not None:
        return str(question)
    arguments: Any = row.get("arguments") or ""
    while isinstance(arguments, Mapping | list | tuple) and arguments:
        arguments = next(iter(arguments.values())) if isinstance(arguments, Mapping) else arguments[0]
    return str(arguments)
