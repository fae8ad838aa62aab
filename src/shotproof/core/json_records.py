"""Records as JSON with every field and back, each value checked; and the JSON Schema of a record's class."""

from __future__ import annotations

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.plain_values import default_of

LARGEST = sys.float_info.max
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def as_json(record: Any) -> Any:
    """A record with every field, so that whoever reads it finds what is described; NaN becomes null."""
    if dataclasses.is_dataclass(record):
        names = (each.name for each in dataclasses.fields(record))
        return {name: as_json(getattr(record, name)) for name in names}
    if isinstance(record, Mapping):
        return {key: as_json(value) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return [as_json(value) for value in record]
    return None if isinstance(record, float) and math.isnan(record) else record


def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of values of a type: records are objects without further keys."""
    if dataclasses.is_dataclass(kind):
        hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
        return {
            "type": "object",
            "description": (kind.__doc__ or "").split("\n\n    Example:")[0].replace("\n    ", "\n").strip(),
            "properties": {each.name: json_schema(hints[each.name]) for each in fields},
            "required": [each.name for each in fields if default_of(each) is dataclasses.MISSING],
            "additionalProperties": False,
        }
    if get_origin(kind) in (Union, types.UnionType):
        return {"anyOf": [json_schema(one) for one in get_args(kind)]}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": json_schema(get_args(kind)[0])}
    if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping):
        return {"type": "object", "additionalProperties": json_schema(get_args(kind)[1])}
    return {"type": "null"} if kind is types.NoneType else {"type": _NAMES[kind]}


def from_json(value: Any, kind: Any, where: str = "") -> Any:
    """Plain values as a record; what is not of the record's types is refused, by the same rules as its JSON Schema.

    Args:
        value: plain values, as JSON gives them
        kind: a record's class, or a type that its fields may have
        where: the place in the file, for the message

    Returns:
        The record, or the value.

    Raises:
        InputError: a field is missing, unknown or of another type.
    """
    if dataclasses.is_dataclass(kind):
        return _read_record(value, kind, where)
    if get_origin(kind) in (Union, types.UnionType):
        options = get_args(kind)
        if value is None and types.NoneType in options:
            return None
        return from_json(value, next(one for one in options if one is not types.NoneType), where)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise _wrong(where, f"one of {', '.join(map(str, get_args(kind)))}", value)
        return value
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise _wrong(where, "a list", value)
        return tuple(from_json(one, get_args(kind)[0], f"{where}[{number}]") for number, one in enumerate(value))
    if get_origin(kind) is not None:
        if not isinstance(value, Mapping):
            raise _wrong(where, "an object", value)
        return {key: from_json(one, get_args(kind)[1], _below(where, key)) for key, one in value.items()}
    if not _is(value, kind):
        raise _wrong(where, f"{'an' if kind is int else 'a'} {_NAMES[kind]}", value)
    return float(value) if kind is float else value


def _read_record(value: Any, kind: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(where, "an object", value)
    hints, fields = typing.get_type_hints(kind), {each.name: each for each in dataclasses.fields(kind)}
    for key in value:
        if key not in fields:
            raise InputError(f"{_below(where, key)}: unknown key{did_you_mean(key, fields)}")
    for name, each in fields.items():
        if name not in value and default_of(each) is dataclasses.MISSING:
            raise InputError(f"{_below(where, name)}: missing")
    return kind(**{name: from_json(one, hints[name], _below(where, name)) for name, one in value.items()})


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        # No NaN, and no whole number that is beyond what a float holds.
        return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _below(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _wrong(where: str, expected: str, value: Any) -> InputError:
    shown = f"'{value}'" if isinstance(value, str) else str(value)
    return InputError(f"{where or 'the file'}: expected {expected}, found {shown[:60]}")
