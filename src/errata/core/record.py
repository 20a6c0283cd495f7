"""Frozen dataclasses that are written to audit.json and read back from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from .errors import InputError
from .typed import typed

RowNumber = Annotated[int, "row"]  # of the evaluation: who reads a saved record checks that there is such a row
FLAT = {"flat": True}  # metadata of a field that is a Record: its keys stand among those of the record it is part of
OMIT_NONE = {"omit_none": True}  # metadata of a field whose key is absent where its value is None


def json_key(name: str) -> dict[str, str]:
    """Metadata of a field that has another name in JSON, such as "class", which Python keeps for itself."""
    return {"json": name}


class Record:
    """Base of frozen dataclasses with a JSON form: one key a field, in the order of the fields.

    Fields may hold other records, tuples of them, and what JSON knows by itself. `FLAT`, `OMIT_NONE` and `json_key`
    describe the exceptions, as metadata of a field.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def to_json(self) -> dict[str, Any]:
        """The record as a plain dictionary."""
        plain: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None and (item.metadata.get("omit_none") or item.metadata.get("flat")):
                continue
            if item.metadata.get("flat"):
                plain.update(value.to_json())
            else:
                plain[_key(item)] = _encode(value)
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The record that `to_json` wrote; keys that this version does not know are ignored.

        A ValueError where a value is not of its field's type.
        """
        own_type: Any = cls
        hints = _type_hints(own_type)
        values: dict[str, Any] = {}
        for item in fields(cls):
            if item.metadata.get("flat"):
                values[item.name] = _decode_flat(hints[item.name], data)
            elif _key(item) in data:
                values[item.name] = typed(hints[item.name], data[_key(item)], f"{cls.__name__}.{_key(item)}")
            elif item.default is MISSING and item.default_factory is MISSING:
                raise InputError(f"`{_key(item)}` is missing in {cls.__name__}; run the audit again")
        return cls(**values)


def row_numbers(record: Record) -> Iterator[int]:
    """The numbers of all rows that a record and its parts name."""
    own_type: Any = type(record)
    hints = _type_hints_as_written(own_type)
    for item in fields(record):
        value = getattr(record, item.name)
        parts = value if isinstance(value, tuple) else (value,)
        if hints[item.name] in (RowNumber, tuple[RowNumber, ...]):
            yield from parts
        for part in parts:
            if isinstance(part, Record):
                yield from row_numbers(part)


def _key(item: Field[Any]) -> str:
    return str(item.metadata.get("json", item.name))


@cache
def _type_hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _type_hints_as_written(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _encode(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [_encode(part) for part in value]
    return value


def _decode_flat(hint: Any, data: Mapping[str, Any]) -> Any:
    """The record whose keys stand among `data`; None where it may be None and its keys are absent."""
    record: type[Record] = _without_none(hint)
    absent = not any(_key(item) in data for item in fields(record))
    return None if absent and record is not hint else record.from_json(data)


def _without_none(hint: Any) -> Any:
    """`X` of `X | None`."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    parts = [part for part in get_args(hint) if part is not NoneType]
    return parts[0] if len(parts) == 1 else hint
