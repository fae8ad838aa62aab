"""Options as records: each component that a user picks by name is a frozen dataclass, and its fields are its options.

    @dataclass(frozen=True)
    class Greedy(Sampler):
        about = "hard supports for given queries"
        rounds: int = option(2, "rounds over all support items", least=1)
        mode: str = option("hard", "hard or easy supports", choices=("hard", "easy"))

This record is the only source of the spelling `greedy(rounds=3)`, the checks, the provenance record, cache keys, the
listings of the command line, the tables of the docs and the JSON Schema of experiment files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import math
import operator
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args, get_origin

from shotproof.core.errors import InputError, MissingExtra, did_you_mean
from shotproof.core.limits import MOST, Limits
from shotproof.core.plain_values import format_value, in_words, is_optional, json_schema, kinds_of, typed
from shotproof.core.spelling import write_call
from shotproof.core.storage.files import check_path, path_exists
from shotproof.core.storage.places import absolute
from shotproof.core.trust import Reach

_RULE = "shotproof.option"


@dataclasses.dataclass(frozen=True)
class Option:
    """Option of a component.

    kind: the annotated type of its values; `int | None` if it is optional
    required: it has no default
    least, most: inclusive bounds of a number (or of each number in a list); above: an exclusive lower bound; a whole
        number is at most MOST unless the option sets another bound
    choices: the only allowed values; argument: it is spelled after a colon, as in `hf:MODEL`
    path: its values are paths, which an experiment file gives relative to its own folder
    recorded: whether it affects results; one that does not (such as a server's address) is neither spelled nor recorded
    downloads: if true, something may be downloaded
    distinct: its list has at least one value, and no duplicates
    single: in a file, a single value stands for a list with one value
    also: other names that users may try for it
    """

    name: str
    kind: Any
    default: Any
    help: str
    required: bool = False
    least: float | None = None
    most: float | None = None
    above: float | None = None
    choices: tuple[Any, ...] = ()
    argument: bool = False
    path: bool = False
    recorded: bool = True
    downloads: bool = False
    distinct: bool = False
    single: bool = False
    also: tuple[str, ...] = ()

    @property
    def values(self) -> str:
        """Describe the allowed values in words: `a whole number of at least 1`, `hard or easy`."""
        if self.choices:
            return " or ".join(map(str, self.choices)) + " or None" * is_optional(self.kind)
        return in_words(self.kind, self._bounds_text) + ", at least one" * self.distinct

    def check(self, value: Any) -> Any:
        """Check a value and return it in the option's type.

        Raises:
            InputError: the value is invalid; the message has what was expected, what was found and the closest choice.

        Example:
            >>> Option("rounds", int, 1, "rounds of swaps", least=1).check(0)
            Traceback (most recent call last):
            shotproof.core.errors.InputError: rounds: expected a whole number of at least 1, found 0
        """
        if value is None and is_optional(self.kind):
            return None
        cast: Any = None
        with contextlib.suppress(InputError):
            cast = typed(value, Literal[self.choices] if self.choices else self.kind, self.name)
        is_empty = self.distinct and cast == () != self.default
        if (cast is None and self.kind is not Any) or is_empty or not self._in_range(cast):
            raise InputError(
                f"{self.name}: expected {self.values}, found {format_value(value)}{self._suggest_choice(value)}"
            )
        if self.distinct and isinstance(cast, tuple):
            require_distinct(self.name, cast)
        self._check_path(cast)
        return cast

    def without_none(self) -> Option:
        """Return the option without None as a value: in a file, an option that is not set is left out."""
        return dataclasses.replace(self, kind=functools.reduce(operator.or_, kinds_of(self.kind)))

    def _suggest_choice(self, value: Any) -> str:
        """Suggest the closest choice for the first invalid value."""
        choices = self.choices or [
            choice
            for kind in kinds_of(self.kind)
            for annotation in (kind, *get_args(kind))
            if get_origin(annotation) is Literal
            for choice in get_args(annotation)
        ]
        values = value if isinstance(value, list | tuple) else [value]
        invalid = [entry for entry in values if isinstance(entry, str) and entry not in choices]
        return did_you_mean(invalid[0], map(str, choices)) if choices and invalid else ""

    def _check_path(self, value: Any) -> None:
        """Reject paths that no file system allows."""
        try:
            for path in value if isinstance(value, tuple) else [value]:
                if isinstance(path, Path) or (self.path and isinstance(path, str)):
                    check_path(path)
        except OSError as error:
            raise InputError(
                f"{self.name}: expected a path, found {format_value(str(value))}: {error.strerror}"
            ) from error

    def _in_range(self, value: Any) -> bool:
        if isinstance(value, tuple):
            return all(self._in_range(number) for number in value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        return not (
            math.isnan(value)
            or (math.isinf(value) and (self.least, self.most, self.above) != (None, None, None))
            or (self.least is not None and value < self.least)
            or (self.most is not None and value > self.most)
            or (self.above is not None and value <= self.above)
        )

    @property
    def _bounds_text(self) -> str:
        """Describe the bounds of a number in words."""
        if self.above is not None:
            return f" above {_format_bound(self.above)}" + (
                "" if self.most is None else f", at most {_format_bound(self.most)}"
            )
        if self.least is not None and self.most is not None:
            return f" from {_format_bound(self.least)} to {_format_bound(self.most)}"
        if self.least is not None:
            return f" of at least {_format_bound(self.least)}"
        return "" if self.most is None else f" of at most {_format_bound(self.most)}"

    def json_schema(self) -> dict[str, Any]:
        """Return the option as a property of a JSON Schema."""
        schema: dict[str, Any] = {"description": self.help}
        if self.choices:
            schema["enum"] = [*self.choices, *([None] if is_optional(self.kind) else [])]
        else:
            bounds = {"minimum": self.least, "maximum": self.most, "exclusiveMinimum": self.above}
            limits = {key: bound for key, bound in bounds.items() if bound is not None}
            value_schema = json_schema(self.without_none().kind, limits)
            schema |= {"anyOf": [value_schema, value_schema["items"]]} if self.single else value_schema
        if self.distinct:
            schema |= {"minItems": 1, "uniqueItems": True}
        if not self.required and isinstance(self.default, bool | int | float | str | list | tuple):
            schema["default"] = list(self.default) if isinstance(self.default, tuple) else self.default
        return schema


def option(
    default: Any = dataclasses.MISSING,
    help: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    within: Limits | None = None,
    choices: Sequence[Any] = (),
    argument: bool = False,
    path: bool = False,
    recorded: bool = True,
    downloads: bool = False,
    distinct: bool = False,
    single: bool = False,
    also: Sequence[str] = (),
) -> Any:
    """Declare a field of a component, with the values that it allows; without a default it is required.

    Args:
        default: the default value, or a function that returns it
        help: one line on what it does
        least, most, above: bounds of numbers; `above` itself is not allowed; whole numbers are at most 10,000,000
            unless `most` is set
        within: both bounds of a whole number
        choices: the only allowed values
        argument: spelled after a colon, as in `hf:MODEL`
        path: values are paths of files
        recorded: False if it does not affect results: components that differ only in it are equal
        downloads: a value of True allows a download
        distinct: a list has at least one value, and no duplicates
        single: in a file, a single value stands for a list with one value
        also: other names that users may try for it; messages suggest the right one

    Returns:
        The dataclass field.

    Example:
        >>> import shotproof as sp
        >>> @dataclasses.dataclass(frozen=True)
        ... class Halved(sp.Transform):
        ...     times: int = sp.option(1, "how often", least=1, most=8)
        ...     def apply(self, values):
        ...         return values / 2**self.times
        >>> Halved(times=9)
        Traceback (most recent call last):
        shotproof.core.errors.InputError: transform 'Halved': times: expected a whole number from 1 to 8, found 9
    """
    least, most = (within.least, within.most) if within else (least, most)
    rule = {"help": help, "least": least, "most": most, "above": above, "choices": tuple(choices)}
    rule |= {"argument": argument, "path": path, "recorded": recorded, "downloads": downloads}
    rule |= {"distinct": distinct, "single": single, "also": tuple(also)}
    field_default: dict[str, Any] = {"default_factory" if callable(default) else "default": default}
    return dataclasses.field(**field_default, compare=recorded, metadata={_RULE: rule})


class Checked:
    """Settings with checked values: a subclass is a frozen dataclass whose fields are its options."""

    def __post_init__(self) -> None:
        for option in self.options():
            try:
                object.__setattr__(self, option.name, option.check(getattr(self, option.name)))
            except InputError as error:
                raise InputError(f"{self._title}: {error}") from error

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the options, in the order of the fields."""
        dataclass: Any = cls
        return _options(dataclass)

    @classmethod
    def require_known(cls, names: Iterable[str], problem: str) -> None:
        """Raise InputError with the closest name if a name is not one of the options."""
        known_names = [option.name for option in cls.options()]
        for name in names:
            if name not in known_names:
                raise InputError(f"{problem} '{name}'{did_you_mean(name, known_names)}")

    def parameters(self) -> dict[str, Any]:
        """Return all recorded options with their values."""
        return {option.name: self.recorded_value(option) for option in self.options() if option.recorded}

    def recorded_value(self, option: Option) -> Any:
        """Return the value of an option as it is recorded and spelled."""
        return getattr(self, option.name)

    @property
    def _title(self) -> str:
        """Return the name used in messages."""
        return type(self).__name__


class Component(Checked):
    """Component that a user picks by name: a layout, detector, encoder, transform, sampler or method.

    A subclass is a frozen dataclass whose fields are its options. Data is passed to its methods.
    """

    kind: ClassVar[str] = "component"
    about: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    example: ClassVar[str] = ""

    @classmethod
    def with_options(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Build the component from these options. Raise InputError with the closest name if an option is unknown.

        Args:
            name: the name that the user typed, for messages
            values: option values by name
        """
        cls.require_known(values, f"{cls.kind} '{name}' has no option")
        missing = [option.name for option in cls.options() if option.required and option.name not in values]
        if missing:
            raise InputError(f"{cls.kind} '{name}' needs {', '.join(missing)}: {_example_spelling(name, cls, missing)}")
        return cls(**values)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of a value that names a component of this kind."""
        from shotproof.core.registry import registries

        return registries[cls.kind].json_schema()

    def resolved_against(self, folder: Path) -> Self:
        """Return the component with its path options resolved against a folder, if the files exist there."""
        resolved = {}
        for option in self.options():
            value = getattr(self, option.name)
            if option.path and isinstance(value, str | Path) and path_exists(folder / value):
                resolved[option.name] = type(value)(folder / value)
        return dataclasses.replace(self, **resolved) if resolved else self  # type: ignore[type-var]

    @property
    def name(self) -> str:
        """Return the registered name of the class, or the name of the class if it is not registered."""
        from shotproof.core.registry import registered_name

        return registered_name(type(self))

    @property
    def spelling(self) -> str:
        """Return the name with all options that differ from their defaults, as a user would type it."""
        changed_options = {
            option.name: self.recorded_value(option)
            for option in self.options()
            if option.recorded
            and not option.argument
            and (option.required or getattr(self, option.name) != option.default)
        }
        arguments = [getattr(self, option.name) for option in self.options() if option.argument]
        argument = "".join(f":{value}" for value in arguments if value != "")
        return write_call(f"{self.name}{argument}", changed_options)

    def reaches(self) -> Iterator[Reach]:
        """Yield access outside of the data: files named by options, and downloads that they allow."""
        for option in self.options():
            value = getattr(self, option.name)
            if option.path and isinstance(value, str | Path):
                yield Reach(f"{self._title} reads {absolute(Path(value))}", str(value), Path(value), is_data=True)
            if option.downloads and value:
                arguments = [
                    getattr(self, argument_option.name)
                    for argument_option in self.options()
                    if argument_option.argument
                ]
                description = f"{self.kind} '{self.spelling}' downloads from the hub"
                yield Reach(description, str(arguments[0]) if arguments else "", is_data=True)

    def extras(self) -> Mapping[str, str]:
        """Return the modules that the component requires, each with the extra of this package that installs it."""
        return {}

    def require_extras(self) -> None:
        """Raise MissingExtra if a required module is not installed, before anything is computed."""
        for module, extra in self.extras().items():
            if importlib.util.find_spec(module) is None:
                raise MissingExtra(self._title, extra)

    @property
    def _title(self) -> str:
        return f"{self.kind} '{self.name}'"

    def __getstate__(self) -> dict[str, Any]:
        # Cached objects, such as a network, are not pickled: another process builds its own.
        field_names = (
            {field.name for field in dataclasses.fields(self)} if dataclasses.is_dataclass(self) else vars(self)
        )
        return {name: value for name, value in vars(self).items() if name in field_names}

    def __str__(self) -> str:
        return self.spelling


@functools.cache
def _options(cls: type[Any]) -> tuple[Option, ...]:
    if not dataclasses.is_dataclass(cls):
        return ()
    annotations = typing.get_type_hints(cls)
    return tuple(
        Option(
            field.name,
            annotations[field.name],
            None if field.default is dataclasses.MISSING else field.default,
            required=field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
            **{"help": "", **_rule(field, annotations[field.name]), **_literals(annotations[field.name])},
        )
        for field in dataclasses.fields(cls)
        if field.init
    )


def _rule(field: dataclasses.Field[Any], annotation: Any) -> dict[str, Any]:
    """Return the settings that `option` stored in a field, with the default bound of whole numbers."""
    rule = dict(field.metadata.get(_RULE, {}))
    kinds = kinds_of(annotation)
    if rule.get("most") is None and int in (*kinds, *(argument for kind in kinds for argument in get_args(kind))):
        rule["most"] = MOST
    return rule


def _literals(annotation: Any) -> dict[str, Any]:
    """Return the choices of an option whose type is a Literal."""
    literals = [kind for kind in kinds_of(annotation) if get_origin(kind) is Literal]
    return {"choices": get_args(literals[0])} if literals and literals == kinds_of(annotation) else {}


def require_distinct(name: str, values: Sequence[Any]) -> None:
    """Raise InputError if a list has duplicates."""
    for index, value in enumerate(values):
        if value in values[:index]:
            value_text = value if isinstance(value, int | float) else f"'{value}'"
            raise InputError(f"{name}: expected each once, found {value_text} twice")


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a table with exactly these keys."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _format_bound(bound: float) -> str:
    """Format a bound: 10,000,000, 0.5."""
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _example_spelling(name: str, cls: type[Component], missing: Sequence[str]) -> str:
    if cls.example:
        return f"e.g. {cls.example}"
    argument_names = {option.name for option in cls.options() if option.argument}
    argument_part = "".join(f":{option_name.upper()}" for option_name in missing if option_name in argument_names)
    option_part = ", ".join(f"{option_name}=..." for option_name in missing if option_name not in argument_names)
    return f"e.g. {name}{argument_part}{f'({option_part})' if option_part else ''}"
