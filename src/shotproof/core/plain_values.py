"""Records as plain values, which JSON and TOML can hold, and back; what types admit, in words and as a JSON Schema."""

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
_WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text", Path: "a path"}
_JSON_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string", Path: "string", type(None): "null"}
_PLAIN = {int, float, bool, str, type(None)}
_NUMBERS: dict[Any, type] = {int: numbers.Integral, float: numbers.Real}  # NumPy's are taken, and become Python's


def plain(value: Any, *, whole: bool = False) -> Any:
    """Return a value as JSON can hold it: records and tuples become tables and lists, a path its name.

    Args:
        value: to be written
        whole: write every field of a record, and NaN as null, so that whoever reads it finds what is described;
            otherwise fields at their defaults are left out
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((each, getattr(value, each.name)) for each in dataclasses.fields(value))
        kept = ((each, one) for each, one in fields if whole or (one != default_of(each) and one is not None))
        return {each.name: plain(one, whole=whole) for each, one in kept}
    if isinstance(value, Mapping):
        return {str(key): plain(one, whole=whole) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, whole=whole) for one in value]
    if whole and isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.name if isinstance(value, Path) else " ".join(repr(value).split())


def default_of(each: dataclasses.Field[Any]) -> Any:
    """Return a field's default; MISSING if it has none."""
    return each.default if each.default_factory is dataclasses.MISSING else each.default_factory()


def typed(value: Any, kind: Any, place: str = "", *, strict: bool = False) -> Any:
    """Return plain values as records and other typed values: a list as a tuple, text as a path.

    Args:
        value: plain, as JSON or TOML holds it
        kind: a type, or a record, whose fields say what types their values have
        place: where the value is, for messages: `sampler.options`
        strict: refuse, as the JSON Schema of the record does, keys that it has not, None and numbers that are not
            finite; otherwise keys are passed over, and None is what is not given

    Raises:
        InputError: a value has another type; the message has its place, what was expected, and what was found.

    Example:
        >>> typed({"a": 1}, dict[str, int])
        {'a': 1}
        >>> typed([1, "b"], tuple[int, ...], "shots")
        Traceback (most recent call last):
        shotproof.core.errors.InputError: shots[1]: expected a whole number, found 'b'
    """
    if kind is Any or (value is None and (is_optional(kind) or not strict)):
        return value
    of = get_origin(kind)
    if of in (Union, types.UnionType):
        return _one_of(value, kind, place, strict)
    if of is Literal:
        _require(value in get_args(kind) and not isinstance(value, bool), kind, value, place)
        return value
    if of in (tuple, list):
        _require(isinstance(value, Sequence) and not isinstance(value, str), kind, value, place)
        _require(is_open_ended(kind) or len(value) == len(get_args(kind)), kind, value, place)
        kinds = get_args(kind)[:1] * len(value) if is_open_ended(kind) else get_args(kind)
        entries = []
        for number, (one, one_kind) in enumerate(zip(value, kinds, strict=True)):
            _require(one is not None or is_optional(one_kind), one_kind, one, f"{place}[{number}]")
            entries.append(typed(one, one_kind, f"{place}[{number}]", strict=strict))
        return tuple(entries)
    if of is not None and issubclass(of, Mapping):
        _require(isinstance(value, Mapping), kind, value, place)
        one_kind = get_args(kind)[1]
        table = {key: typed(one, one_kind, _below(place, key), strict=strict) for key, one in value.items()}
        return {key: one for key, one in table.items() if strict or one_kind is Any or one is not None}
    if dataclasses.is_dataclass(kind):
        return value if isinstance(value, kind) else _record(value, kind, place, strict)  # type: ignore[arg-type]
    return _simple(value, kind, place, strict)


def in_words(kind: Any, bounds: str = "") -> str:
    """Return what messages call a type: `a whole number`, `a list of text`.

    Args:
        kind: the type
        bounds: of its numbers, in words: ` from 1 to 8`
    """
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(in_words(one, bounds) for one in kinds_of(kind)) + " or None" * is_optional(kind)
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if get_origin(kind) in (tuple, list):
        count = "a list of" if is_open_ended(kind) else f"{len(get_args(kind))}"
        return f"{count} " + re.sub(r"^an? (whole )?(\w+)", r"\1\2s", in_words(get_args(kind)[0], bounds))
    if isinstance(noun := getattr(kind, "kind", None), str):  # of a component
        return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
    if get_origin(kind) is Mapping:
        return "a table"
    return f"{_WORDS.get(kind) or getattr(kind, '__name__', kind)}{bounds if kind in _NUMBERS else ''}"


