"""Every example runs as it stands and finds what it hides."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    if path.stem in ("pytorch", "defuse_mnist"):
        pytest.importorskip("torch")
    environment = {**os.environ, "PYTHONPATH": str(path.parents[1] / "src")}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    shares = [int(word.rstrip("%;")) for word in done.stdout.split() if word.rstrip(";").endswith("%")]
    assert shares
    assert shares[0] >= 80


def test_there_are_examples():
    assert {path.stem for path in EXAMPLES} == {"arrays", "defuse_mnist", "fix", "pytorch"}
