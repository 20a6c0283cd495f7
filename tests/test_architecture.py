"""The house rules that a machine can read: who may import whom, how long a thing may be, and a few forms of code.

The page docs/explanation/design.md has the arrows in words.

Every rule is a function from parsed modules to sentences; each is also shown a planted breach, so that none of
them can fall silent.
"""

from __future__ import annotations

import ast
import functools
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "errata"

CONDUCTORS = {"workflow", "cli", "bench", "__init__", "__main__"}
ARROWS = {  # beside `core`, which everyone may import
    "core": set(),
    "tensors": set(),
    "store": set(),
    "hypothesis": set(),
    "engine": {"tensors"},
    "inputs": {"tensors", "engine"},
    "slicers": {"tensors", "engine"},
    "explain": {"tensors"},
    "train": {"tensors"},
    "draw": {"tensors"},
    "fix": {"train", "explain"},
    "people": {"store"},
    "report": {"hypothesis", "explain"},
    "notebook": {"report"},
    "app": {"store", "report", "people", "hypothesis"},
    # A vertical room: it stands on the horizontal ones, and none of them knows it.
    "defuse": {"inputs", "tensors", "train", "store", "explain", "people", "report", "app"},
    "version": set(),
}
CORE_USES = {"numpy", "scipy"}
TORCH_AT_TOP = {"tensors", "train", "defuse"}
NEVER = {"torchvision", "timm", "open_clip", "pickle", "cPickle", "cloudpickle", "dill"}
# Slow to import, and not what every command uses: a function that needs one imports it.
LATE = {"sklearn", "pandas", "pyarrow.dataset", "matplotlib", "rich", "jinja2", "PIL", "narwhals"}
LATE |= {f"scipy.{name}" for name in ("cluster", "linalg", "optimize", "sparse", "spatial", "stats")}
BY_NAME = {"core/errors.py", "core/lazy.py", "cli/app.py", "cli/plugins.py", "defuse/command.py"}
KNOW_DEFUSE = {"__init__.pyi", "cli/serve.py"}  # the names of rooms, and the registry of folders that are served
FILE_LINES = 600
FUNCTION_LINES = 40


@dataclass(frozen=True)
class Import:
    module: str  # absolute, as far as a name can say
    line: int
    at_top: bool  # runs when the module is imported; what only a type checker sees does not
    name: str = ""  # what is imported from the module


