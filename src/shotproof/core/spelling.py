"""Strings that name a thing and its options, such as `ridge(penalty=1)`: read, never evaluated."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from shotproof.core.errors import InputError

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
    return f"{name}({', '.join(f'{key}={_written(value)}' for key, value in options.items())})" if options else name


def _written(value: Any) -> str:
    """A literal; a path as text, and whole numbers as people write them, `1` rather than `1.0`."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))}{',' if len(value) == 1 else ''})"
    return repr(str(value) if isinstance(value, PurePath) else value)


def parse_spelling(text: str, what: str = "name") -> tuple[str, str | None, dict[str, Any]]:
    """`hf:facebook/dinov2(pool='cls')` to its name, what stands after a colon (None: no colon) and its options.

    Args:
        text: what the user typed
        what: the kind of thing, for messages

    Returns:
        The name, the argument or None, and the options.

    Raises:
        InputError: it cannot be read.

    Example:
        >>> parse_spelling("greedy(rounds=2, mode='hard')")
        ('greedy', None, {'rounds': 2, 'mode': 'hard'})
        >>> parse_spelling("hf:facebook/dinov2")
        ('hf', 'facebook/dinov2', {})
    """
    name, colon, argument = text.strip().partition(":")
    if not colon or "(" in name:
        name, options = parse_call(text)
        return name, None, options
    if not argument:
        raise InputError(f"{what} '{text}': expected something after the colon, e.g. {name}:NAME")
    # A path may hold parentheses; only `(option=...)` at the very end is read as options.
    found = re.fullmatch(r"(.+?)(\(\s*\w+\s*=.*\))?", argument, re.DOTALL)
    assert found is not None  # the pattern matches any text
    return name, found[1], parse_call(f"_{found[2]}")[1] if found[2] else {}


def _keyword_arguments(parenthesized: str, text: str) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes, as in the path 'C:\\data'
            call = ast.parse(f"_{parenthesized}", mode="eval").body
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
