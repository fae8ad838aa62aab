"""Options as records: whatever a user picks by name is one frozen dataclass, and its fields are its options.

    @dataclass(frozen=True)
    class Greedy(Sampler):
        about = "hard supports for given queries"
        rounds: int = option(2, "rounds over all support items", least=1)
        mode: str = option("hard", "hard or easy supports", choices=("hard", "easy"))

From the record, and from nowhere else, come the spelling `greedy(rounds=3)`, the checks, the file's record, cache
keys, the listings of the command line, the tables of the docs and the JSON Schema of experiment files.
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
from shotproof.core.plain_values import in_words, is_optional, json_schema, kinds_of, shown, typed
from shotproof.core.spelling import write_call
from shotproof.core.storage.files import check_path, is_there
from shotproof.core.storage.places import absolute
from shotproof.core.trust import Reach

_RULE = "shotproof.option"


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of a component.

    kind: the type of its values, as annotated; `int | None` where it may be left open
    required: it has no default
    least, most: the bounds of a number (or of each number of a list), both allowed; above: a bound that is not allowed;
        a whole number is at most MOST unless the option says otherwise
    choices: the only values; argument: it is spelled after a colon, as in `hf:MODEL`
    path: its values name files, which an experiment file gives relative to itself
    recorded: it decides what comes out; one that does not (a server's address, say) is neither spelled nor recorded
    downloads: if true, something may be downloaded
    distinct: a list of it has at least one value, and none of them twice
    single: a value alone is a list of one, in a file
    also: other names that people look for it by
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
        """What may be given, in words: `a whole number of at least 1`, `hard or easy`."""
        if self.choices:
            return " or ".join(map(str, self.choices)) + " or None" * is_optional(self.kind)
        return in_words(self.kind, self._bounds) + ", at least one" * self.distinct

    def check(self, value: Any) -> Any:
        """Return the value in the option's own type.

        Raises:
            InputError: it cannot be one; the message has what was expected, what was found, and the nearest choice.

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
            raise InputError(f"{self.name}: expected {self.values}, found {shown(value)}{self._near(value)}")
        if self.distinct and isinstance(cast, tuple):
            require_distinct(self.name, cast)
        self._check_path(cast)
        return cast

    def without_none(self) -> Option:
        """Return the option as a file has it, which has no None: what is not given is left out."""
        return dataclasses.replace(self, kind=functools.reduce(operator.or_, kinds_of(self.kind)))

    def _near(self, value: Any) -> str:
        """Return the choice that is nearest to the first value that is none."""
        choices = self.choices or [
            choice
            for kind in kinds_of(self.kind)
            for one in (kind, *get_args(kind))
            if get_origin(one) is Literal
            for choice in get_args(one)
        ]
        listed = value if isinstance(value, list | tuple) else [value]
        wrong = [one for one in listed if isinstance(one, str) and one not in choices]
        return did_you_mean(wrong[0], map(str, choices)) if choices and wrong else ""

    def _check_path(self, value: Any) -> None:
        """Refuse a path that no file can have, so that whoever looks for it need not."""
        try:
            for one in value if isinstance(value, tuple) else [value]:
                if isinstance(one, Path) or (self.path and isinstance(one, str)):
                    check_path(one)
        except OSError as error:
            raise InputError(f"{self.name}: expected a path, found {shown(str(value))}: {error.strerror}") from error

    def _in_range(self, value: Any) -> bool:
        if isinstance(value, tuple):
            return all(self._in_range(one) for one in value)
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
    def _bounds(self) -> str:
        """Return the bounds of a number in words."""
        if self.above is not None:
            return f" above {_grouped(self.above)}" + ("" if self.most is None else f", at most {_grouped(self.most)}")
        if self.least is not None and self.most is not None:
            return f" from {_grouped(self.least)} to {_grouped(self.most)}"
        if self.least is not None:
            return f" of at least {_grouped(self.least)}"
        return "" if self.most is None else f" of at most {_grouped(self.most)}"

    def json_schema(self) -> dict[str, Any]:
        """Return the option as a property of a JSON Schema."""
        schema: dict[str, Any] = {"description": self.help}
        if self.choices:
            schema["enum"] = [*self.choices, *([None] if is_optional(self.kind) else [])]
        else:
            bounds = {"minimum": self.least, "maximum": self.most, "exclusiveMinimum": self.above}
            limits = {key: bound for key, bound in bounds.items() if bound is not None}
            of_value = json_schema(self.without_none().kind, limits)
            schema |= {"anyOf": [of_value, of_value["items"]]} if self.single else of_value
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
    """A field of a component's record, with what its values may be; without a default it must be given.

    Args:
        default: the value if none is given, or a function that gives it
        help: one line on what it does
        least, most, above: bounds of numbers; `above` itself is not allowed; whole numbers are at most 10,000,000 where
            `most` says nothing else
        within: both bounds of a whole number
        choices: the only values
        argument: spelled after a colon, as in `hf:MODEL`
        path: values name files
        recorded: False for what has no say in what comes out: components that differ in it alone are equal
        downloads: a value of True allows a download
        distinct: a list has at least one value, and none of them twice
        single: in a file, a value alone is a list of one
        also: other names that people look for it by; messages name the right one

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
    given: dict[str, Any] = {"default_factory" if callable(default) else "default": default}
    return dataclasses.field(**given, compare=recorded, metadata={_RULE: rule})


class Checked:
    """Settings: a subclass is a frozen dataclass whose fields are its options, and their values are checked."""

    def __post_init__(self) -> None:
        for each in self.options():
            try:
                object.__setattr__(self, each.name, each.check(getattr(self, each.name)))
            except InputError as error:
                raise InputError(f"{self._title}: {error}") from error

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Its options, in the order of the record."""
        of: Any = cls
        return _options(of)

    @classmethod
    def require_known(cls, names: Iterable[str], problem: str) -> None:
        """Refuse, with InputError that has the nearest name, names that none of its options has."""
        known = [each.name for each in cls.options()]
        for name in names:
            if name not in known:
                raise InputError(f"{problem} '{name}'{did_you_mean(name, known)}")

    def parameters(self) -> dict[str, Any]:
        """Every option with its value, for the record."""
        return {each.name: getattr(self, each.name) for each in self.options() if each.recorded}

    @property
    def _title(self) -> str:
        """What messages call it."""
        return type(self).__name__


