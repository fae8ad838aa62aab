"""Experiment built in memory as the text of a TOML file, with paths relative to its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from shotproof.core.options import Component
from shotproof.core.sections import Entry, Section
from shotproof.pipeline.masks_section import Masking

C = TypeVar("C", bound=Component)


def experiment_text(content: Mapping[str, Any], about: str) -> str:
    """Format the tables of an experiment as TOML.

    Args:
        content: tables
        about: comment at the top

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
    """Return the values of a section, or of a full file, that differ from the defaults.

    Args:
        section: section of a file, except [mix] and [runtime]
        folder: folder of the file, which paths are relative to
        outer: section that contains this one; an entry inherits its values
    """
    table: dict[str, Any] = {}
    if isinstance(section, Entry):
        table["name"] = spelling_from(folder, getattr(section, section.kind))
    for option in section.entry_options() if isinstance(section, Entry) else section.options():
        value = section.value(option.name) if isinstance(section, Masking) else getattr(section, option.name)
        inherited = getattr(outer, option.name, option.default) if isinstance(section, Entry) else option.default
        if value != inherited:
            table[option.name] = _to_plain(value, folder, section)
    return table


def path_from(folder: Path, path: Path) -> str:
    """Return the path relative to the folder of an experiment."""
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def spelling_from(folder: Path, component: Component) -> str:
    """Return the spelling of a component, with the files in its options relative to the experiment's folder."""
    return with_files(component, lambda file: path_from(folder, file)).spelling


def with_files(component: C, relocate: Callable[[Path], str | Path]) -> C:
    """Return the component with `relocate` applied to the files in its options."""
    relocated: dict[str, Any] = {}
    for option in component.options():
        value = getattr(component, option.name)
        if option.path and isinstance(value, str | Path) and Path(value).exists():
            relocated[option.name] = type(value)(relocate(Path(value)))
    return replace(component, **relocated) if relocated else component  # type: ignore[type-var]


def method_from(folder: Path, spelling: str) -> str:
    """Return the spelling of a method, with the file that it names relative to the experiment's folder."""
    file, colon, target = spelling.partition(".py:")
    if colon and Path(f"{file}.py").is_file():
        return f"{path_from(folder, Path(f'{file}.py'))}:{target}"
    kind, colon, target = spelling.partition(":")
    return f"{kind}:{path_from(folder, Path(target))}" if kind == "model" and colon else spelling


def toml_value(value: Any) -> str:
    """Format a value as TOML: strings as in JSON, tables inline.

    Example:
        >>> toml_value(["random", 5])
        '["random", 5]'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_format_key(key)} = {toml_value(element)}" for key, element in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        inner = [toml_value(element) for element in value]
        if any(isinstance(element, Mapping) for element in value):
            return "[\n" + "".join(f"    {element},\n" for element in inner) + "]"
        return f"[{', '.join(inner)}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _to_plain(value: Any, folder: Path, outer: Section) -> Any:
    """Convert a value of a section to plain TOML values."""
    if isinstance(value, Section):
        table = table_of(value, folder, outer)
        return table["name"] if isinstance(value, Entry) and list(table) == ["name"] else table
    if isinstance(value, Component):
        return spelling_from(folder, value)
    if isinstance(value, Mapping):
        return {key: _to_plain(element, folder, outer) for key, element in value.items()}
    if isinstance(value, tuple):
        return [_to_plain(element, folder, outer) for element in value]
    return path_from(folder, value) if isinstance(value, Path) else value


def _format_key(key: str) -> str:
    """Quote a key if TOML requires it."""
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)
