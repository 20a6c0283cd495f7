"""The base install: arrays and files are audited without torch, and nobody imports it who does not need it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import errata

SRC = str(Path(errata.__file__).parents[1])

# Comes before the program: what is hidden is not installed, as far as this process can tell.
HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])

sys.meta_path.insert(0, Hidden())
"""
OPTIONAL = (
    "torch", "torchvision", "polars", "transformers", "diffusers", "open_clip", "timm", "ray", "starlette", "fastapi",
    "sqlalchemy", "psycopg", "uvicorn", "matplotlib",
)  # fmt: skip


def python(program: str, folder: Path, hidden: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": SRC, "OMP_NUM_THREADS": "1"}
    code = f"HIDDEN = {hidden!r}\n{HIDE}\n{program}"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    positive = np.where(X[:, 0] > 1, 1 - labels, labels) * 0.8 + 0.1
    np.savez(tmp_path / "x.npz", embedding=X, labels=labels, probs=np.stack([1 - positive, positive], axis=1))
    return tmp_path


def test_the_hook_hides(tmp_path: Path) -> None:
    """Else all of this would pass with torch in place."""
    for name in ("torch", "polars"):
        done = python(f"import {name}", tmp_path, OPTIONAL)
        assert done.returncode == 1
        assert "ModuleNotFoundError" in done.stderr


COMMAND = """
import errata.cli
for words in (["audit", "x.npz", "-o", "audit", "--method", "spotlight,gmm,confusion,high-loss",
               "--no-self-test"],
              ["apply", "audit", "x.npz", "-o", "o.parquet"], ["methods"]):
    sys.argv = ["errata", *words]
    try:
        errata.cli.main()
    except SystemExit as stop:
        assert stop.code == 0, stop.code
"""


def test_audit_and_apply_without_any_extra(folder: Path) -> None:
    done = python(COMMAND, folder, OPTIONAL)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (folder / "audit" / "report.html").is_file()
    assert (folder / "o.parquet").is_file()


DEMO = """
import errata.cli
codes = []
for words in (["demo", "-o", "scenes"], ["demo", "--example", "digits", "-o", "digits"]):
    sys.argv = ["errata", *words]
    try:
        errata.cli.main()
    except SystemExit as stop:
        codes.append(stop.code)
assert codes == [2, 0], codes
"""


def test_the_demo_without_torch_names_both_cures(tmp_path: Path) -> None:
    done = python(DEMO, tmp_path, OPTIONAL)
    assert done.returncode == 0, done.stderr
    (sentence,) = done.stderr.splitlines()
    assert "needs the package `torch`" in sentence
    assert "pip install 'errata[torch]'" in sentence
    assert "`--example digits`" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["digits"]


EXAMS = """
import errata.cli
codes = []
for words in (["spotcheck"], ["settings", "cifar10"], ["settings", "scenes", "--model", "trained", "--rows", "100"],
              ["settings", "scenes", "--rows", "2000", "--n", "900", "--method", "confusion", "-o", "runs"]):
    sys.argv = ["errata", "bench", *words]
    try:
        errata.cli.main()
    except SystemExit as stop:
        codes.append(stop.code)
assert codes == [2, 2, 2, 0], codes
"""


def test_exams_that_train_name_what_they_lack_and_the_others_run(tmp_path: Path) -> None:
    done = python(EXAMS, tmp_path, OPTIONAL)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 3
    assert all("pip install 'errata[torch]'" in line for line in done.stderr.splitlines())
    assert "| confusion:recommended |" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


MISSING = """
import errata
from errata.inputs import from_torch
from errata.core import MissingExtra

class Model:
    def forward(self, x):
        return x
    def parameters(self):
        return []

try:
    from_torch(Model(), [])
except MissingExtra as error:
    assert isinstance(error, errata.ErrataError)
    assert isinstance(error, ImportError)
    sys.stdout.write(f"{error}\\n")
try:
    errata.collect(Model(), [])
except errata.ErrataError as error:
    sys.stdout.write(f"{error}\\n")
"""


def test_a_model_without_torch_names_the_cure(tmp_path: Path) -> None:
    done = python(MISSING, tmp_path, OPTIONAL)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert "`torch`" in first
    assert "pip install 'errata[torch]'" in first
    assert "PyTorch model" in second  # nobody can hold a module where there is no torch: said among what is taken


DRAWING = """
from errata.core import MissingExtra
from errata.draw import load_pipeline, walk
assert walk([1.0, 0.0], [0.0, 1.0], (0.5,))[0, 1] < -0.7
open("model_index.json", "w").write('{"_class_name": "KandinskyV22Pipeline"}')
try:
    load_pipeline(".")
except MissingExtra as error:
    sys.stdout.write(f"{error}\\n")
"""


def test_a_walk_needs_no_extra_and_a_pipeline_names_it(tmp_path: Path) -> None:
    done = python(DRAWING, tmp_path, OPTIONAL)
    assert done.returncode == 0, done.stderr
    assert "`torch`" in done.stdout
    assert "pip install 'errata[diffusion]'" in done.stdout


def test_torch_is_not_imported_where_it_is_not_needed(folder: Path) -> None:
    """Importing torch takes seconds: the command must not pay for what it does not use."""
    count = "\nloaded = sorted({m.partition('.')[0] for m in sys.modules} & set(" + repr(OPTIONAL) + "))\n"
    check = f"{count}assert loaded == [], loaded\n"
    done = python(f"import errata, errata.draw{check}{COMMAND}{check}", folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "audit").is_dir()


PLOTTING = """
import errata
data = errata.collect("x.npz")
audit = errata.audit(data, methods=["gmm"])
audit.to_frame()
audit._repr_html_()
try:
    audit.plot()
except errata.ErrataError as error:
    sys.stdout.write(f"{error}\\n")
"""


def test_a_plot_without_matplotlib_names_the_cure(folder: Path) -> None:
    done = python(PLOTTING, folder, OPTIONAL)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    assert "`matplotlib.pyplot`" in done.stdout
    assert "pip install 'errata[plot]'" in done.stdout
