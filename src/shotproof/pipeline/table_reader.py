"""Values of an experiment's tables, of the right type; what is wrong is told with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.limits import SEED, Limits
from shotproof.core.options import Component
from shotproof.core.plain_values import shown
from shotproof.core.registry import Registry
from shotproof.core.runtime.engine import engines
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.spelling import parse_spelling
from shotproof.core.storage.files import check_path, is_there
from shotproof.core.storage.places import joined
from shotproof.core.trust import NotTrusted, require_trust
from shotproof.features.encoder import Encoder, encoders
from shotproof.learners.method import Method
from shotproof.stats.intervals import Covers, check_intervals


@dataclass(frozen=True)
class TableReader:
    """Reads values; messages begin with the place, for the file's name to be put before."""

    content: Mapping[str, Any]
    folder: Path
    own: tuple[str, tuple[str, ...]] = ("", ())  # a sampler, and the keys that its own table has

    def place(self, section: str, key: str) -> str:
        """Where a value is, for the beginning of a message."""
        sampler, keys = self.own
        return f", [{section}], sampler '{sampler}', {key}: " if key in keys else f", [{section}], {key}: "

    def number(self, section: str, key: str, default: Any, limits: Limits) -> Any:
        """A whole number; the default where there is none."""
        value = self.value(section, key, int, default)
        return None if value is None else limits.check(self.place(section, key).removesuffix(": "), value)

    def numbers(self, section: str, key: str, default: list[int], limits: Limits) -> tuple[int, ...]:
        """A list of whole numbers, none of them twice."""
        values = self.items(section, key, int, default)
        for value in values:
            limits.check(self.place(section, key).removesuffix(": "), value)
        self.refuse_repeated(section, key, values)
        return tuple(values)

    def intervals(self) -> tuple[Covers, ...] | None:
        """The intervals of the comparison; None where none are named."""
        names = self.items("output", "intervals", str, [])
        if not names:
            return None
        try:
            chosen = check_intervals(names)
        except InputError as error:
            raise error.placed(self.place("output", "intervals")) from error
        self.refuse_repeated("output", "intervals", names)
        return chosen

    def refuse_repeated(self, section: str, key: str, values: Sequence[Any]) -> None:
        """Refuse a list that has something twice."""
        for index, value in enumerate(values):
            if value in values[:index]:
                raise InputError(f"{self.place(section, key)}expected each once, found {value!r} twice")

    def value(self, section: str, key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        """A value of one of these types; the default where there is none."""
        value = self.content.get(section, {}).get(key, default)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if value is not default and type(value) not in kinds:
            raise InputError(f", [{section}]: {key} must be {_in_words(kinds)}, not {shown(value)}")
        return value

    def path(self, section: str, key: str) -> Path | None:
        """A path, from the file's folder; None where there is none."""
        value = self.value(section, key, str, None)
        return None if value is None else self.joined(section, key, value)

    def joined(self, section: str, key: str, value: Any) -> Path:
        """The path of a value, from the file's folder; one that no file can have is refused."""
        try:
            if not isinstance(value, str):
                raise InputError(f"{self.place(section, key)}expected a path, found {shown(value)}")
            check_path(joined(self.folder, value))
        except OSError as error:
            raise InputError(f"{self.place(section, key)}{shown(value)} is no path: {error.strerror}") from error
        return joined(self.folder, value)

    def choice(self, section: str, key: str, choices: Sequence[str]) -> str:
        """One of these; the first where there is none."""
        value: str = self.value(section, key, str, choices[0])
        if value not in choices:
            near = did_you_mean(value, choices)
            raise InputError(f", [{section}]: {key} must be {' or '.join(choices)}, not '{value}'{near}")
        return value

    def items(self, section: str, key: str, kind: type | tuple[type, ...], default: list[Any]) -> list[Any]:
        """A list of values of these types; the default where there is none."""
        kinds = kind if isinstance(kind, tuple) else (kind,)
        values: list[Any] = self.value(section, key, list, default)
        if values is not default and (not values or any(type(value) not in kinds for value in values)):
            raise InputError(
                f", [{section}]: {key} must be a list of {_in_words(kinds)}, at least one, not {shown(values)}"
            )
        return values

    def seeds(self) -> tuple[int, ...]:
        """The seeds that task sets are drawn by, of `seed` or of `seeds`."""
        tasks = self.content.get("tasks", {})
        if "seed" in tasks and "seeds" in tasks:
            raise InputError(", [tasks]: expected either seed or seeds, not both")
        if "seed" in tasks:
            return (self.number("tasks", "seed", 0, SEED),)
        return self.numbers("tasks", "seeds", [0], SEED)

    def make(self, section: str, key: str, given: Any, registry: Registry[Any], own: Mapping[str, Any]) -> Any:
        """A component; what is wrong with it is told with the place."""
        try:
            if isinstance(given, Mapping):
                given = {**given, **own}
                own = {}
            return self._with_file_paths(registry.make(given, **own))
        except InputError as error:
            raise error.placed(f", [{section}], {key}: ") from error

    def components(self, section: str, key: str, default: list[Any], registry: Registry[Any]) -> tuple[Any, ...]:
        """A list of components, none of them twice but for transforms."""
        given = self.items(section, key, (str, dict), default)
        made = self.component_list(section, key, given, registry)
        for place, one in enumerate(made):
            if one in made[:place] and registry.kind != "transform":
                raise InputError(f", [{section}]: {key} has '{one}' twice")
        return made

    def component_list(self, section: str, key: str, given: Any, registry: Registry[Any]) -> tuple[Any, ...]:
        """One component, or a list of them."""
        listed = given if isinstance(given, list) else [given]
        return tuple(self.make(section, key, one, registry, {}) for one in listed)

    def encoder_named(self, given: str, chosen: Sequence[Encoder]) -> Encoder | None:
        """The one of these encoders that is spelled so, by itself or in the file, or has this bare name."""
        for one in chosen:
            if given == str(one) or given == parse_spelling(str(one))[0]:
                return one
        try:
            made = self._with_file_paths(encoders.make(given))
        except InputError:
            return None
        return next((one for one in chosen if one == made), None)

    def runtime(self) -> dict[str, Any]:
        """What the section on the runtime says; a cache is a path from the file's folder."""
        given = dict(self.content.get("runtime", {}))
        if isinstance(given.get("cache"), str):
            given["cache"] = self.joined("runtime", "cache", given["cache"])
        if isinstance(given.get("engine"), str):
            engine = self.make("runtime", "engine", given["engine"], engines, {})  # refuses what is not there
            if engine.sends_to is not None:
                what = f"engine '{engine}' sends items and your environment to that cluster, and unpickles its answers"
                try:
                    require_trust(what)
                except NotTrusted as error:
                    raise error.placed(", [runtime], engine: ") from error
        try:
            Runtime(**given)
        except InputError as error:
            raise InputError(f", [runtime]: {str(error).removeprefix('Runtime: ')}") from error
        return given

    def _with_file_paths(self, component: Component) -> Component:
        """The component, with options that name files beside the experiment's file made paths from it."""
        moved = {}
        for option in component.options():
            value = getattr(component, option.name)
            if option.path and value is not None and isinstance(value, str | Path):
                beside = self.folder / value
                if is_there(beside):
                    moved[option.name] = str(beside) if isinstance(value, str) else beside
        return replace(component, **moved) if moved else component  # type: ignore[type-var]

    def with_written_paths(self, method: Method) -> Method:
        """The method, with files that it writes, such as a log, as paths from the experiment's folder."""
        written = {
            option.name: self.folder / value
            for option in method.options()
            if option.path and not option.argument and isinstance(value := getattr(method, option.name), Path)
        }
        return replace(method, **written) if written else method  # type: ignore[type-var]


def _in_words(kinds: Sequence[type]) -> str:
    words = {str: "text", int: "a whole number", float: "a number", dict: "a table"}
    return " or ".join(words.get(one, one.__name__) for one in kinds)
