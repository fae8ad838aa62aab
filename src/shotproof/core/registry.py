"""Registries of the components that a user picks by name: layouts, detectors, encoders, transforms, samplers, methods.

A built-in component is registered by its import path, so that listing names imports nothing heavy. If it is defined in
a layer above its registry, `shotproof/__init__.py` declares it, as imports only go down. Other packages add components
with an entry point in the group `shotproof.<kind>`, e.g. `shotproof.samplers`, or at run time with `register`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar

from shotproof.core.declared import declared
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import Component, object_schema
from shotproof.core.runtime.shared_state import share_state
from shotproof.core.spelling import parse_spelling
from shotproof.core.trust import Reach, require_trust, table_text, trusting

T = TypeVar("T", bound=Component)

registries: dict[str, Registry[Any]] = {}  # by kind, e.g. `sampler`
_received: dict[str, dict[str, Any]] = {}  # components that another process registered at run time, by kind


class Registry(Generic[T]):
    """Names of one kind of component, each with its class.

    Classes are also attributes: `shotproof.samplers.Hardest(effort="high")`.

    Example:
        >>> import shotproof as sp
        >>> "hardest" in sp.samplers
        True
        >>> sp.samplers.make("hardest(effort='high')").spelling
        "hardest(effort='high')"
    """

    def __init__(
        self, kind: str, builtin: Mapping[str, str], hint: Callable[[str, str], str] = lambda name, spelling: ""
    ) -> None:
        """Register the built-in components.

        Args:
            kind: what a component is called, e.g. `sampler`
            builtin: import paths of classes, by name
            hint: returns the end of the message about an unknown name, given also its full spelling; if it is empty,
                the closest name is suggested
        """
        self.kind = kind
        self._hint = hint
        self._builtin = {**builtin, **declared.get(kind, {})}
        self._added: dict[str, type[T]] = dict(_received.get(kind, {}))
        registries[kind] = self

    @property
    def plural(self) -> str:
        """Return the plural of the kind: `samplers`, `remedies`."""
        return f"{self.kind.removesuffix('y')}ies" if self.kind.endswith("y") else f"{self.kind}s"

    def for_users(self) -> Self:
        """Return a view of the registry for users, which trusts the arguments of `make` as typed."""
        view = copy.copy(self)
        view.__dict__["make"] = trusting(True)(self.make)
        return view

    def register(self, name: str, component: type[T]) -> None:
        """Add a class at run time; worker processes will know it too.

        Args:
            name: the name that users will type
            component: a frozen dataclass derived from this kind's base class

        Raises:
            InputError: the name is taken, or the class is not of this kind.
        """
        if name in self:
            raise InputError(f"{self.kind} '{name}' is already registered: choose another name, or unregister it first")
        if not (isinstance(component, type) and issubclass(component, Component) and component.kind == self.kind):
            raise InputError(f"{self.kind} '{name}': expected a class derived from {self.kind.title()}")
        self._added[name] = component

    def unregister(self, name: str) -> None:
        """Remove a class that was added at run time."""
        self._added.pop(name, None)

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted({*self._builtin, *self._added, *self._plugins()})

    def get(self, name: str, spelling: str = "") -> type[T]:
        """Look up the class of a name, in which `_` may stand for `-`.

        Args:
            name: as registered
            spelling: the full spelling, which the user may have typed

        Raises:
            UnknownName: no class has this name.
            NotTrusted: an experiment file names it, and it is in a package that the user has not agreed to.
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
            package_text = f"the package {package.name}" if package else plugins[name].value
            require_trust(
                Reach(f"{self.kind} '{name}' runs the code of {package_text}", is_installed=True), spelling or name
            )
            loaded: type[T] = plugins[name].load()
            return loaded
        raise UnknownName(self.kind, name, self.names(), self._hint(name, spelling or name))

    def make(self, spec: str | Mapping[str, Any] | T | type[T], **options: Any) -> T:
        """Build a component.

        Args:
            spec: a spelling such as `hardest(effort='high')`, a table such as {"name": "hardest", "effort": "high"}, a
                component, or a component class
            options: further options, by name

        Returns:
            The component; a component passed without options is returned unchanged.

        Raises:
            UnknownName: no component has this name.
            InputError: an option is unknown, missing, or has an invalid value.
            NotTrusted: it accesses a file, a server or code that the user has neither typed nor agreed to.
        """
        if isinstance(spec, Component) and spec.kind == self.kind and not options:
            return spec
        if isinstance(spec, type) and issubclass(spec, Component) and spec.kind == self.kind:
            return spec.with_options(self.name_of(spec), options)
        if isinstance(spec, str):
            name, argument, values = parse_spelling(spec, self.kind)
        elif isinstance(spec, Mapping) and isinstance(spec.get("name"), str):
            name, argument, values = parse_spelling(spec["name"], self.kind)
            values = {**values, **{key: value for key, value in spec.items() if key != "name"}}
        else:
            raise InputError(
                f"expected a {self.kind}: a spelling such as '{self.names()[0]}', a table with a name, or an object "
                f"of a class derived from {self.kind.title()}; found {type(spec).__name__}"
            )
        table = spec if isinstance(spec, Mapping) else {"name": name, **values}
        spelling = spec if isinstance(spec, str) and not options else table_text({**table, **options})
        component_class = self.get(name, spelling)
        if argument is not None:
            option = next((each for each in component_class.options() if each.argument), None)
            if option is None:
                raise InputError(f"{self.kind} '{spec}': '{name}' takes no argument after a colon")
            values = {option.name: argument, **values}
        instance = component_class.with_options(name, {**values, **options})
        for reach in instance.reaches():
            require_trust(reach, spelling)
        return instance

    def json_schema(self, further: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """Return the JSON Schema of a value that names a component: a spelling, or a table of a name and options.

        Args:
            further: additional keys of the table, next to the component's options, each with its schema
        """
        tables = [
            object_schema({"name": {"const": name}, **self._option_schemas(name), **further})
            | {"title": name, "description": self.get(name).about, "required": ["name"]}
            for name in self.names()
        ]
        spelling = {"type": "string", "pattern": r"[(:]"}
        spelling_table = object_schema({"name": spelling, **further}) | {"required": ["name"]}
        return {"anyOf": [{"enum": self.names()}, spelling, *tables, spelling_table]}

    def _option_schemas(self, name: str) -> dict[str, Any]:
        return {option.name: option.json_schema() for option in self.get(name).options()}

    def name_of(self, component: type[Component]) -> str:
        """Return the registered name of a class, or the name of the class if it is not registered."""
        import_path = f"{component.__module__}:{component.__qualname__}"
        matches = (
            *(name for name, registered in self._added.items() if registered is component),
            *(name for name, path in self._builtin.items() if path == import_path),
        )
        if matches:
            return matches[0]
        # Entry points are read from disk, so they come last.
        plugins = self._plugins().items()
        return next((name for name, point in plugins if point.value == import_path), component.__name__)

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
        return f"<{len(self)} {self.plural}: {', '.join(self)}>"

    def _plugins(self) -> dict[str, EntryPoint]:
        return _entry_points(f"shotproof.{self.plural}", tuple(sys.path))


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Return the entry points of installed packages; cached by import path, as the scan takes milliseconds."""
    return {point.name: point for point in entry_points(group=group)}


def _registered() -> dict[str, dict[str, Any]]:
    # Without engines: a worker runs its work in its own process.
    return {kind: dict(registry._added) for kind, registry in registries.items() if kind != "engine"}


def _restore(registered: dict[str, dict[str, Any]]) -> None:
    """Restore the components that another process registered at run time."""
    for kind, added in registered.items():
        _received[kind] = added
        if kind in registries:
            registries[kind]._added.clear()  # shared with the view for users
            registries[kind]._added.update(added)


share_state("registries", _registered, _restore)


def registered_name(component: type[Component]) -> str:
    """Return the registered name of a class, or the name of the class if it is not registered."""
    registry = registries.get(component.kind)
    return component.__name__ if registry is None else registry.name_of(component)