class Component(Checked):
    """What a user picks by name: a layout, detector, encoder, transform, sampler, method.

    A subclass is a frozen dataclass whose fields are its options. Data comes later, to its methods.
    """

    kind: ClassVar[str] = "component"
    about: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    example: ClassVar[str] = ""

    @classmethod
    def with_options(cls, name: str, given: Mapping[str, Any]) -> Self:
        """One with these options; InputError with the nearest name for one that there is not.

        Args:
            name: what the user called it, for messages
            given: values by option
        """
        cls.require_known(given, f"{cls.kind} '{name}' has no option")
        missing = [each.name for each in cls.options() if each.required and each.name not in given]
        if missing:
            raise InputError(f"{cls.kind} '{name}' needs {', '.join(missing)}: {_spelled_example(name, cls, missing)}")
        return cls(**given)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of what names a component of its kind."""
        from shotproof.core.registry import registries

        return registries[cls.kind].json_schema()

    def found_from(self, folder: Path) -> Self:
        """Return the component with files that its options name, and that lie in a folder, as paths from there."""
        moved = {}
        for each in self.options():
            value = getattr(self, each.name)
            if each.path and isinstance(value, str | Path) and is_there(folder / value):
                moved[each.name] = type(value)(folder / value)
        return dataclasses.replace(self, **moved) if moved else self  # type: ignore[type-var]

    @property
    def name(self) -> str:
        """The name under which its class is registered; the name of the class where it is not."""
        from shotproof.core.registry import registered_name

        return registered_name(type(self))

    @property
    def spelling(self) -> str:
        """The name with all options that differ from their defaults: what a user types to get the same again."""
        differing = {
            each.name: getattr(self, each.name)
            for each in self.options()
            if each.recorded and not each.argument and (each.required or getattr(self, each.name) != each.default)
        }
        arguments = [getattr(self, each.name) for each in self.options() if each.argument]
        argument = "".join(f":{value}" for value in arguments if value != "")
        return write_call(f"{self.name}{argument}", differing)

    def reaches(self) -> Iterator[Reach]:
        """Give what it touches beside the data: files that its options name, and downloads that they allow."""
        for each in self.options():
            value = getattr(self, each.name)
            if each.path and isinstance(value, str | Path):
                yield Reach(f"{self._title} reads {absolute(Path(value))}", str(value), Path(value), is_data=True)
            if each.downloads and value:
                arguments = [getattr(self, other.name) for other in self.options() if other.argument]
                what = f"{self.kind} '{self.spelling}' downloads from the hub"
                yield Reach(what, str(arguments[0]) if arguments else "", is_data=True)

    def extras(self) -> Mapping[str, str]:
        """The modules that it cannot do without, each with the extra of this package that brings it."""
        return {}

    def require_extras(self) -> None:
        """Refuse to go on where a module is not installed, before anything is computed."""
        for module, extra in self.extras().items():
            if importlib.util.find_spec(module) is None:
                raise MissingExtra(self._title, extra)

    @property
    def _title(self) -> str:
        return f"{self.kind} '{self.name}'"

    def __getstate__(self) -> dict[str, Any]:
        # What was made of the options, a network say, stays behind: another process makes its own.
        own = {each.name for each in dataclasses.fields(self)} if dataclasses.is_dataclass(self) else vars(self)
        return {name: value for name, value in vars(self).items() if name in own}

    def __str__(self) -> str:
        return self.spelling


@functools.cache
def _options(cls: type[Any]) -> tuple[Option, ...]:
    if not dataclasses.is_dataclass(cls):
        return ()
    kinds = typing.get_type_hints(cls)
    return tuple(
        Option(
            each.name,
            kinds[each.name],
            None if each.default is dataclasses.MISSING else each.default,
            required=each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING,
            **{"help": "", **_rule(each, kinds[each.name]), **_literals(kinds[each.name])},
        )
        for each in dataclasses.fields(cls)
        if each.init
    )


def _rule(each: dataclasses.Field[Any], annotated: Any) -> dict[str, Any]:
    """What `option` says of a field, with the bound of whole numbers."""
    rule = dict(each.metadata.get(_RULE, {}))
    kinds = kinds_of(annotated)
    if rule.get("most") is None and int in (*kinds, *(of for kind in kinds for of in get_args(kind))):
        rule["most"] = MOST
    return rule


def _literals(annotated: Any) -> dict[str, Any]:
    """The choices of an option whose type names all of its values."""
    literals = [kind for kind in kinds_of(annotated) if get_origin(kind) is Literal]
    return {"choices": get_args(literals[0])} if literals and literals == kinds_of(annotated) else {}


def require_distinct(name: str, values: Sequence[Any]) -> None:
    """Refuse a list that has something twice."""
    for index, value in enumerate(values):
        if value in values[:index]:
            found = value if isinstance(value, int | float) else f"'{value}'"
            raise InputError(f"{name}: expected each once, found {found} twice")


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a table that has these keys and no others."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _grouped(bound: float) -> str:
    """A bound in words: 10,000,000, 0.5."""
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _spelled_example(name: str, cls: type[Component], missing: Sequence[str]) -> str:
    if cls.example:
        return f"e.g. {cls.example}"
    arguments = {each.name for each in cls.options() if each.argument}
    after = "".join(f":{one.upper()}" for one in missing if one in arguments)
    rest = ", ".join(f"{one}=..." for one in missing if one not in arguments)
    return f"e.g. {name}{after}{f'({rest})' if rest else ''}"
