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

import dataclasses
import functools
import importlib.util
import math
import numbers
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from shotproof.core.errors import InputError, MissingExtra, did_you_mean
from shotproof.core.limits import MOST
from shotproof.core.plain_values import shown
from shotproof.core.spelling import write_call
from shotproof.core.storage.files import check_path
from shotproof.core.storage.places import absolute
from shotproof.core.text import is_storable
from shotproof.core.trust import Reach

_RULE = "shotproof.option"
_WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text", Path: "a path"}
_JSON_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string", Path: "string"}


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

    @property
    def values(self) -> str:
        """What may be given, in words: `a whole number of at least 1`, `hard or easy`."""
        named = " or ".join(map(str, self.choices)) or " or ".join(_in_words(kind, self) for kind in _kinds(self.kind))
        return f"{named} or None" if _optional(self.kind) else named

    def check(self, value: Any) -> Any:
        """The value, in the option's own type; InputError where it cannot be one.

        Example:
            >>> Option("rounds", int, 1, "rounds of swaps", least=1).check(0)
            Traceback (most recent call last):
            shotproof.core.errors.InputError: rounds: expected a whole number of at least 1, found 0
        """
        if value is None and _optional(self.kind):
            return None
        if self.choices:
            if value in self.choices and not isinstance(value, bool):
                return value
            near = did_you_mean(str(value), map(str, self.choices)) if isinstance(value, str) else ""
            raise InputError(f"{self.name}: expected {' or '.join(map(str, self.choices))}, found {shown(value)}{near}")
        for kind in _kinds(self.kind):
            fits, cast = _fitting(value, kind)
            if fits and self._in_range(cast):
                self._check_path(cast)
                return cast
        raise InputError(f"{self.name}: expected {self.values}, found {shown(value)}")

    def _check_path(self, value: Any) -> None:
        """Refuse a path that no file can have, so that whoever looks for it need not."""
        try:
            if isinstance(value, Path) or (self.path and isinstance(value, str)):
                check_path(value)
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

    def json_schema(self) -> dict[str, Any]:
        """The option as a property of a JSON Schema."""
        schema: dict[str, Any] = {"description": self.help}
        if self.choices:
            schema["enum"] = [*self.choices, *([None] if _optional(self.kind) else [])]
        else:
            bounds = {"minimum": self.least, "maximum": self.most, "exclusiveMinimum": self.above}
            limits = {key: bound for key, bound in bounds.items() if bound is not None}
            kinds = [_json_kind(kind, limits) for kind in _kinds(self.kind)]
            schema |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
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
    choices: Sequence[Any] = (),
    argument: bool = False,
    path: bool = False,
    recorded: bool = True,
    downloads: bool = False,
) -> Any:
    """A field of a component's record, with what its values may be; without a default it must be given.

    Args:
        default: the value where none is given
        help: one line on what it does
        least, most, above: bounds of numbers; `above` itself is not allowed; whole numbers are at most 10,000,000 where
            `most` says nothing else
        choices: the only values
        argument: spelled after a colon, as in `hf:MODEL`
        path: values name files
        recorded: False for what has no say in what comes out: components that differ in it alone are equal
        downloads: a value of True allows a download

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
    rule = {"help": help, "least": least, "most": most, "above": above, "choices": tuple(choices)}
    rule |= {"argument": argument, "path": path, "recorded": recorded, "downloads": downloads}
    return dataclasses.field(default=default, compare=recorded, metadata={_RULE: rule})


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
    def with_options(cls, name: str, given: Mapping[str, Any]) -> typing.Self:
        """One with these options; InputError with the nearest name for one that there is not.

        Args:
            name: what the user called it, for messages
            given: values by option
        """
        known = {each.name: each for each in cls.options()}
        for key in given:
            if key not in known:
                raise InputError(f"{cls.kind} '{name}' has no option '{key}'{did_you_mean(key, known)}")
        missing = [each.name for each in known.values() if each.required and each.name not in given]
        if missing:
            raise InputError(f"{cls.kind} '{name}' needs {', '.join(missing)}: {_spelled_example(name, cls, missing)}")
        return cls(**given)

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

    def parameters(self) -> dict[str, Any]:
        """Every option with its value, for the record."""
        return {each.name: getattr(self, each.name) for each in self.options() if each.recorded}

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
    kinds = _kinds(annotated)
    if rule.get("most") is None and int in (*kinds, *(of for kind in kinds for of in get_args(kind))):
        rule["most"] = MOST
    return rule


def _literals(annotated: Any) -> dict[str, Any]:
    """The choices of an option whose type names all of its values."""
    literals = [kind for kind in _kinds(annotated) if get_origin(kind) is Literal]
    return {"choices": get_args(literals[0])} if literals and literals == _kinds(annotated) else {}


def _kinds(annotated: Any) -> list[Any]:
    """The types of a union, without None."""
    if get_origin(annotated) in (Union, types.UnionType):
        return [kind for kind in get_args(annotated) if kind is not type(None)]
    return [annotated]


def _optional(annotated: Any) -> bool:
    return get_origin(annotated) in (Union, types.UnionType) and type(None) in get_args(annotated)


def _fitting(value: Any, kind: Any) -> tuple[bool, Any]:
    """Whether a value is of the kind, and the value in that kind: a list becomes a tuple, an int a float."""
    if kind is Any:
        return True, value
    if get_origin(kind) is Literal:
        return value in get_args(kind), value
    if get_origin(kind) in (tuple, list):
        return _fitting_list(value, kind)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool), value
    if kind is str:
        return isinstance(value, str) and is_storable(value), value
    # NumPy's numbers are taken too, and become Python's.
    casts = {int: numbers.Integral, float: numbers.Real, Path: str | Path}
    if kind in casts:
        fits = isinstance(value, casts[kind])
        try:
            return fits, kind(value) if fits else value
        except OverflowError:  # a whole number that is too large for a float
            return False, value
    return isinstance(value, get_origin(kind) or kind), value


def _fitting_list(value: Any, kind: Any) -> tuple[bool, Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False, value
    of = get_args(kind)
    open_ended = get_origin(kind) is list or of[1:] == (...,)
    if not open_ended and len(of) != len(value):
        return False, value
    pairs = [_fitting(one, of[0] if open_ended else of[place]) for place, one in enumerate(value)]
    return all(fits for fits, _ in pairs), tuple(cast for _, cast in pairs)


def _in_words(kind: Any, rule: Option) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if get_origin(kind) in (tuple, list):
        of = get_args(kind)
        count = "a list of" if get_origin(kind) is list or of[1:] == (...,) else f"{len(of)}"
        return f"{count} {_in_words(of[0], rule).removeprefix('a ').replace('number', 'numbers', 1)}"
    words = _WORDS.get(kind, getattr(kind, "__name__", str(kind)))
    if kind not in (int, float):
        return words
    if rule.above is not None:
        words = f"{words} above {_grouped(rule.above)}"
        return words if rule.most is None else f"{words}, at most {_grouped(rule.most)}"
    if rule.least is not None and rule.most is not None:
        return f"{words} from {_grouped(rule.least)} to {_grouped(rule.most)}"
    if rule.least is not None:
        return f"{words} of at least {_grouped(rule.least)}"
    return words if rule.most is None else f"{words} of at most {_grouped(rule.most)}"


def _grouped(bound: float) -> str:
    """A bound in words: 10,000,000, 0.5."""
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _json_kind(kind: Any, limits: dict[str, Any]) -> dict[str, Any]:
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) in (tuple, list):
        return {"type": "array", "items": _json_kind(get_args(kind)[0], limits)}
    if kind not in _JSON_TYPES:
        return {}
    return {"type": _JSON_TYPES[kind], **(limits if kind in (int, float) else {})}


def _spelled_example(name: str, cls: type[Component], missing: Sequence[str]) -> str:
    if cls.example:
        return f"e.g. {cls.example}"
    arguments = {each.name for each in cls.options() if each.argument}
    after = "".join(f":{one.upper()}" for one in missing if one in arguments)
    rest = ", ".join(f"{one}=..." for one in missing if one not in arguments)
    return f"e.g. {name}{after}{f'({rest})' if rest else ''}"
