"""Tables of many rows are written a group at a time, and read back the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import errata
from errata.inputs.media import Texts
from errata.store import evaluations


def make_audit() -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    labels = rng.integers(0, 2, 500)
    wrong = rng.random(500) < np.where(x[:, 0] > 1, 0.8, 0.1)
    rows = errata.Evaluation(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        representations={"x": x},
        metadata={"site": np.array(["a", "b"])[labels], "age": x[:, 1]},
        media=Texts([f"text {i}" for i in range(500)]),
    )
    return errata.audit(rows, methods=["gmm"])


def test_groups_of_rows_hold_what_one_table_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = make_audit()
    whole = errata.save(audit, tmp_path / "whole")
    monkeypatch.setattr(evaluations, "ROWS_A_GROUP", 64)
    parts = errata.save(audit, tmp_path / "parts")
    for name in ("memberships.parquet", "evaluation/rows.parquet"):
        assert pq.ParquetFile(parts / name).metadata.num_row_groups == 8
        assert pq.read_table(parts / name).equals(pq.read_table(whole / name))
