"""One more input format is one object in the registry: `read`, `collect`, `audit` and the command follow."""

import doctest
import json
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import errata
from errata import cli
from errata.core import InputError
from errata.inputs import FORMATS, FileFormat, ObjectFormat, collect, read, registry
from errata.inputs.names import build, check_metadata

N = 600


def toy_arrays(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 3))
    corner = np.arange(N) % 10 == 0
    X[corner] = 0.3 * X[corner] + 3
    labels = rng.integers(0, 2, N)
    wrong = rng.random(N) < np.where(corner, 0.8, 0.05)
    return {"embedding": X, "labels": labels, "predictions": np.where(wrong, 1 - labels, labels), "site": labels % 2}


def read_lines(path, reading):
    """One JSON object a row."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    check_metadata(list(rows[0]), reading)
    return build({name: np.array([row[name] for row in rows]) for name in rows[0]}, reading)


def write_lines(path):
    arrays = toy_arrays()
    lines = [json.dumps({name: array[i].tolist() for name, array in arrays.items()}) for i in range(N)]
    path.write_text("\n".join(lines))
    return path


@dataclass
class Toy:
    """A model of another library: it knows its rows by number."""

    threshold: float


def from_toy(toy, rows, *, shift=0.0):
    """The toy's rows up to a number."""
    arrays = toy_arrays()
    return errata.Evaluation(
        labels=arrays["labels"][:rows],
        predictions=arrays["predictions"][:rows],
        representations={"toy": arrays["embedding"][:rows] + shift},
    )


LINES = FileFormat("lines", (".jsonl", ".ndjson"), read_lines)
TOY = ObjectFormat(
    "toy",
    "a toy with its number of rows",
    accepts=lambda source: isinstance(source, Toy),
    arguments=lambda rows: (rows,),
    collect=from_toy,
)


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    """Two formats of a package that is installed beside Errata."""
    entries = [SimpleNamespace(name=toy.name, load=lambda toy=toy: toy) for toy in (LINES, TOY)]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries if group == "errata.inputs" else [])


def test_a_file_format_from_outside_is_read_and_audited(tmp_path):
    path = write_lines(tmp_path / "rows.jsonl")
    evaluation = collect(path, metadata="site")
    assert len(evaluation) == N
    assert evaluation.metadata["site"].tolist() == toy_arrays()["site"].tolist()
    assert len(errata.audit(evaluation, methods=["gmm"]).confirmed) > 0
    with pytest.raises(InputError, match=r"metadata column in `rows.jsonl`: `sit`; did you mean `site`"):
        read(path, metadata=["sit"])


def test_the_command_takes_it_too(tmp_path, monkeypatch):
    path = write_lines(tmp_path / "rows.ndjson")
    out = tmp_path / "out"
    words = ["audit", str(path), "-o", str(out), "--method", "gmm", "--no-map", "--no-self-test"]
    monkeypatch.setattr(sys, "argv", ["errata", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    assert json.loads((tmp_path / "out" / "audit.json").read_text())["overall"]["n"] == N


def test_an_adapter_from_outside_is_collected_and_audited():
    evaluation = collect(Toy(1.0), N, shift=2.0)
    np.testing.assert_array_equal(evaluation.representations["toy"], toy_arrays()["embedding"] + 2)
    assert len(errata.audit(evaluation, methods=["gmm"]).confirmed) > 0
    with pytest.raises(InputError, match="option of from_toy `shfit`; did you mean `shift`"):
        collect(Toy(1.0), N, shfit=2.0)


def test_errors_name_every_format(tmp_path):
    (tmp_path / "rows.txt").write_text("x")
    suffixes = ".jsonl, .ndjson, .npz, .safetensors, .parquet, .csv, .json, .eval"
    with pytest.raises(InputError, match=f"must end in {suffixes}; got `.txt`"):
        read(tmp_path / "rows.txt")
    with pytest.raises(InputError) as caught:
        collect({"losses": [1.0]})
    assert str(caught.value) == (
        f"collect takes a path ({suffixes}), a toy with its number of rows, a pandas, polars or pyarrow table, a "
        "`datasets.Dataset` or a list of dicts, an ONNX Runtime session with its rows, a Hugging Face pipeline with "
        "its rows, a LightGBM booster with its rows, an XGBoost booster with its rows, a fitted scikit-learn estimator "
        "with (X, y), a PyTorch model with a loader, a model with `predict` and its rows, or a function that predicts "
        "a batch, with its rows; got dict"
    )


def test_outside_formats_are_asked_first_and_ours_keep_their_names(monkeypatch):
    @dataclass
    class Predicts(Toy):
        def predict(self, X):
            raise AssertionError("taken for a scikit-learn estimator")

    assert len(collect(Predicts(1.0), 7)) == 7
    mine = FileFormat("npz", (".npz",), read_lines)
    entries = [SimpleNamespace(name="npz", load=lambda: mine)]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    assert registry.registry()["npz"] is FORMATS["npz"]


def test_every_format_has_the_name_it_is_registered_under():
    files = ["npz", "safetensors", "parquet", "csv", "json", "jsonl", "inspect"]
    models = ["onnx", "pipeline", "lightgbm", "xgboost", "sklearn", "torch", "predict", "function"]
    assert list(FORMATS) == [*files, "table", *models]
    assert all(format_.name == name for name, format_ in FORMATS.items())
    suffixes = [suffix for format_ in FORMATS.values() for suffix in getattr(format_, "suffixes", ())]
    assert len(suffixes) == len(set(suffixes))


def test_the_example_of_collect_runs():
    assert doctest.testmod(registry).failed == 0
    assert doctest.testmod(registry).attempted > 0
