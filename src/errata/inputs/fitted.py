"""The state of a fitted bridge or influence as one .safetensors file: arrays, with facts as JSON in its header."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ..core import InputError, State
from ..core.json_text import parse_json


def save_state(state: State, path: str | Path) -> Path:
    """Write a state, and return its path."""
    from safetensors.numpy import save_file

    facts = json.dumps({"name": state.name, **state.facts})
    arrays = {name: np.ascontiguousarray(array) for name, array in state.arrays.items()}
    save_file(arrays, str(path), metadata={"errata": facts})
    return Path(path)


def load_state(path: str | Path, kind: str, cure: str) -> State:
    """The state in a file; where it holds none, an error that says what it should be and how to make one."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            facts = parse_json((file.metadata() or {})["errata"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
        return State(facts.pop("name"), facts, arrays)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise InputError(f"`{path}` is not a saved {kind} ({error}); {cure}") from error
