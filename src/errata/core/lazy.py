"""Names of a package that are imported when they are first used.

The command is started far more often than an audit is run, and most of what the package can do is not what one command
does. `import errata.core` therefore imports nothing else. Where each name comes from is said once, in the stub beside
the package (`__init__.pyi`): type checkers and editors read it, and so does `attach`.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

Lazy = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def attach(package: str, file: str) -> Lazy:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, from its stub.

    Parameters
    ----------
    package : str
        Its `__name__`.
    file : str
        Its `__file__`; the stub has the same path, ending in `.pyi`.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = _homes(stub)
    public = _public_names(stub)

    def getattr_(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = homes[name]
        if module == ".":
            return importlib.import_module(f".{original}", package)
        return getattr(importlib.import_module(module, package), original)

    def dir_() -> list[str]:
        return sorted({*vars(importlib.import_module(package)), *homes})

    return getattr_, dir_, public


def _homes(stub: ast.Module) -> dict[str, tuple[str, str]]:
    """Return where each name comes from: `from .a import b as c` is "c": (".a", "b")."""
    return {
        alias.asname or alias.name: ("." * node.level + (node.module or ""), alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }


def _public_names(stub: ast.Module) -> list[str]:
    assigned = [
        node.value for node in stub.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    names: list[str] = ast.literal_eval(assigned[0])
    return names