@dataclass(frozen=True)
class Module:
    place: str  # "store/folder.py"
    room: str  # "store"; of a module beside the rooms, its own name
    text: str
    tree: ast.Module
    rooms: frozenset[str]  # all names beside this one: what `from .. import NAME` may mean

    @property
    def imports(self) -> list[Import]:
        return list(self._imports(self.tree, at_top=True))

    def _imports(self, node: ast.AST, at_top: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, at_top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield from self._imported_from(child, at_top)
            else:
                hidden = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
                yield from self._imports(child, at_top and not hidden and not typing_only)

    def _imported_from(self, node: ast.ImportFrom, at_top: bool) -> Iterator[Import]:
        """`from ..store import rows` is errata.store; `from .. import store` is errata.store too."""
        package = ["errata", *self.place.split("/")[:-1]]
        base = package[: len(package) - node.level + 1] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            is_room = module == "errata" and alias.name in self.rooms
            yield Import(f"errata.{alias.name}" if is_room else module, node.lineno, at_top, alias.name)


parsed = functools.cache(ast.parse)  # a planted house differs in one file


def modules(package: Path) -> list[Module]:
    paths = sorted([*package.rglob("*.py"), *package.rglob("*.pyi")])  # names that are imported late are in a stub
    rooms = frozenset(Path(path.relative_to(package).parts[0]).stem for path in paths)
    read = []
    for path in paths:
        inside = path.relative_to(package)
        text = path.read_text(encoding="utf-8")
        read.append(Module(inside.as_posix(), Path(inside.parts[0]).stem, text, parsed(text), rooms))
    return read


def arrows(module: Module) -> Iterator[str]:
    """Nobody imports a sibling but where the design says so."""
    if module.room in CONDUCTORS:
        return
    if module.room not in ARROWS:
        yield f"{module.place}: the room `{module.room}` is not in the design"
        return
    may = ARROWS[module.room] | {"core", module.room}
    for found in module.imports:
        if found.module.partition(".")[0] == "errata":
            room = [*found.module.split("."), "__init__"][1]
            if room not in may:
                yield f"{module.place}:{found.line} imports {room}, which {module.room} may not"


def defuse_is_registered(module: Module) -> Iterator[str]:
    """To remove Defuse is to remove its folder and a line of each registry; conductors obey no arrow, but this."""
    if module.room == "defuse" or module.place in KNOW_DEFUSE:
        return
    for imported in module.imports:
        if imported.module.startswith("errata.defuse"):
            yield f"{module.place}:{imported.line} imports defuse; name it in a registry"


def core_is_light(module: Module) -> Iterator[str]:
    for found in module.imports if module.room == "core" else []:
        top = found.module.partition(".")[0]
        if top not in CORE_USES | {"errata"} and top not in sys.stdlib_module_names:
            yield f"{module.place}:{found.line} imports {top}; core has only {', '.join(sorted(CORE_USES))}"


def torch_in_its_room(module: Module) -> Iterator[str]:
    for found in module.imports if module.room not in TORCH_AT_TOP else []:
        if found.at_top and found.module.partition(".")[0] == "torch":
            yield f"{module.place}:{found.line} imports torch when it is imported"


def late_imports(module: Module) -> Iterator[str]:
    """Most commands use few of the libraries, and none waits for the others."""
    for found in module.imports:
        parts = [*found.module.split("."), found.name]
        late = {parts[0], ".".join(parts[:2])} & LATE
        if found.at_top and late:
            yield f"{module.place}:{found.line} imports {min(late)} when it is imported, not where it is used"


def never_imported(module: Module) -> Iterator[str]:
    for found in module.imports:
        if found.module.partition(".")[0] in NEVER:
            yield f"{module.place}:{found.line} imports {found.module}"


def no_hidden_imports(module: Module) -> Iterator[str]:
    """What is imported by its name as a text cannot be read here: only `core.errors.require` may; names of a package
    by its stub (`core/lazy.py`), and commands by their registry (`cli/app.py`), when they are used; and commands that
    take a user's own code: Defuse's MODULE:FUNCTION, and `--plugin MODULE`."""
    for call in _calls(module):
        if ast.unparse(call.func).endswith(("import_module", "__import__")) and module.place not in BY_NAME:
            yield f"{module.place}:{call.lineno} imports by text; use core.errors.require"


def no_pickled_arrays(module: Module) -> Iterator[str]:
    for call in _calls(module):
        if ast.unparse(call.func) in ("np.load", "numpy.load"):
            given = {word.arg: word.value for word in call.keywords}.get("allow_pickle")
            if not (isinstance(given, ast.Constant) and given.value is False):
                yield f"{module.place}:{call.lineno} np.load without allow_pickle=False"


def no_print(module: Module) -> Iterator[str]:
    for call in _calls(module):
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            yield f"{module.place}:{call.lineno} prints"


def short_enough(module: Module) -> Iterator[str]:
    lines = len(module.text.splitlines())
    if lines > FILE_LINES:
        yield f"{module.place} has {lines} lines"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _body_lines(node) > FUNCTION_LINES:
            yield f"{module.place}:{node.lineno} {node.name} has {_body_lines(node)} lines"


def no_packed_assignments(module: Module) -> Iterator[str]:
    """`a, b = x, y` are two statements; what one call returns may be unpacked."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        if any(isinstance(target, ast.Tuple) for target in node.targets):
            yield f"{module.place}:{node.lineno} packs several assignments into one"


def no_nested_conditions(module: Module) -> Iterator[str]:
    """`a if c else b` is all that is assigned or returned, and no part of another expression."""
    for parent in ast.walk(module.tree):
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.Return):
            continue
        for child in ast.iter_child_nodes(parent):
            if isinstance(child, ast.IfExp):
                yield f"{module.place}:{child.lineno} has a condition inside another expression"


def formatted(module: Module) -> Iterator[str]:
    for number, line in enumerate(module.text.splitlines(), 1):
        if "fmt: skip" in line or "fmt: off" in line:
            yield f"{module.place}:{number} is left out of the formatting"


def _calls(module: Module) -> list[ast.Call]:
    return [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From its first statement to its last: neither the docstring, nor a signature, which may list many options, nor
    the imports that it starts with."""
    statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
    while statements and isinstance(statements[0], ast.Import | ast.ImportFrom):
        statements = statements[1:]
    if not statements:
        return 0
    last = statements[-1].end_lineno
    assert last is not None
    return last - statements[0].lineno + 1


Rule = Callable[[Module], Iterator[str]]
RULES: tuple[Rule, ...] = (
    arrows,
    defuse_is_registered,
    core_is_light,
    torch_in_its_room,
    late_imports,
    never_imported,
    no_hidden_imports,
    no_pickled_arrays,
    no_print,
    short_enough,
    no_packed_assignments,
    no_nested_conditions,
    formatted,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_its_rules(rule: Rule) -> None:
    assert [sentence for module in modules(PACKAGE) for sentence in rule(module)] == []


def test_the_reader_sees_the_house() -> None:
    """A reader that finds no imports would keep every rule."""
    arrows_read = {
        (module.room, imported.module.split(".")[1])
        for module in modules(PACKAGE)
        for imported in module.imports
        if imported.module.startswith("errata.")
    }
    assert {("store", "core"), ("inputs", "tensors"), ("workflow", "slicers"), ("cli", "store")} <= arrows_read
    assert len(modules(PACKAGE)) > 40


LONG = "def long():\n" + "    x = 1\n" * 41
PLANTED: list[tuple[Rule, str, str, str]] = [
    (arrows, "core/split.py", "from ..inputs import read", "imports inputs"),
    (arrows, "core/split.py", "def f():\n    from .. import slicers", "imports slicers"),
    (arrows, "store/folder.py", "from ..report import to_html", "imports report"),
    (arrows, "store/rows.py", "def f():\n    import errata.slicers.gmm", "imports slicers"),
    (arrows, "report/page.py", "from errata.slicers.contract import x", "imports slicers"),
    (arrows, "report/page.py", "from ..tensors import to_device", "imports tensors"),
    (arrows, "slicers/gmm.py", "from .. import workflow", "imports workflow"),
    (arrows, "explain/tokens.py", "from .. import __version__", "imports __init__"),
    (arrows, "inputs/files.py", "from ..store import load", "imports store"),
    (arrows, "fix/plan.py", "from ..store import load", "imports store"),
    (arrows, "attic/x.py", "", "not in the design"),
    (
        defuse_is_registered,
        "workflow/auditing.py",
        "def f():\n    from ..defuse.stages import is_run",
        "imports defuse",
    ),
    (defuse_is_registered, "cli/bench.py", "from .. import defuse", "imports defuse"),
    (core_is_light, "core/gaps.py", "import pandas as pd", "imports pandas"),
    (core_is_light, "core/gaps.py", "def f():\n    from sklearn.cluster import KMeans", "imports sklearn"),
    (torch_in_its_room, "slicers/spotlight.py", "import torch", "imports torch"),
    (
        torch_in_its_room,
        "inputs/batches.py",
        "try:\n    from torch.nn import Module\nexcept ImportError:\n    pass",
        "",
    ),
    (late_imports, "slicers/gmm.py", "from sklearn.mixture import GaussianMixture", "imports sklearn when"),
    (late_imports, "core/gaps.py", "from scipy import stats", "imports scipy.stats when"),
    (late_imports, "core/gaps.py", "import scipy.stats as st", "imports scipy.stats when"),
    (late_imports, "report/terminal.py", "from rich.text import Text", "imports rich when"),
    (late_imports, "cli/common.py", "import pandas as pd", "imports pandas when"),
    (arrows, "core/__init__.pyi", "from ..inputs import read", "imports inputs"),
    (never_imported, "inputs/media.py", "def f():\n    import torchvision.transforms", "torchvision"),
    (never_imported, "store/rows.py", "import pickle", "pickle"),
    (never_imported, "tensors/capture.py", "from timm import models", "timm"),
    (no_hidden_imports, "store/rows.py", "import importlib\nimportlib.import_module('errata.report')", "by text"),
    (no_hidden_imports, "store/rows.py", "__import__('errata.report')", "by text"),
    (no_pickled_arrays, "inputs/streams.py", "import numpy as np\nnp.load('x.npy')", "np.load"),
    (no_pickled_arrays, "inputs/streams.py", "import numpy as np\nnp.load('x', allow_pickle=True)", "np.load"),
    (no_print, "workflow/auditing.py", "print('hello')", "prints"),
    (short_enough, "cli/examples.py", LONG, "long has 41 lines"),
    (short_enough, "store/tensors.py", "x = 1\n" * 600, "lines"),
    (no_packed_assignments, "store/rows.py", "a, b = 1, 2", "packs"),
    (no_packed_assignments, "store/rows.py", "def f(self, x):\n    self.a, self.b = x, [x]", "packs"),
    (no_nested_conditions, "store/rows.py", "x = str(1 if c else 2)", "condition"),
    (no_nested_conditions, "store/rows.py", "def f(c):\n    return f'{1 if c else 2}'", "condition"),
    (no_nested_conditions, "store/rows.py", "def f(c):\n    return 1 if c else 2 if not c else 3", "condition"),
    (formatted, "store/rows.py", "x = [1,2]  # fmt: skip", "formatting"),
]


@pytest.mark.parametrize(("rule", "place", "planted", "words"), PLANTED)
def test_a_planted_breach_is_found(tmp_path: Path, rule: Rule, place: str, planted: str, words: str) -> None:
    house = tmp_path / "errata"
    shutil.copytree(PACKAGE, house, ignore=shutil.ignore_patterns("__pycache__", "templates"))
    path = house / place
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + "\n" + planted + "\n")
    found = [sentence for module in modules(house) for sentence in rule(module)]
    assert len(found) == 1, found
    assert place in found[0]
    assert words in found[0]


ALLOWED: list[tuple[Rule, str, str]] = [
    (arrows, "defuse/vae.py", "from ..train import fit\nfrom ..tensors import to_device\nfrom ..core import Audit"),
    (arrows, "app/pages.py", "from .. import report, store"),
    (arrows, "bench/run.py", "from .. import workflow, report\nfrom ..train import fit"),
    (defuse_is_registered, "cli/serve.py", "from ..defuse.site import RunSite"),
    (defuse_is_registered, "defuse/run.py", "from .. import defuse"),
    (torch_in_its_room, "train/loops.py", "import torch"),
    (torch_in_its_room, "slicers/gmm.py", "def f():\n    import torch"),
    (torch_in_its_room, "slicers/gmm.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"),
    (late_imports, "slicers/gmm.py", "def f():\n    from sklearn.mixture import GaussianMixture"),
    (late_imports, "core/gaps.py", "from scipy import special\nfrom scipy.special import betaln"),
    (late_imports, "report/terminal.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rich.text"),
    (no_pickled_arrays, "store/rows.py", "import numpy as np\nnp.load('x', allow_pickle=False)"),
    (short_enough, "workflow/auditing.py", 'def documented():\n    """One.\n' + "    word\n" * 60 + '    """\n'),
    (short_enough, "cli/examples.py", "def f():\n    import json\n    from math import pi\n\n" + "    x = 1\n" * 40),
    (no_packed_assignments, "store/rows.py", "a, b = f()\nc = 1, 2\n(d, e), g = f()\nfor h, i in ((1, 2),):\n    pass"),
    (no_nested_conditions, "store/rows.py", "a = 1 if c else 2\nb: int = 1 if c else 2"),
    (no_nested_conditions, "store/rows.py", "def f(c):\n    return 1 if c else 2"),
]


@pytest.mark.parametrize(("rule", "place", "planted"), ALLOWED)
def test_what_the_design_allows_passes(tmp_path: Path, rule: Rule, place: str, planted: str) -> None:
    path = tmp_path / "errata" / place
    path.parent.mkdir(parents=True)
    path.write_text(planted + "\n")
    for room in ("core", "tensors", "train", "store", "report"):
        (tmp_path / "errata" / room).mkdir(exist_ok=True)
        (tmp_path / "errata" / room / "__init__.py").touch()
    assert [sentence for module in modules(tmp_path / "errata") for sentence in rule(module)] == []
