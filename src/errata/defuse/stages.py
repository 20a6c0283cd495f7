"""A run in stages as a folder: each stage is a file that is there whole or not at all, so that a run can be resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core import InputError, State
from ..store import arrays, atomic_file, atomic_folder, check_output

ABOUT = "defuse.json"
SCHEMA = "errata.defuse/2"
ABSENT = "nothing"
BEGIN_ANEW = "put it back, or begin another folder"  # what came of it cannot be had again to the byte


class Run:
    """A folder begun by `begin`."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        if not (self.folder / ABOUT).is_file():
            raise InputError(f"`{folder}` is no folder that `errata defuse` began")
        self.about = self._told(ABOUT.removesuffix(".json"), BEGIN_ANEW)
        schema = self.about.get("schema") if isinstance(self.about, dict) else self.about
        if schema != SCHEMA:
            raise InputError(f"`{folder}` was written by another version ({schema!r}); begin anew")

    @classmethod
    def begin(cls, folder: str | Path, facts: Mapping[str, Any], later: Mapping[str, Any] | None = None) -> Run:
        """A new folder, or one that was begun with the very same facts. later: facts that may change; the last stay."""
        folder, later = Path(folder), json.loads(json.dumps(later or {}))
        told = json.loads(json.dumps({"schema": SCHEMA, **facts}))
        if not (folder / ABOUT).exists():
            check_output(folder)
            with atomic_folder(folder) as partial:
                (partial / ABOUT).write_text(_json({**told, **later}), encoding="utf-8")
        run = cls(folder)
        for name in told:
            if run.about.get(name) != told[name]:
                _refuse(folder, name, run.about.get(name), told[name])
        if run.about != {**told, **later}:
            run.about = {**told, **later}
            _write(folder / ABOUT, run.about)
        return run

    def has(self, name: str) -> bool:
        return (self.folder / f"{name}.json").is_file()

    def write(self, name: str, told: Any) -> None:
        _write(self.folder / f"{name}.json", told)

    def read(self, name: str) -> Any:
        return self._told(name, "remove it to do that again")

    def _told(self, name: str, cure: str) -> Any:
        try:
            return json.loads((self.folder / f"{name}.json").read_text())
        except (OSError, ValueError) as error:
            raise InputError(f"`{self.folder / name}.json` cannot be read ({error}); {cure}") from error

    def save(self, name: str, state: State) -> None:
        """Arrays first: the JSON says that the stage is done."""
        with atomic_file(self.folder / f"{name}.safetensors") as partial:
            arrays.write(partial, state.arrays)
        self.write(name, {"name": state.name, "facts": dict(state.facts)})

    def load(self, name: str) -> State:
        told = self._told(name, BEGIN_ANEW)
        try:
            return State(told["name"], told["facts"], arrays.read(self.folder / f"{name}.safetensors"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"`{self.folder / name}.safetensors` cannot be read ({error}); {BEGIN_ANEW}") from error

    def picture(self, name: str, picture: bytes) -> None:
        with atomic_file(self.folder / name) as partial:
            partial.write_bytes(picture)

    def text(self, name: str, text: str) -> Path:
        with atomic_file(self.folder / name) as partial:
            partial.write_text(text, encoding="utf-8")
        return self.folder / name


def is_run(folder: str | Path) -> bool:
    return (Path(folder) / ABOUT).is_file()


def _write(path: Path, told: Any) -> None:
    with atomic_file(path) as partial:
        partial.write_text(_json(told), encoding="utf-8")


def _json(told: Any) -> str:
    return json.dumps(told, indent=1, allow_nan=False) + "\n"


def _refuse(folder: Path, name: str, before: Any, now: Any) -> None:
    if isinstance(before, dict) and isinstance(now, dict):
        key = next(key for key in (*before, *now) if before.get(key, ABSENT) != now.get(key, ABSENT))
        name, before, now = f"{name}.{key}", before.get(key, ABSENT), now.get(key, ABSENT)
    raise InputError(f"`{folder}` was begun with {name} = {before!r}, and now it is {now!r}; name another folder")
