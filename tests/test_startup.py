"""What is imported when: the package and its help wait for no library, and a command for none that it does not use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import errata
from errata.cli import COMMANDS, load_command
from errata.core.lazy import attach

SRC = Path(errata.__file__).parents[1]
NUMBERS = {"numpy", "scipy", "pyarrow"}  # what reads and counts rows
# pandas is not among these: pyarrow imports it, where it is installed, to turn a column into an array.
OTHERS = {
    "torch", "sklearn", "scipy.stats", "jinja2", "matplotlib", "plotly", "polars", "PIL", "narwhals", "transformers",
    "fastapi", "uvicorn", "sqlalchemy",
}  # fmt: skip
ALL = NUMBERS | OTHERS | {"pandas", "rich", "scipy.special"}

COMMAND = """
import errata.cli
import errata.cli.serve
errata.cli.serve._run = lambda *arguments, **options: None
sys.argv = ["errata", *{words!r}]
try:
    errata.cli.main()
except SystemExit as stop:
    assert stop.code == 0, stop.code
"""
HELP = COMMAND.replace("import errata.cli.serve\nerrata.cli.serve._run = lambda *arguments, **options: None\n", "")


def loaded(program: str, folder: Path, environment: dict[str, str] | None = None) -> set[str]:
    """The libraries that a program has imported when it ends."""
    code = f"import sys\n{program}\nopen('modules', 'w').write('\\n'.join(sys.modules))\n"
    run(code, folder, environment)
    return set((folder / "modules").read_text().split()) & ALL


def run(code: str, folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_imports_no_library(tmp_path: Path) -> None:
    assert loaded("import errata", tmp_path) == set()


def test_the_watch_sees_what_is_imported(tmp_path: Path) -> None:
    """Else all of this would pass with everything imported."""
    assert loaded("import errata; errata.Evaluation", tmp_path) == {"numpy"}
    assert {"scipy.stats", "sklearn"} <= loaded("import errata, scipy.stats, sklearn", tmp_path)


@pytest.mark.parametrize("words", ["--help", "--version", "apply --help", "audit --help", "by --help"])
def test_help_imports_no_library(words: str, tmp_path: Path) -> None:
    assert loaded(HELP.format(words=words.split()), tmp_path) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_waits_for_numbers_at_most(name: str, tmp_path: Path) -> None:
    assert loaded(HELP.format(words=[name, "--help"]), tmp_path) <= NUMBERS | {"scipy.special"}


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows, other rows, and an audit of the first by methods that compare numbers only."""
    folder = tmp_path_factory.mktemp("audited")
    rng = np.random.default_rng(0)
    for name in ("rows", "new"):
        X = rng.normal(size=(600, 4))
        site = rng.choice(["a", "b", "c"], 600)
        labels = rng.integers(0, 2, 600)
        bad = (rng.random(600) < 0.1) | ((site == "b") & (rng.random(600) < 0.7))
        positive = np.where(bad, 1 - labels, labels) * 0.8 + 0.1
        probs = np.stack([1 - positive, positive], axis=1)
        np.savez(folder / f"{name}.npz", embedding=X, labels=labels, probs=probs, **{"metadata:site": site})
    words = ["audit", "rows.npz", "-o", "audit", "--method", "rules,spotlight", "--no-self-test"]
    run("import sys\n" + COMMAND.format(words=words), folder)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["methods"],
        ["by", "new.npz", "--column", "site"],
        ["apply", "audit", "new.npz", "-o", "members.parquet"],
        ["plan", "weights", "audit", "new.npz", "-o", "plan.parquet"],
    ],
)
def test_a_command_that_counts_rows_imports_nothing_else(words: list[str], audited: Path) -> None:
    assert loaded(COMMAND.format(words=words), audited) & OTHERS == set()


def test_what_tests_or_keeps_records_imports_that(audited: Path) -> None:
    recheck = ["recheck", "audit", "new.npz", "new.npz"]  # the power of its test is binomial
    assert loaded(COMMAND.format(words=recheck), audited) & OTHERS == {"scipy.stats"}
    assert loaded(COMMAND.format(words=["test", "audit", "site = b"]), audited) & OTHERS == {"sqlalchemy"}


