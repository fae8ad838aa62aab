"""Spellings: strings that name a component and its options, such as `ridge(penalty=1)`; parsed, never evaluated."""

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


def parse_call(text: str, kind: str = "") -> tuple[str, dict[str, Any]]:
    """Parse `ridge(penalty=1)` into the name and its keyword arguments, which are literals; a bare name has none.

    Args:
        text: what the user typed
        kind: the kind of component, for messages
    """
    stripped = text.strip()
    name, opening, arguments = stripped.partition("(")
    name, title = name.strip(), f"{kind} '{text}'".lstrip()
    if not _NAME.fullmatch(name):
        raise InputError(f"cannot read {title}: '{name}' is not a name; {_ALLOWED}")
    return name, _parse_keywords(f"({arguments}", title) if opening else {}


def write_call(name: str, options: Mapping[str, Any]) -> str:
    """Return the string that `parse_call` reads as this name and these options."""
    return (
        f"{name}({', '.join(f'{key}={_format_literal(value)}' for key, value in options.items())})" if options else name
    )


def _format_literal(value: Any) -> str:
    """Format a value as a literal: paths as text, floats that are whole numbers as `1` rather than `1.0`."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, tuple):
        return f"({', '.join(map(_format_literal, value))}{',' if len(value) == 1 else ''})"
    return repr(str(value) if isinstance(value, PurePath) else value)


def parse_spelling(text: str, kind: str = "") -> tuple[str, str | None, dict[str, Any]]:
    """Parse `hf:facebook/dinov2(pool='cls')` into its name, the argument after the colon, and its options.

    Args:
        text: what the user typed
        kind: the kind of component, for messages

    Returns:
        The name, the argument (None without a colon), and the options.

    Raises:
        InputError: the text cannot be parsed.

    Example:
        >>> parse_spelling("greedy(rounds=2, mode='hard')")
        ('greedy', None, {'rounds': 2, 'mode': 'hard'})
        >>> parse_spelling("hf:facebook/dinov2")
        ('hf', 'facebook/dinov2', {})
    """
    name, colon, argument = text.strip().partition(":")
    if not colon or "(" in name:
        name, options = parse_call(text, kind)
        return name, None, options
    if not argument:
        raise InputError(f"{kind or 'name'} '{text}': expected something after the colon, e.g. {name}:NAME")
    # A path may contain parentheses; only `(option=...)` at the very end is parsed as options.
    match = re.fullmatch(r"(.+?)(\(\s*\w+\s*=.*\))?", argument, re.DOTALL)
    assert match is not None  # the pattern matches any text
    return name, match[1], parse_call(f"_{match[2]}", kind)[1] if match[2] else {}


def _parse_keywords(parenthesized: str, title: str) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes, as in the path 'C:\\data'
            call = ast.parse(f"_{parenthesized}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"cannot read {title}: {_ALLOWED}") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise InputError(f"cannot read {title}: {_ALLOWED}")
    options: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in options:
            raise InputError(f"cannot read {title}: an option is given twice or without a name; {_ALLOWED}")
        options[keyword.arg] = _parse_literal(keyword.value, keyword.arg, title)
    return options


def _parse_literal(node: ast.expr, option: str, title: str) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Tuple(elts=elements):
            return tuple(_parse_literal(element, option, title) for element in elements)
        case ast.List(elts=elements):
            return [_parse_literal(element, option, title) for element in elements]
    raise InputError(f"cannot read {title}: option '{option}' is not a literal; {_ALLOWED}")
