"""Tables of a file as records of options: read, checked with the place in the message, and told as a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, get_args, get_origin

from shotproof.core.errors import InputError, did_you_mean, placed
from shotproof.core.options import Checked, Component, Option, object_schema
from shotproof.core.plain_values import kinds_of, shown
from shotproof.core.registry import registries
from shotproof.core.storage.places import joined


@dataclass(frozen=True)
class Place:
    """Where a value is in a file; as text, the beginning of a message, for the file's name to be put before.

    folder: of the file, which its paths start from
    parts: the section, the key, and what is below

    Example:
        >>> str(Place(Path(), ("tasks", "way")))
        ', [tasks], way'
    """

    folder: Path
    parts: tuple[str, ...] = ()

    def at(self, key: str) -> Place:
        """Return the place of a key."""
        return Place(self.folder, (*self.parts, key))

    @property
    def above(self) -> Place:
        """Return the place that has this one."""
        return Place(self.folder, self.parts[:-1])

    @property
    def as_section(self) -> Place:
        """Return the place as a table of its own: `[evaluate.tune_on]`."""
        return Place(self.folder, (".".join(self.parts),) if self.parts else ())

    @property
    def noun(self) -> str:
        """Return what messages call the keys of this place."""
        return "key" if self.parts else "section"

    def __str__(self) -> str:
        section, *keys = self.parts or ("",)
        return ", ".join(["", f"[{section}]", *keys]) if section else ""


class Section(Checked):
    """A table of a file: a subclass is a frozen dataclass, and its options are the table's keys."""

    kind: ClassVar[str] = "table"

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read the record from a table of a file.

        Args:
            table: as TOML has it
            place: of the table

        Raises:
            InputError: a key is unknown or missing, or a value cannot be; the message begins with the place, for the
                file's name to be put before.
        """
        values = read_options(cls.options(), table, place.as_section)
        with placed(f"{place.as_section}: "):
            return cls(**values)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the record's table in a file."""
        required = [each.name for each in cls.options() if each.required]
        schema = object_schema({each.name: each.json_schema() for each in cls.options()})
        return schema | {"required": required} if required else schema


class Entry(Section):
    """A component in a list of a file, with what is said of it beside its own options.

    A subclass is a frozen dataclass; its `kind` is the component's, and one of its fields is called so, e.g. `sampler`.
    """

    @classmethod
    def beside(cls) -> tuple[Option, ...]:
        """Return the options beside the component."""
        return tuple(each for each in cls.options() if each.name != cls.kind)

    @classmethod
    def make(cls, given: str | Mapping[str, Any], folder: Path) -> Any:
        """Make the component from its spelling, or from a table of its name and options."""
        return registries[cls.kind].make(given).found_from(folder)

    @classmethod
    def read(cls, table: Any, place: Place) -> Self:
        """Read an entry: a spelling, or a table of a name, the component's options, and these."""
        keys = {each.name: each for each in cls.beside()}
        given = {"name": table} if isinstance(table, str) else table
        with placed(f"{place}: "):
            if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
                raise InputError(f'expected "NAME(option=value)" or {{ name = "NAME" }}, found {shown(table)}')
            own = {name: value for name, value in given.items() if name not in keys}
            for name in own:
                _refuse_other_name(name, keys.values())
            component = cls.make(own if len(own) > 1 else own["name"], place.folder)
        others = {name: value for name, value in given.items() if name in keys}
        values = read_options(keys.values(), others, place.above.at(f"{cls.kind} '{component}'"))
        return cls(**{cls.kind: component}, **values)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of an entry."""
        return registries[cls.kind].json_schema({each.name: each.json_schema() for each in cls.beside()})

    def __str__(self) -> str:
        return str(getattr(self, self.kind))

    @property
    def _title(self) -> str:
        return f"{self.kind} '{self}'"


def read_options(options: Iterable[Option], table: Any, place: Place) -> dict[str, Any]:
    """Read the values that a table of a file has for some options.

    Args:
        options: what the table may have
        table: as TOML has it
        place: of the table

    Raises:
        InputError: a key is unknown or missing, or a value cannot be; the message begins with the place.
    """
    known = {each.name: each for each in options}
    with placed(f"{place}: "):
        if not isinstance(table, Mapping):
            raise InputError(f"expected a table, found {shown(table)}")
        for key in table:
            if key not in known:
                _refuse_other_name(key, known.values())
                raise InputError(f"unknown {place.noun} '{key}'{did_you_mean(key, known)}")
        for each in known.values():
            if each.required and each.name not in table:
                raise InputError(f"expected the {place.noun} {each.name}: {each.help}")
    return {each.name: _read_option(each, table[each.name], place) for each in known.values() if each.name in table}


def _read_option(option: Option, value: Any, place: Place) -> Any:
    """Return the value that a table has for an option: a component of its spelling, a path from the file's folder."""
    alone = option.single and isinstance(value, str)
    made = _read(option.kind, [value] if alone else value, place.at(option.name))
    with placed(f"{place}, "):
        return option.without_none().check(made)


def _read(kind: Any, value: Any, place: Place) -> Any:
    """Make what a file's value stands for; what is of none of the kinds is left for the check."""
    for one in kinds_of(kind):
        if one is str and isinstance(value, str):
            return value
        if one is Path and isinstance(value, str):
            return joined(place.folder, value)
        if get_origin(one) is tuple and isinstance(value, list):
            return [_read(get_args(one)[0], entry, place) for entry in value]
        if get_origin(one) is Mapping and isinstance(value, Mapping):
            return {key: _read(get_args(one)[1], entry, place.at(key)) for key, entry in value.items()}
        if isinstance(one, type) and issubclass(one, Component) and isinstance(value, str | Mapping):
            with placed(f"{place}: "):
                return registries[one.kind].make(value).found_from(place.folder)
        if isinstance(one, type) and issubclass(one, Section):
            return one.read(value, place)
    return value


def _refuse_other_name(name: str, options: Iterable[Option]) -> None:
    for each in options:
        if name in each.also:
            raise InputError(f"unknown key '{name}': did you mean '{each.name}'?")