def test_an_audit_is_served_without_what_searched_it(audited: Path) -> None:
    used = loaded(COMMAND.format(words=["serve", "audit"]), audited)
    assert used & OTHERS == {"fastapi", "uvicorn", "sqlalchemy"}


# --- the lists of commands and of names


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_its_own_help(name: str) -> None:
    own = " ".join(load_command(name).help.split("\n\n")[0].split())
    assert COMMANDS[name].help == own


def complete(words: str, folder: Path) -> list[str]:
    """What bash offers at the end of words."""
    return run(f"import sys\n{HELP.format(words=[])}", folder, completion_of(words)).split()


def completion_of(words: str) -> dict[str, str]:
    """The environment in which bash asks for what may follow words."""
    count = str(len(words.split(" ")) - 1)
    return {"_ERRATA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}


def test_a_shell_completes_commands_groups_and_options(tmp_path: Path) -> None:
    assert complete("errata ", tmp_path) == list(COMMANDS)
    assert complete("errata ap", tmp_path) == ["apply"]
    assert complete("errata apply --fail", tmp_path) == ["--fail-on"]
    assert complete("errata plan ", tmp_path) == ["weights", "select", "prompts", "labels"]


def test_completing_a_command_imports_no_library(tmp_path: Path) -> None:
    assert loaded(HELP.format(words=[]), tmp_path, completion_of("errata a")) == set()


def test_an_unknown_command_names_the_nearest(tmp_path: Path) -> None:
    code = "import sys\nsys.argv = ['errata', 'aply']\nsys.stderr = sys.stdout\nfrom errata.cli import main\n"
    code += "try:\n    main()\nexcept SystemExit as stop:\n    print(stop.code)\n"
    assert run(code, tmp_path) == "errata: No such command 'aply'. Did you mean 'apply'?\n2\n"


def test_every_name_of_the_package_is_found(tmp_path: Path) -> None:
    names = {name: getattr(errata, name) for name in dir(errata)}
    assert set(errata.__all__) < set(names)
    assert errata.core.Audit is errata.Audit
    stars = run("from errata import *\nimport json\nprint(json.dumps(sorted(dir())))", tmp_path)
    assert set(errata.__all__) <= set(json.loads(stars))


PACKAGE = {
    "__init__.py": "from errata.core.lazy import attach\n__getattr__, __dir__, __all__ = attach(__name__, __file__)\n",
    "__init__.pyi": (
        "from . import second as second\nfrom .first import one as uno, two\nfrom .second import three\n\n"
        '__all__ = ["two", "uno"]\n'
    ),
    "first.py": "one = 1\ntwo = 2\n",
    "second.py": "three = 3\n",
}


def test_a_stub_says_where_names_are(tmp_path: Path) -> None:
    folder = tmp_path / "lazily"
    folder.mkdir()
    for name, text in PACKAGE.items():
        (folder / name).write_text(text)
    program = """
import sys
import lazily
assert "lazily.first" not in sys.modules
assert lazily.__all__ == ["two", "uno"]
assert {"second", "three", "two", "uno"} < set(dir(lazily))
assert "lazily.first" not in sys.modules
assert (lazily.uno, lazily.two) == (1, 2)
assert "lazily.second" not in sys.modules
assert lazily.second.three == lazily.three == 3
try:
    lazily.one
except AttributeError as error:
    assert str(error) == "module 'lazily' has no attribute 'one'"
else:
    raise SystemExit("a name that is not in the stub was found")
"""
    run(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{program}", tmp_path)
    assert attach("lazily", str(folder / "__init__.py"))[2] == ["two", "uno"]


def test_a_frame_needs_no_import_of_its_own(tmp_path: Path) -> None:
    program = """
import sys, numpy as np
from errata.core import Evaluation
rows = Evaluation(losses=np.ones(4), representations={"x": np.eye(4)})
assert "pandas" not in sys.modules
assert len(rows.to_frame()) == 4
"""
    run(program, tmp_path)
