"""Named things that a user picks: layouts, detectors, encoders, transforms, samplers, methods.

A built-in is registered by its import path, so that listing names imports nothing heavy. One of a layer above is
declared by `shotproof/__init__.py`, so that these paths go down as imports do. Other packages add theirs
by an entry point in the group `shotproof.<kind>`, e.g. `shotproof.samplers`, or at run time with `register`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar

from shotproof.core.declared import declared
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import Component, object_schema
from shotproof.core.runtime.carried import carry
from shotproof.core.spelling import parse_spelling
from shotproof.core.trust import Reach, require_trust, table_text, trusting

T = TypeVar("T", bound=Component)

registries: dict[str, Registry[Any]] = {}  # by kind, e.g. `sampler`
_sent: dict[str, dict[str, Any]] = {}  # what another process has registered at run time, by kind


class Registry(Generic[T]):
    """Names of one kind of component, each with its class.

    Classes are attributes too: `shotproof.samplers.Hardest(effort="high")`.

    Example:
        >>> import shotproof as sp
        >>> "hardest" in sp.samplers
        True
        >>> sp.samplers.make("hardest(effort='high')").spelling
        "hardest(effort='high')"
    """

    def __init__(self, kind: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self._builtin = {**builtin, **declared.get(kind, {})}
        self._added: dict[str, type[T]] = dict(_sent.get(kind, {}))
        registries[kind] = self

    def for_users(self) -> Self:
        """Give the registry as users have it: what they pass to `make` counts as typed."""
        view = copy.copy(self)
        view.__dict__["make"] = trusting(True)(self.make)
        return view

    def register(self, name: str, component: type[T]) -> None:
        """Add a class at run time; worker processes will know it too.

        Args:
            name: what users will type
            component: a frozen dataclass derived from this kind's base class

        Raises:
            InputError: the name is taken, or the class is not of this kind.
        """
        if name in self:
            raise InputError(f"{self.kind} '{name}' is registered already")
        if not (isinstance(component, type) and issubclass(component, Component) and component.kind == self.kind):
            raise InputError(f"{self.kind} '{name}': expected a class derived from {self.kind.title()}")
        self._added[name] = component

    def unregister(self, name: str) -> None:
        """Take back one that was added at run time."""
        self._added.pop(name, None)

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self._builtin, *self._added, *self._plugins()})

    def get(self, name: str, spelled: str = "") -> type[T]:
        """Look up the class behind a name, in which `_` may stand for `-`.

        Args:
            name: as registered
            spelled: the whole spelling that names it, which the user may have typed

        Raises:
            UnknownName: no class has this name.
            NotTrusted: an experiment file names it, and it is the code of a package that the user has not agreed to.
        """
        name = name if name in self else name.replace("_", "-")
        if name in self._added:
            return self._added[name]
        if name in self._builtin:
            builtin: type[T] = resolve_name(self._builtin[name])
            return builtin
        plugins = self._plugins()
        if name in plugins:
            package = plugins[name].dist
            by = f"the package {package.name}" if package else plugins[name].value
            require_trust(Reach(f"{self.kind} '{name}' runs the code of {by}", is_installed=True), spelled or name)
            loaded: type[T] = plugins[name].load()
            return loaded
        raise UnknownName(self.kind, name, self.names())

    def make(self, given: str | Mapping[str, Any] | T | type[T], **options: Any) -> T:
        """A component from what a user has.

        Args:
            given: a spelling such as `hardest(effort='high')`, a table such as {"name": "hardest", "effort": "high"}, a
                component, or the class of one
            options: further options, by name

        Returns:
            The component; one that was given as such is returned as it is.

        Raises:
            UnknownName: no component has this name.
            InputError: an option is unknown, missing, or has a value that it cannot have.
            NotTrusted: it reaches a file, a server or code that the user has neither typed nor agreed to.
        """
        if isinstance(given, Component) and given.kind == self.kind and not options:
            return given
        if isinstance(given, type) and issubclass(given, Component) and given.kind == self.kind:
            return given.with_options(self.name_of(given), options)
        if isinstance(given, str):
            name, argument, own = parse_spelling(given, self.kind)
        elif isinstance(given, Mapping) and isinstance(given.get("name"), str):
            name, argument, own = parse_spelling(given["name"], self.kind)
            own = {**own, **{key: value for key, value in given.items() if key != "name"}}
        else:
            raise InputError(
                f"expected a {self.kind}: a spelling such as '{self.names()[0]}', a table with a name, or an object "
                f"of a class derived from {self.kind.title()}; found {type(given).__name__}"
            )
        table = given if isinstance(given, Mapping) else {"name": name, **own}
        spelled = given if isinstance(given, str) and not options else table_text({**table, **options})
        component = self.get(name, spelled)
        if argument is not None:
            option = next((each for each in component.options() if each.argument), None)
            if option is None:
                raise InputError(f"{self.kind} '{given}': '{name}' takes nothing after a colon")
            own = {option.name: argument, **own}
        made = component.with_options(name, {**own, **options})
        for reach in made.reaches():
            require_trust(reach, spelled)
        return made

    def json_schema(self, further: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """Return the JSON Schema of what names a component: a spelling, or a table of a name and options.

        Args:
            further: keys of the table beside the component's options, each with its schema
        """
        tables = [
            object_schema({"name": {"const": name}, **self._option_schemas(name), **further})
            | {"title": name, "description": self.get(name).about, "required": ["name"]}
            for name in self.names()
        ]
        spelled = {"type": "string", "pattern": r"[(:]"}
        any_spelled = object_schema({"name": spelled, **further}) | {"required": ["name"]}
        return {"anyOf": [{"enum": self.names()}, spelled, *tables, any_spelled]}

    def _option_schemas(self, name: str) -> dict[str, Any]:
        return {each.name: each.json_schema() for each in self.get(name).options()}

    def name_of(self, component: type[Component]) -> str:
        """The name under which a class is registered; the name of the class where it is not."""
        own = f"{component.__module__}:{component.__qualname__}"
        found = (
            *(name for name, registered in self._added.items() if registered is component),
            *(name for name, path in self._builtin.items() if path == own),
        )
        if found:
            return found[0]
        # Entry points are read from disk: only for what nobody else has.
        plugins = self._plugins().items()
        return next((name for name, point in plugins if point.value == own), component.__name__)

    def __contains__(self, name: object) -> bool:
        return name in self._added or name in self._builtin or name in self._plugins()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __getattr__(self, name: str) -> type[T]:
        for added in self.__dict__.get("_added", {}).values():
            if added.__name__ == name:
                return added  # type: ignore[no-any-return]
        for path in self.__dict__.get("_builtin", {}).values():
            if path.partition(":")[2] == name:
                builtin: type[T] = resolve_name(path)
                return builtin
        raise AttributeError(f"there is no {self.__dict__.get('kind', 'component')} class '{name}'")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(path.partition(":")[2] for path in self._builtin.values())})

    def __repr__(self) -> str:
        return f"<{len(self)} {self.kind}s: {', '.join(self)}>"

    def _plugins(self) -> dict[str, EntryPoint]:
        return _entry_points(f"shotproof.{self.kind}s", tuple(sys.path))


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """What installed packages declare; looking through them takes milliseconds, so once for each path of imports."""
    return {point.name: point for point in entry_points(group=group)}


def _registered() -> dict[str, dict[str, Any]]:
    # But for engines: a worker does its work where it is.
    return {kind: dict(registry._added) for kind, registry in registries.items() if kind != "engine"}


def _restore(registered: dict[str, dict[str, Any]]) -> None:
    """Know what another process has registered at run time."""
    for kind, added in registered.items():
        _sent[kind] = added
        if kind in registries:
            registries[kind]._added.clear()  # which the registry shares with the one that users have
            registries[kind]._added.update(added)


carry("registries", _registered, _restore)


def registered_name(component: type[Component]) -> str:
    """The name under which a class is registered with its kind; the name of the class where it is not."""
    registry = registries.get(component.kind)
    return component.__name__ if registry is None else registry.name_of(component)
