"""safetensors files, written a block at a time and read as memory maps.

The library's own writer takes a copy of every array in memory; a representation may be larger than that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .blocks import Array, Matrix, blocks
from .json_text import parse_json

_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
_TYPES = {short: np.dtype(name) for name, short in _NAMES.items()}
_BLOCK = 1 << 24


def write(path: Path, arrays: Mapping[str, Matrix]) -> None:
    """Write a safetensors file: name -> array."""
    header: dict[str, object] = {}
    start = 0
    for name, array in arrays.items():
        size = int(np.prod(array.shape, dtype=np.int64)) * array.dtype.itemsize
        header[name] = {
            "dtype": _NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [start, start + size],
        }
        start += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format wants its data aligned
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            if array.ndim == 0:
                file.write(_little_endian(np.asarray(array)))
                continue
            for _, block in blocks(array, _BLOCK):
                file.write(_little_endian(block))


def _little_endian(block: Array) -> bytes:
    return np.ascontiguousarray(block, dtype=block.dtype.newbyteorder("<")).tobytes()


def read(path: Path, *, mapped: bool = False) -> dict[str, Array]:
    """Name -> array; as memory maps that stay on disk until they are read, or in memory."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > path.stat().st_size:  # reading so much would take the memory, or overflow
            raise ValueError(f"its header would have {length:,} bytes, more than the file")
        header = parse_json(file.read(length))
    if not isinstance(header, dict):
        raise ValueError(f"its header is not a table of arrays, but {type(header).__name__}")
    header.pop("__metadata__", None)
    return {name: _read_array(path, entry, 8 + length, mapped) for name, entry in header.items()}


def _read_array(path: Path, entry: Mapping[str, Any], base: int, mapped: bool) -> Array:
    shape = tuple(entry["shape"])
    dtype = _TYPES[str(entry["dtype"])]
    start, stop = entry["data_offsets"]
    if not all(isinstance(number, int) and number >= 0 for number in (*shape, start, stop)):
        raise ValueError(f"an array has the shape {shape} at the bytes {start} to {stop}")
    if stop - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of the shape {shape} and type {dtype} has {stop - start:,} bytes")
    if base + stop > path.stat().st_size:
        raise ValueError("an array ends behind the file")
    if start == stop:  # nothing to map
        return np.empty(shape, dtype=dtype)
    array: Array = np.memmap(path, dtype=dtype, mode="r", offset=base + start, shape=shape or (1,))
    if not shape:
        array = array.reshape(())
    if mapped:
        return array
    return np.array(array)
