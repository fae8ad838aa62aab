"""Records as plain values, which JSON can hold, and back."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin


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


def typed(value: Any, kind: Any) -> Any:
    """Plain values as records; what has another type than the record's field, in somebody's own file, is left out."""
    if dataclasses.is_dataclass(kind):
        if isinstance(value, kind):  # type: ignore[arg-type]
            return value
        if not isinstance(value, Mapping):
            return None
        hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
        read = {each.name: typed(value.get(each.name), hints[each.name]) for each in fields}
        given = {key: one for key, one in read.items() if one is not None}
        whole = all(each.name in given or default_of(each) is not dataclasses.MISSING for each in fields)
        return kind(**given) if whole else None  # type: ignore[operator]
    if get_origin(kind) in (Union, types.UnionType):
        return next((read for one in get_args(kind) if (read := typed(value, one)) is not None), None)
    if get_origin(kind) is tuple:
        rows = value if isinstance(value, Sequence) and not isinstance(value, str) else None
        typed_rows = (typed(one, get_args(kind)[0]) for one in rows or ())
        return None if rows is None else tuple(one for one in typed_rows if one is not None)
    if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping):
        if not isinstance(value, Mapping):
            return None
        of = get_args(kind)[1]
        entries = {key: typed(one, of) for key, one in value.items()}
        return {key: one for key, one in entries.items() if of is Any or one is not None}
    if kind is Any:
        return value
    return value if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool) else None
