"""The folder of a run: each stage is a file that exists whole or not at all, so that a run can be resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core import InputError, State
from ..core import tensor_files as arrays
from ..core.json_text import parse_json
from ..store import atomic_file, atomic_folder, check_output

ABOUT = "defuse.json"
SCHEMA = "errata.defuse/2"
ABSENT = "nothing"
START_AGAIN = "restore it, or start in another folder"  # what followed from it cannot be computed again to the byte


class RunFolder:
    """The folder of a run that `create_or_open` created."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        if not is_run(folder):
            raise InputError(f"`{folder}` is not a folder of `errata defuse`; name one that it created")
        self.about = self._read_json(ABOUT.removesuffix(".json"), START_AGAIN)
        if isinstance(self.about, dict):
            schema = self.about.get("schema")
        else:
            schema = self.about
        if schema != SCHEMA:
            raise InputError(f"`{folder}` was written by another version ({schema!r}); start in another folder")

    @classmethod
    def create_or_open(
        cls, folder: str | Path, facts: Mapping[str, Any], changing: Mapping[str, Any] | None = None
    ) -> RunFolder:
        """A new folder, or one that was created with the same facts. changing: facts that may differ; the last stay."""
        folder = Path(folder)
        fixed = json.loads(json.dumps({"schema": SCHEMA, **facts}))
        about = {**fixed, **json.loads(json.dumps(changing or {}))}
        if not (folder / ABOUT).exists():
            check_output(folder)
            with atomic_folder(folder) as partial:
                (partial / ABOUT).write_text(_as_json(about), encoding="utf-8")
        run = cls(folder)
        for name in fixed:
            if run.about.get(name) != fixed[name]:
                raise _difference(folder, name, run.about.get(name), fixed[name])
        if run.about != about:
            run.about = about
            run.write(ABOUT.removesuffix(".json"), about)
        return run

    def has(self, name: str) -> bool:
        """Whether a stage is done."""
        return (self.folder / f"{name}.json").is_file()

    def write(self, name: str, value: Any) -> None:
        """Write NAME.json."""
        self.write_text(f"{name}.json", _as_json(value))

    def read(self, name: str) -> Any:
        """The value of NAME.json."""
        return self._read_json(name, "remove it to do that again")

    def _read_json(self, name: str, cure: str) -> Any:
        try:
            return parse_json((self.folder / f"{name}.json").read_text())
        except (OSError, ValueError) as error:
            raise InputError(f"`{self.folder / name}.json` cannot be read ({error}); {cure}") from error

    def save(self, name: str, state: State) -> None:
        """Write NAME.safetensors, then NAME.json, which says that the stage is done."""
        with atomic_file(self.folder / f"{name}.safetensors", replace=True) as partial:
            arrays.write(partial, state.arrays)
        self.write(name, {"name": state.name, "facts": dict(state.facts)})

    def load(self, name: str) -> State:
        """What `save` wrote."""
        content = self._read_json(name, START_AGAIN)
        try:
            return State(content["name"], content["facts"], arrays.read(self.folder / f"{name}.safetensors"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"`{self.folder / name}.safetensors` cannot be read ({error}); {START_AGAIN}") from error

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file, such as a PNG."""
        with atomic_file(self.folder / name, replace=True) as partial:
            partial.write_bytes(content)

    def write_text(self, name: str, text: str) -> Path:
        """Write a text file; returns its path."""
        with atomic_file(self.folder / name, replace=True) as partial:
            partial.write_text(text, encoding="utf-8")
        return self.folder / name


def is_run(folder: str | Path) -> bool:
    """Whether a folder is one of `errata defuse`."""
    return (Path(folder) / ABOUT).is_file()


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def _difference(folder: Path, name: str, before: Any, now: Any) -> InputError:
    if isinstance(before, dict) and isinstance(now, dict):
        key = next(key for key in (*before, *now) if before.get(key, ABSENT) != now.get(key, ABSENT))
        return _difference(folder, f"{name}.{key}", before.get(key, ABSENT), now.get(key, ABSENT))
    return InputError(f"`{folder}` was created with {name} = {before!r}, and now it is {now!r}; name another folder")
