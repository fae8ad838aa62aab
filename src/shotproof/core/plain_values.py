"""Records as plain values, which JSON can hold, and back."""

from __future__ import annotations

import contextlib
import dataclasses
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from shotproof.core.errors import InputError

LONGEST = 60  # characters of a value in a message
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def plain(value: Any) -> Any:
    """A value as JSON can hold it: records and tuples become tables and lists, a path its name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((each, getattr(value, each.name)) for each in dataclasses.fields(value))
        return {each.name: plain(one) for each, one in fields if one != default_of(each) and one is not None}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.name if isinstance(value, Path) else " ".join(repr(value).split())


def default_of(each: dataclasses.Field[Any]) -> Any:
    """A field's default; MISSING where it has none."""
    return each.default if each.default_factory is dataclasses.MISSING else each.default_factory()


def typed(value: Any, kind: Any, place: str = "") -> Any:
    """Plain values as records and other typed values; None, what is not given, stays None.

    Args:
        value: plain, as JSON or TOML holds it
        kind: a type, or a record, whose fields say what types their values have; other keys are passed over
        place: where the value is, for messages: `sampler.options`

    Raises:
        InputError: a value has another type; the message has its place, what was expected, and what was found.

    Example:
        >>> typed({"a": 1}, dict[str, int])
        {'a': 1}
        >>> typed([1, "b"], tuple[int, ...], "shots")
        Traceback (most recent call last):
        shotproof.core.errors.InputError: shots[1]: expected a whole number, found 'b'
    """
    if value is None or kind is Any:
        return value
    if get_origin(kind) in (Union, types.UnionType):
        return _one_of(value, [one for one in get_args(kind) if one is not type(None)], place)
    if dataclasses.is_dataclass(kind):
        return value if isinstance(value, kind) else _record(value, kind, place)  # type: ignore[arg-type]
    if get_origin(kind) is tuple:
        _require(isinstance(value, list | tuple), "a list", value, place)
        rows = [typed(one, get_args(kind)[0], f"{place}[{row}]") for row, one in enumerate(value)]
        for row, one in enumerate(rows):
            _require(one is not None, in_words(get_args(kind)[0]), one, f"{place}[{row}]")
        return tuple(rows)
    if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping):
        _require(isinstance(value, Mapping), "a table", value, place)
        of = get_args(kind)[1]
        entries = {key: typed(one, of, _below(place, key)) for key, one in value.items()}
        return {key: one for key, one in entries.items() if of is Any or one is not None}
    fits = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
    _require(fits, in_words(kind), value, place)
    return value


def in_words(kind: Any) -> str:
    """What messages call a type: `a whole number`."""
    return _WORDS.get(kind, "a list" if get_origin(kind) is tuple else "a table")


def shown(value: Any) -> str:
    """What messages show of a value that was found: its beginning."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # too many digits, or nested too deep
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _one_of(value: Any, kinds: list[Any], place: str) -> Any:
    if len(kinds) == 1:
        return typed(value, kinds[0], place)
    for kind in kinds:
        with contextlib.suppress(InputError):
            return typed(value, kind, place)
    raise InputError(f"{place}: expected {' or '.join(map(in_words, kinds))}, found {shown(value)}")


def _record(value: Any, kind: Any, place: str) -> Any:
    _require(isinstance(value, Mapping), "a table", value, place)
    hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
    read = {each.name: typed(value.get(each.name), hints[each.name], _below(place, each.name)) for each in fields}
    given = {key: one for key, one in read.items() if one is not None}
    for each in fields:
        needed = each.name not in given and default_of(each) is dataclasses.MISSING
        _require(not needed, in_words(hints[each.name]), None, _below(place, each.name))
    return kind(**given)


def _require(fits: bool, expected: str, found: Any, place: str) -> None:
    if not fits:
        raise InputError(f"{place or 'it'}: expected {expected}, found {shown(found)}")


def _below(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
