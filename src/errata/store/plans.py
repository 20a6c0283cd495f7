"""A Plan as one parquet table: `id` and `weight`, or `text`, `label` and `count`; its facts are in the metadata."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..core import InputError, Plan, Prompt
from ..core.json_text import parse_json
from ..core.plan import SCHEMA
from .atomic import atomic_file, check_parquet_output
from .evaluations import to_arrow

KEY = b"errata.plan"


def save_plan(plan: Plan, path: str | Path) -> Path:
    """Write a plan as a .parquet file that does not exist yet."""
    path = check_parquet_output(path)
    facts = {name: value for name, value in plan.to_json().items() if name != "prompts"}
    with atomic_file(path) as partial:
        pq.write_table(_table(plan).replace_schema_metadata({KEY: json.dumps(facts)}), partial)
    return path


def _table(plan: Plan) -> pa.Table:
    if plan.kind != "prompts":
        rows = {"id": to_arrow(plan.ids), "weight": plan.weights}
        if len(plan.labels):
            rows["label"] = plan.labels
        return pa.table(rows)
    columns = {
        "text": pa.array([prompt.text for prompt in plan.prompts], pa.string()),
        "label": pa.array([prompt.label for prompt in plan.prompts], pa.int64()),
        "count": pa.array([prompt.count for prompt in plan.prompts], pa.int64()),
    }
    return pa.table(columns)


def load_plan(path: str | Path) -> Plan:
    """Read a plan from its file; an InputError where it is none."""
    path = Path(path)
    try:
        table = pq.read_table(path)
        facts = parse_json((table.schema.metadata or {}).get(KEY, b"{}"))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"`{path}` cannot be read as a plan ({str(error).partition(chr(10))[0]})") from error
    if facts.get("schema") != SCHEMA:
        raise InputError(f"`{path}` is not a plan of this version; give a file that `errata plan` wrote")
    plan = Plan(facts["kind"], facts["why"], slices=tuple(facts["slices"]), facts=facts["facts"])
    if plan.kind == "prompts":
        return replace(plan, prompts=tuple(Prompt(**row) for row in table.to_pylist()))
    if not len(table):
        return plan
    columns = {"ids": np.array(table.column("id").to_pylist()), "weights": table.column("weight").to_numpy()}
    if "label" in table.column_names:
        columns["labels"] = table.column("label").to_numpy()
    return replace(plan, **columns)
