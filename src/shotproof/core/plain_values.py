"""Conversion between records and plain values for JSON and TOML; descriptions of types in words and as JSON Schema."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import numbers
import re
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.text import is_storable

LONGEST = 60  # characters of a value in a message
_TYPE_NAMES = {int: "a whole number", float: "a number", bool: "True or False", str: "text", Path: "a path"}
_JSON_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string", Path: "string", type(None): "null"}
_PLAIN_TYPES = {int, float, bool, str, type(None)}
_NUMBER_TYPES: dict[Any, type] = {int: numbers.Integral, float: numbers.Real}  # accepts NumPy numbers


def plain(value: Any, *, complete: bool = False) -> Any:
    """Convert a value to plain values for JSON: records and tuples become tables and lists, a path becomes its name.

    Args:
        value: the value to convert
        complete: include every field of a record, and write NaN as null; otherwise, defaults are left out
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        kept_fields = (
            (field, entry) for field, entry in fields if complete or (entry != default_of(field) and entry is not None)
        )
        return {field.name: plain(entry, complete=complete) for field, entry in kept_fields}
    if isinstance(value, Mapping):
        return {str(key): plain(entry, complete=complete) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, complete=complete) for entry in value]
    if complete and isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.name if isinstance(value, Path) else " ".join(repr(value).split())


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Return a field's default; MISSING if it has none."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def typed(value: Any, kind: Any, location: str = "", *, strict: bool = False) -> Any:
    """Convert plain values to records and other typed values: a list becomes a tuple, text becomes a path.

    Args:
        value: plain, as parsed from JSON or TOML
        kind: a type or a record class, whose fields declare the types of their values
        location: where the value is, for messages: `sampler.options`
        strict: reject unknown keys, None and non-finite numbers, as the JSON Schema of the record does; otherwise
            unknown keys are ignored, and None counts as not given

    Raises:
        InputError: a value has another type; the message has its location, the expected type and the value found.

    Example:
        >>> typed({"a": 1}, dict[str, int])
        {'a': 1}
        >>> typed([1, "b"], tuple[int, ...], "shots")
        Traceback (most recent call last):
        shotproof.core.errors.InputError: shots[1]: expected a whole number, found 'b'
    """
    if kind is Any or (value is None and (is_optional(kind) or not strict)):
        return value
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _convert_union(value, kind, location, strict)
    if origin is Literal:
        _require(value in get_args(kind) and not isinstance(value, bool), kind, value, location)
        return value
    if origin in (tuple, list):
        _require(isinstance(value, Sequence) and not isinstance(value, str), kind, value, location)
        _require(is_open_ended(kind) or len(value) == len(get_args(kind)), kind, value, location)
        kinds = get_args(kind)[:1] * len(value) if is_open_ended(kind) else get_args(kind)
        entries = []
        for index, (entry, entry_kind) in enumerate(zip(value, kinds, strict=True)):
            _require(entry is not None or is_optional(entry_kind), entry_kind, entry, f"{location}[{index}]")
            entries.append(typed(entry, entry_kind, f"{location}[{index}]", strict=strict))
        return tuple(entries)
    if origin is not None and issubclass(origin, Mapping):
        _require(isinstance(value, Mapping), kind, value, location)
        entry_kind = get_args(kind)[1]
        table = {
            key: typed(entry, entry_kind, _join_location(location, key), strict=strict) for key, entry in value.items()
        }
        return {key: entry for key, entry in table.items() if strict or entry_kind is Any or entry is not None}
    if dataclasses.is_dataclass(kind):
        return value if isinstance(value, kind) else _convert_record(value, kind, location, strict)  # type: ignore[arg-type]
    return _convert_simple(value, kind, location, strict)


def in_words(kind: Any, bounds: str = "") -> str:
    """Describe a type in words for messages: `a whole number`, `a list of text`.

    Args:
        kind: the type
        bounds: the bounds of its numbers in words: ` from 1 to 8`
    """
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(in_words(member, bounds) for member in kinds_of(kind)) + " or None" * is_optional(kind)
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if get_origin(kind) in (tuple, list):
        count = "a list of" if is_open_ended(kind) else f"{len(get_args(kind))}"
        return f"{count} " + re.sub(r"^an? (whole )?(\w+)", r"\1\2s", in_words(get_args(kind)[0], bounds))
    if isinstance(noun := getattr(kind, "kind", None), str):  # a component class
        return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
    if get_origin(kind) is Mapping:
        return "a table"
    return f"{_TYPE_NAMES.get(kind) or getattr(kind, '__name__', kind)}{bounds if kind in _NUMBER_TYPES else ''}"


