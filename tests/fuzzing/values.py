"""Values of every type, and values that programs trip over."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzzing.choices import Choices

DEEP = 1_000
LONG = 5_000


def nested_list(depth: int) -> Any:
    """Lists within lists."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def nested_table(depth: int) -> Any:
    """Tables within tables."""
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


class Deep:
    """Stands for a value that is nested too deep for a writer to write: written as text."""

    def __init__(self, opening: str, closing: str, depth: int = DEEP) -> None:
        self.text = opening * depth + "1" + closing * depth


_OF_ANY: tuple[Callable[[], Any], ...] = (
    lambda: True,
    lambda: 0,
    lambda: -1,
    lambda: 5,
    lambda: 2**31,
    lambda: 2**63 - 1,
    lambda: 10**23,
    lambda: 0.5,
    lambda: 1e308,
    lambda: float("nan"),
    lambda: float("-inf"),
    lambda: "",
    lambda: "x",
    lambda: "a\0b",
    lambda: "é" * LONG,
    lambda: "../../x",
    lambda: "/dev/zero",
    lambda: "[x](y='",
    lambda: "\x1b[2J\r\n::error::\u202ex",
    lambda: "5",
    lambda: 5.0,
    lambda: -1e-320,
    lambda: float("inf"),
    lambda: [],
    lambda: [1],
    lambda: ["x", 1],
    lambda: [[["x"]]],
    lambda: {},
    lambda: {"name": 5},
    lambda: {"name": ["x"], "x": {}},
    lambda: {"a" * LONG: "x", "b\0": 1},
)
_OF_JSON: tuple[Callable[[], Any], ...] = (
    *_OF_ANY,
    lambda: None,
    lambda: [None],
    lambda: None,
    lambda: [None, None],
    lambda: {"digest": None, "name": None, "spelling": None, "options": None},
    lambda: 2**70,
    lambda: 10**400,
    lambda: -(10**400),
    lambda: "\ud800",
    lambda: ["\udfff"],
    lambda: Deep("[", "]"),
    lambda: Deep('{"a":', "}", 900),
    lambda: nested_list(150),
)
_OF_TOML: tuple[Callable[[], Any], ...] = (
    *_OF_ANY,
    lambda: datetime.date(2024, 2, 29),
    lambda: datetime.time(1, 2, 3),
    lambda: datetime.datetime(2024, 2, 29, 1, 2, 3),
    lambda: Deep("[", "]"),
    lambda: nested_list(150),
    lambda: nested_table(150),
)


def all_toml_values() -> list[Any]:
    """One of each kind of value that TOML can hold, but those that only text can."""
    return [value for make in _OF_TOML if not isinstance(value := make(), Deep)]


def json_value(choices: Choices) -> Any:
    """Any value that JSON can hold."""
    return choices.pick(_OF_JSON)()


def toml_value(choices: Choices) -> Any:
    """Any value that TOML can hold."""
    return choices.pick(_OF_TOML)()


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value below a document's top."""
    pairs = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in pairs:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(document: Any, choices: Choices, value: Callable[[Choices], Any], keys: tuple[str, ...] = ()) -> Any:
    """A document, of which this may change parts, with one value replaced, removed, moved or added."""
    found = list(places(document))
    action = choices.below(16)
    if action == 15 or not found:
        return value(choices)
    if action == 1 and keys and isinstance(document, dict):
        document[choices.pick(keys)] = value(choices)
        return document
    path = choices.pick(found)
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    if action == 2:
        del holder[path[-1]]
    elif action == 3 and isinstance(holder, dict):
        holder[choices.pick(("", "x", "a\0", "b" * LONG, *keys))] = holder.pop(path[-1])
    elif action == 4:
        other = document
        for key in choices.pick(found):
            other = other[key]
        holder[path[-1]] = json.loads(json.dumps(other, default=str))
    elif action == 5:
        holder[path[-1]] = [holder[path[-1]]]
    else:
        holder[path[-1]] = value(choices)
    return document


def to_json(document: Any) -> str:
    """As text, also with what json refuses to write."""
    if isinstance(document, Deep):
        return document.text
    if isinstance(document, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{to_json(one)}" for key, one in document.items()) + "}"
    if isinstance(document, list):
        return "[" + ",".join(map(to_json, document)) + "]"
    return json.dumps(document)


def to_toml(document: Any) -> str:
    """A document of tables as TOML text."""
    if not isinstance(document, dict):
        return f"value = {_toml(document)}\n"
    plain = {key: value for key, value in document.items() if not isinstance(value, dict)}
    text = "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in plain.items())
    for section, values in document.items():
        if isinstance(values, dict):
            lines = (f"{json.dumps(key)} = {_toml(value)}\n" for key, value in values.items())
            text += f"[{json.dumps(section)}]\n{''.join(lines)}"
    return text


def _toml(value: Any) -> str:
    if isinstance(value, Deep):
        return value.text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return {"nan": "nan", "inf": "inf", "-inf": "-inf"}.get(str(value), repr(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value) if isinstance(value, bool | int) else value.isoformat()