def json_schema(kind: Any, bounds: Mapping[str, float] = types.MappingProxyType({})) -> dict[str, Any]:
    """Return the JSON Schema of values of a type: records are objects without further keys.

    Args:
        kind: the type; a class may have a `json_schema()` of its own
        bounds: of its numbers: `minimum` and so on
    """
    of = get_origin(kind)
    if of in (Union, types.UnionType):
        text = next((one for one in (str, Path) if one in get_args(kind)), None)  # which stands for objects, too
        kinds = [one for one in get_args(kind) if text in (None, one) or one in _PLAIN or get_origin(one)]
        return {"anyOf": [json_schema(one, bounds) for one in kinds]} if kinds[1:] else json_schema(kinds[0], bounds)
    if of is Literal:
        return {"enum": list(get_args(kind))}
    if of in (tuple, list):
        return {"type": "array", "items": json_schema(get_args(kind)[0], bounds)}
    if of is not None and issubclass(of, Mapping):
        return {"type": "object", "additionalProperties": json_schema(get_args(kind)[1], bounds)}
    if hasattr(kind, "json_schema"):
        own: dict[str, Any] = kind.json_schema()
        return own
    if dataclasses.is_dataclass(kind):
        hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
        return {
            "type": "object",
            "description": (kind.__doc__ or "").split("\n\n    Example:")[0].replace("\n    ", "\n").strip(),
            "properties": {each.name: json_schema(hints[each.name]) for each in fields},
            "required": [each.name for each in fields if default_of(each) is dataclasses.MISSING],
            "additionalProperties": False,
        }
    return {"type": _JSON_TYPES[kind], **(bounds if kind in _NUMBERS else {})} if kind in _JSON_TYPES else {}


def kinds_of(annotated: Any) -> list[Any]:
    """Return the types of a union, without None."""
    if get_origin(annotated) in (Union, types.UnionType):
        return [kind for kind in get_args(annotated) if kind is not type(None)]
    return [annotated]


def is_optional(annotated: Any) -> bool:
    """Return whether a type admits None."""
    return get_origin(annotated) in (Union, types.UnionType) and type(None) in get_args(annotated)


def is_open_ended(kind: Any) -> bool:
    """Return whether a type of lists admits any length."""
    return get_origin(kind) is list or get_args(kind)[1:] == (...,)


def shown(value: Any) -> str:
    """Return what messages show of a value that was found: its beginning."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # too many digits, or nested too deep
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _simple(value: Any, kind: Any, place: str, strict: bool) -> Any:
    """Return a number, text, a path, or an object of a class."""
    fits = isinstance(value, _NUMBERS.get(kind, str | Path if kind is Path else kind))
    fits = fits and not (isinstance(value, bool) and kind is not bool)
    _require(fits and not (kind is str and not is_storable(value)), kind, value, place)
    if kind is float:
        try:
            number = float(value)
        except OverflowError:  # a whole number that is too large for one
            number = math.inf
        _require(math.isfinite(number) or (isinstance(value, float) and not strict), kind, value, place)
        return number
    return kind(value) if kind in (int, Path) else value


def _one_of(value: Any, kind: Any, place: str, strict: bool) -> Any:
    kinds = kinds_of(kind)
    if len(kinds) == 1:
        return typed(value, kinds[0], place, strict=strict)
    for one in kinds:
        with contextlib.suppress(InputError):
            return typed(value, one, place, strict=strict)
    raise InputError(f"{place}: expected {in_words(kind)}, found {shown(value)}")


def _record(value: Any, kind: Any, place: str, strict: bool) -> Any:
    _require(isinstance(value, Mapping), Mapping[str, Any], value, place)
    hints, fields = typing.get_type_hints(kind), {each.name: each for each in dataclasses.fields(kind)}
    for key in value if strict else ():
        if key not in fields:
            raise InputError(f"{_below(place, key)}: unknown key{did_you_mean(key, fields)}")
    given = {key: one for key, one in value.items() if key in fields and (strict or one is not None)}
    for name, each in fields.items():
        if name not in given and default_of(each) is dataclasses.MISSING:
            raise InputError(f"{_below(place, name)}: expected {in_words(hints[name])}, found nothing")
    return kind(**{key: typed(one, hints[key], _below(place, key), strict=strict) for key, one in given.items()})


def _require(fits: bool, kind: Any, found: Any, place: str) -> None:
    if not fits:
        raise InputError(f"{place or 'it'}: expected {in_words(kind)}, found {shown(found)}")


def _below(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
