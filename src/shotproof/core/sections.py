"""Tables of a file as records of options: read, checked with the location in messages, described by a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, get_args, get_origin

from shotproof.core.errors import InputError, did_you_mean, error_prefix
from shotproof.core.options import Checked, Component, Option, object_schema
from shotproof.core.plain_values import format_value, kinds_of
from shotproof.core.registry import registries
from shotproof.core.storage.places import resolve_path


@dataclass(frozen=True)
class Place:
    """Location of a value in a file; as text, the part of a message that follows the file's name.

    folder: the file's folder, which relative paths start from
    parts: the section, the key, and any keys below

    Example:
        >>> str(Place(Path(), ("tasks", "way")))
        ', [tasks], way'
    """

    folder: Path
    parts: tuple[str, ...] = ()

    def at(self, key: str) -> Place:
        """Return the location of a key in this table."""
        return Place(self.folder, (*self.parts, key))

    @property
    def above(self) -> Place:
        """Return the location of the enclosing table."""
        return Place(self.folder, self.parts[:-1])

    @property
    def as_section(self) -> Place:
        """Return the location as a section header: `[evaluate.tune_on]`."""
        return Place(self.folder, (".".join(self.parts),) if self.parts else ())

    @property
    def noun(self) -> str:
        """Return the word for the entries of this table in messages: key, or section at the top level."""
        return "key" if self.parts else "section"

    def __str__(self) -> str:
        section, *keys = self.parts or ("",)
        return ", ".join(["", f"[{section}]", *keys]) if section else ""


class Section(Checked):
    """Table of a file. A subclass is a frozen dataclass whose options are the keys of the table."""

    kind: ClassVar[str] = "table"

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the record from a table of a file.

        Args:
            table: as parsed from TOML
            place: the location of the table

        Raises:
            InputError: a key is unknown or missing, or a value is invalid; the message begins with the location, and
                the caller adds the file's name.
        """
        values = read_options(cls.options(), table, place.as_section)
        with error_prefix(f"{place.as_section}: "):
            return cls(**values)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the record's table in a file."""
        required = [option.name for option in cls.options() if option.required]
        schema = object_schema({option.name: option.json_schema() for option in cls.options()})
        return schema | {"required": required} if required else schema


class Entry(Section):
    """Component in a list of a file, with further keys next to its own options.

    A subclass is a frozen dataclass. Its `kind` is that of the component, and also the name of the field that holds it,
    e.g. `sampler`.
    """

    @classmethod
    def entry_options(cls) -> tuple[Option, ...]:
        """Return the options of the entry that do not belong to the component."""
        return tuple(option for option in cls.options() if option.name != cls.kind)

    @classmethod
    def make(cls, spec: str | Mapping[str, Any], folder: Path) -> Any:
        """Build the component from its spelling, or from a table with its name and options."""
        return registries[cls.kind].make(spec).resolved_against(folder)

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read an entry: a spelling, or a table with a name, the component's options and the options of the entry."""
        entry_options = {option.name: option for option in cls.entry_options()}
        entry_table = {"name": table} if isinstance(table, str) else table
        with error_prefix(f"{place}: "):
            if not isinstance(entry_table, Mapping) or not isinstance(entry_table.get("name"), str):
                raise InputError(f'expected "NAME(option=value)" or {{ name = "NAME" }}, found {format_value(table)}')
            component_table = {name: value for name, value in entry_table.items() if name not in entry_options}
            for name in component_table:
                _reject_alias(name, entry_options.values())
            component = cls.make(component_table if len(component_table) > 1 else component_table["name"], place.folder)
        entry_values = {name: value for name, value in entry_table.items() if name in entry_options}
        values = read_options(entry_options.values(), entry_values, place.above.at(f"{cls.kind} '{component}'"))
        return cls(**{cls.kind: component}, **values)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of an entry."""
        return registries[cls.kind].json_schema({option.name: option.json_schema() for option in cls.entry_options()})

    def __str__(self) -> str:
        return str(getattr(self, self.kind))

    @property
    def _title(self) -> str:
        return f"{self.kind} '{self}'"


def read_options(options: Iterable[Option], table: Any, place: Place) -> dict[str, Any]:
    """Read the values that a table of a file has for some options.

    Args:
        options: the options that the table may have
        table: as parsed from TOML
        place: the location of the table

    Raises:
        InputError: a key is unknown or missing, or a value is invalid; the message begins with the location.
    """
    by_name = {option.name: option for option in options}
    with error_prefix(f"{place}: "):
        if not isinstance(table, Mapping):
            raise InputError(f"expected a table, found {format_value(table)}")
        for key in table:
            if key not in by_name:
                _reject_alias(key, by_name.values())
                raise InputError(f"unknown {place.noun} '{key}'{did_you_mean(key, by_name)}")
        for option in by_name.values():
            if option.required and option.name not in table:
                raise InputError(f"the {place.noun} '{option.name}' is missing: {option.help}")
    return {
        option.name: _read_option(option, table[option.name], place)
        for option in by_name.values()
        if option.name in table
    }


def _read_option(option: Option, value: Any, place: Place) -> Any:
    """Read an option's value: spellings become components, paths start from the file's folder."""
    is_single = option.single and isinstance(value, str)
    parsed = _read(option.kind, [value] if is_single else value, place.at(option.name))
    with error_prefix(f"{place}, "):
        return option.without_none().check(parsed)


def _read(kind: Any, value: Any, place: Place) -> Any:
    """Convert a value from a file to the option's type; leave a value that fits no type for the later check."""
    for member in kinds_of(kind):
        if member is str and isinstance(value, str):
            return value
        if member is Path and isinstance(value, str):
            return resolve_path(place.folder, value)
        if get_origin(member) is tuple and isinstance(value, list):
            return [_read(get_args(member)[0], entry, place) for entry in value]
        if get_origin(member) is Mapping and isinstance(value, Mapping):
            return {key: _read(get_args(member)[1], entry, place.at(key)) for key, entry in value.items()}
        if isinstance(member, type) and issubclass(member, Component) and isinstance(value, str | Mapping):
            with error_prefix(f"{place}: "):
                return registries[member.kind].make(value).resolved_against(place.folder)
        if isinstance(member, type) and issubclass(member, Section):
            return member.read(value, place)
    return value


def _reject_alias(name: str, options: Iterable[Option]) -> None:
    for option in options:
        if name in option.also:
            raise InputError(f"unknown key '{name}': did you mean '{option.name}'?")
