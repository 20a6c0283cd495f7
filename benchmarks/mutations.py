"""Odd values, and changes of bytes, arrays and JSON: what the fuzzer makes its cases of."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

N = 200  # rows of the good files
Rng = np.random.Generator

# fmt: off
NASTY_TEXT = (
    "", " ", "0", "-1", "NaN", "inf", "1e999", "a\x00b", "\x1b[2J", "\u202e", "é"*300, "'", '"', "`", "{", "[",
    "]]", ";", ",", "\n", "\r\n", "../x", "/dev/null", "~", "%s", "${x}", "<script>", "日本", "\ufeff", "NULL",
    "True", "None", "2026-01-01", "9"*400, "=1+1", "embedding", "metadata:", "prob:", "label", "a"*3000,
)
NASTY_NUMBER = (
    0, 1, -1, 2, 0.5, 1e-320, 1e38, 1e39, -1e300, 1e308, 2**31, 2**53, 2**63, 2**64-1, -(2**63), float("nan"),
    float("inf"), float("-inf"),
)
# fmt: on
TYPES = ("i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "?", "U3", "S3", "M8[D]", "M8[ns]", "m8[s]", "V4")
# fmt: off
NAMES = (
    "embedding", "embedding:a", "embedding:b", "labels", "probs", "predictions", "losses", "ids", "groups", "text",
    "image_path", "metadata:age", "metadata:site", "metadata:", "embedding:", "class_names", "weights", "prob:a",
    "Labels", "embedding:__metadata__", "metadata:a/b", "metadata:\x1b[2J", "scores", "loss", "label",
)
# fmt: on


def pick(rng: Rng, choices: Any) -> Any:
    """One of some."""
    return choices[int(rng.integers(len(choices)))]


def mutate_bytes(rng: Rng, data: bytes) -> bytes:
    """Bytes with a few of them changed, cut, doubled, moved or inserted."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if not changed:
            break
        place = int(rng.integers(len(changed)))
        length = int(rng.integers(1, 1 + min(200, len(changed))))
        action = int(rng.integers(6))
        if action == 0:
            changed[place] = int(rng.integers(256))
        elif action == 1:
            del changed[place : place + length]
        elif action == 2:
            changed[place:place] = changed[place : place + length]
        elif action == 3:
            changed[place:place] = rng.bytes(length)
        elif action == 4:
            changed[place:place] = pick(rng, NASTY_TEXT).encode("utf-8", "replace")
        else:
            del changed[place:]
    return bytes(changed)


def nasty_array(rng: Rng) -> Any:
    """An array of any type and nearly any shape."""
    shape = pick(
        rng, ((N,), (N,), (N,), (N, 2), (N, 3), (N, 1), (N, 0), (N - 1,), (0,), (), (N, 2, 2), (1, N), (N, 70))
    )
    values = rng.integers(-3, 4, size=shape) * pick(rng, (1, 1, 0.5, 1e37, 0))
    with np.errstate(all="ignore"), contextlib.suppress(TypeError, ValueError, OverflowError):
        return np.asarray(values).astype(pick(rng, TYPES))
    return np.asarray(values)


def mutate_array(rng: Rng, array: Any) -> Any:
    """An array with a few values or its type or shape changed."""
    action = int(rng.integers(7))
    if action == 0 or array.ndim == 0:
        return nasty_array(rng)
    if action == 1:
        return array[: int(rng.integers(len(array) + 1))]
    if action == 2:
        return np.full_like(array, array.flat[0]) if array.size else array
    changed = array.astype(object)
    values = NASTY_TEXT if array.dtype.kind in "US" else NASTY_NUMBER
    for _ in range(int(rng.integers(1, 4))):
        if changed.size:
            changed.flat[int(rng.integers(changed.size))] = pick(rng, values)
    with np.errstate(all="ignore"), contextlib.suppress(TypeError, ValueError, OverflowError):
        return changed.astype(array.dtype if array.dtype.kind in "US" else np.float64)
    return changed.astype(str)


def mutate_arrays(rng: Rng, arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays with some left out, added, changed or cut alike."""
    kept = {name: array for name, array in arrays.items() if rng.random() > 0.2}
    if rng.random() < 0.15:
        n = int(rng.integers(0, N))
        kept = {name: array[:n] for name, array in kept.items()}
    for name in list(kept):
        if rng.random() < 0.07:
            kept[name] = mutate_array(rng, kept[name])
    for _ in range(int(rng.integers(0, 2))):
        kept[pick(rng, NAMES)] = nasty_array(rng)
    return kept


def mutate_json(rng: Rng, value: Any, chance: float = 0.1) -> Any:
    """JSON with some of its parts replaced, doubled or left out."""
    if rng.random() < chance:
        return pick(rng, (*NASTY_TEXT, *NASTY_NUMBER, None, True, [], {}, [[]], {"a": {}}))
    if isinstance(value, dict):
        kept = {name: mutate_json(rng, part, chance) for name, part in value.items() if rng.random() > chance / 2}
        return kept | ({pick(rng, NASTY_TEXT): 1} if rng.random() < chance / 2 else {})
    if isinstance(value, list):
        kept = [mutate_json(rng, part, chance) for part in value if rng.random() > chance / 2]
        return kept * 2 if rng.random() < chance / 10 else kept
    return value
