"""Strings that name a thing and its options, such as `ridge(penalty=1)`: read, never evaluated."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from shotproof.errors import InputError

_NAME = re.compile(r"[A-Za-z_][\w.+\-]*")
_ALLOWED = "expected NAME or NAME(option=value, ...), values: numbers, strings, True, False, None, tuples and lists"


def parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """`ridge(penalty=1)` to its name and its keyword arguments, which are literals; a bare name has none."""
    stripped = text.strip()
    name, opening, rest = stripped.partition("(")
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise InputError(f"cannot read '{text}': '{name}' is not a name; {_ALLOWED}")
    return name, _keyword_arguments(f"({rest}", text) if opening else {}


def write_call(name: str, options: Mapping[str, Any]) -> str:
    """The string that `parse_call` reads as this name and these options."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in options.items())})" if options else name


def parse_options(pairs: Iterable[str]) -> dict[str, Any]:
    """`key=value` pairs of a command line to options; a value that is no literal is a string as it stands."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key.isidentifier() or key in options:
            raise InputError(f"option '{pair}': expected key=value, each key once")
        options[key] = _value(value)
    return options


def _value(text: str) -> Any:
    try:
        return _keyword_arguments(f"(value=({text}))", text)["value"] if text else text
    except InputError:
        return text


def _keyword_arguments(parenthesised: str, text: str) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes, as in the path 'C:\\data'
            call = ast.parse(f"_{parenthesised}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"cannot read '{text}': {_ALLOWED}") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise InputError(f"cannot read '{text}': {_ALLOWED}")
    options: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in options:
            raise InputError(f"cannot read '{text}': an option is given twice or without a name; {_ALLOWED}")
        options[keyword.arg] = _literal(keyword.value, keyword.arg, text)
    return options


def _literal(node: ast.expr, option: str, text: str) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Tuple(elts=elements):
            return tuple(_literal(element, option, text) for element in elements)
        case ast.List(elts=elements):
            return [_literal(element, option, text) for element in elements]
    raise InputError(f"cannot read '{text}': option '{option}' is not a literal; {_ALLOWED}")