def json_schema(kind: Any, bounds: Mapping[str, float] = types.MappingProxyType({})) -> dict[str, Any]:
    """Return the JSON Schema for values of a type; records become objects without additional properties.

    Args:
        kind: the type; a class may define its own `json_schema()`
        bounds: the bounds of its numbers: `minimum` and so on
    """
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        # Text also stands for objects, which a file gives by their spelling.
        text_type = next((member for member in (str, Path) if member in get_args(kind)), None)
        kinds = [
            member
            for member in get_args(kind)
            if text_type in (None, member) or member in _PLAIN_TYPES or get_origin(member)
        ]
        return (
            {"anyOf": [json_schema(member, bounds) for member in kinds]} if kinds[1:] else json_schema(kinds[0], bounds)
        )
    if origin is Literal:
        return {"enum": list(get_args(kind))}
    if origin in (tuple, list):
        return {"type": "array", "items": json_schema(get_args(kind)[0], bounds)}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": json_schema(get_args(kind)[1], bounds)}
    if hasattr(kind, "json_schema"):
        schema: dict[str, Any] = kind.json_schema()
        return schema
    if dataclasses.is_dataclass(kind):
        hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
        return {
            "type": "object",
            "description": (kind.__doc__ or "").split("\n\n    Example:")[0].replace("\n    ", "\n").strip(),
            "properties": {field.name: json_schema(hints[field.name]) for field in fields},
            "required": [field.name for field in fields if default_of(field) is dataclasses.MISSING],
            "additionalProperties": False,
        }
    return {"type": _JSON_TYPES[kind], **(bounds if kind in _NUMBER_TYPES else {})} if kind in _JSON_TYPES else {}


def kinds_of(annotation: Any) -> list[Any]:
    """Return the types of a union, without None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return [kind for kind in get_args(annotation) if kind is not type(None)]
    return [annotation]


def is_optional(annotation: Any) -> bool:
    """Return whether a type allows None."""
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def is_open_ended(kind: Any) -> bool:
    """Return whether a list type allows any length."""
    return get_origin(kind) is list or get_args(kind)[1:] == (...,)


def format_value(value: Any) -> str:
    """Return the text of a value for messages, cut to LONGEST characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # too many digits, or nested too deep
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _convert_simple(value: Any, kind: Any, location: str, strict: bool) -> Any:
    """Convert a number, text, a path, or an object of a class."""
    fits = isinstance(value, _NUMBER_TYPES.get(kind, str | Path if kind is Path else kind))
    fits = fits and not (isinstance(value, bool) and kind is not bool)
    _require(fits and not (kind is str and not is_storable(value)), kind, value, location)
    if kind is float:
        try:
            number = float(value)
        except OverflowError:  # an int too large for a float
            number = math.inf
        _require(math.isfinite(number) or (isinstance(value, float) and not strict), kind, value, location)
        return number
    return kind(value) if kind in (int, Path) else value


def _convert_union(value: Any, kind: Any, location: str, strict: bool) -> Any:
    kinds = kinds_of(kind)
    if len(kinds) == 1:
        return typed(value, kinds[0], location, strict=strict)
    for member in kinds:
        with contextlib.suppress(InputError):
            return typed(value, member, location, strict=strict)
    raise InputError(f"{location or 'value'}: expected {in_words(kind)}, found {format_value(value)}")


def _convert_record(value: Any, kind: Any, location: str, strict: bool) -> Any:
    _require(isinstance(value, Mapping), Mapping[str, Any], value, location)
    hints, fields = typing.get_type_hints(kind), {field.name: field for field in dataclasses.fields(kind)}
    for key in value if strict else ():
        if key not in fields:
            raise InputError(f"{_join_location(location, key)}: unknown key{did_you_mean(key, fields)}")
    values = {key: entry for key, entry in value.items() if key in fields and (strict or entry is not None)}
    for name, field in fields.items():
        if name not in values and default_of(field) is dataclasses.MISSING:
            raise InputError(f"{_join_location(location, name)}: expected {in_words(hints[name])}, found nothing")
    return kind(
        **{key: typed(entry, hints[key], _join_location(location, key), strict=strict) for key, entry in values.items()}
    )


def _require(fits: bool, kind: Any, value: Any, location: str) -> None:
    if not fits:
        raise InputError(f"{location or 'value'}: expected {in_words(kind)}, found {format_value(value)}")


def _join_location(location: str, key: str) -> str:
    return f"{location}.{key}" if location else key
