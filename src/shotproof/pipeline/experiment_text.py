"""An experiment that was put together, as the text of its file: TOML, with paths from its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from shotproof.core.options import Component
from shotproof.core.sections import Entry, Section

C = TypeVar("C", bound=Component)


def experiment_text(content: Mapping[str, Any], about: str) -> str:
    """The file of an experiment.

    Args:
        content: its tables
        about: the comment that it begins with

    Example:
        >>> print(experiment_text({"catalog": {"root": "birds"}}, "Birds."))
        # Birds.
        <BLANKLINE>
        [catalog]
        root = "birds"
        <BLANKLINE>
    """
    lines = [f"# {about}"]
    for section, values in content.items():
        lines += ["", f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def table_of(section: Section, folder: Path, outer: Section | None = None) -> dict[str, Any]:
    """Return the table of a section, or the tables of a whole file: what differs from the defaults.

    Args:
        section: of a file that no [mix] and no [runtime] is part of
        folder: of the file, which paths start from
        outer: the section that it is an entry of, whose values it takes over
    """
    table: dict[str, Any] = {}
    if isinstance(section, Entry):
        table["name"] = spelling_from(folder, getattr(section, section.kind))
    for each in section.beside() if isinstance(section, Entry) else section.options():
        value = getattr(section, each.name)
        if value != getattr(outer, each.name, each.default):
            table[each.name] = _plain(value, folder, section)
    return table


def path_from(folder: Path, path: Path) -> str:
    """A path as it is written in an experiment of this folder."""
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def spelling_from(folder: Path, component: Component) -> str:
    """The spelling of a component, with files that its options name as paths from the experiment's folder."""
    return with_files(component, lambda file: path_from(folder, file)).spelling


def with_files(component: C, told: Callable[[Path], str | Path]) -> C:
    """Return the component with files that its options name told otherwise."""
    moved: dict[str, Any] = {}
    for option in component.options():
        value = getattr(component, option.name)
        if option.path and isinstance(value, str | Path) and Path(value).exists():
            moved[option.name] = type(value)(told(Path(value)))
    return replace(component, **moved) if moved else component  # type: ignore[type-var]


def method_from(folder: Path, given: str) -> str:
    """A method as a user spells it, with the file that it names as a path from the experiment's folder."""
    file, colon, rest = given.partition(".py:")
    if colon and Path(f"{file}.py").is_file():
        return f"{path_from(folder, Path(f'{file}.py'))}:{rest}"
    kind, colon, rest = given.partition(":")
    return f"{kind}:{path_from(folder, Path(rest))}" if kind == "model" and colon else given


def toml_value(value: Any) -> str:
    """Write a value as TOML: text as JSON writes it, tables inline.

    Example:
        >>> toml_value(["random", 5])
        '["random", 5]'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        inner = [toml_value(one) for one in value]
        if any(isinstance(one, Mapping) for one in value):
            return "[\n" + "".join(f"    {one},\n" for one in inner) + "]"
        return f"[{', '.join(inner)}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(value: Any, folder: Path, outer: Section) -> Any:
    """Return a section's value as a file has it."""
    if isinstance(value, Section):
        table = table_of(value, folder, outer)
        return table["name"] if isinstance(value, Entry) and list(table) == ["name"] else table
    if isinstance(value, Component):
        return spelling_from(folder, value)
    if isinstance(value, Mapping):
        return {key: _plain(one, folder, outer) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(one, folder, outer) for one in value]
    return path_from(folder, value) if isinstance(value, Path) else value


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)
