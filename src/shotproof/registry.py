"""Named things that a user picks by a string: layouts, detectors, encoders, samplers, methods.

A built-in is registered by its import path, so that listing names imports nothing heavy. Other packages add theirs
by an entry point in the group `shotproof.<kind>`, e.g. `shotproof.samplers`, or at run time with `register`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from shotproof.errors import InputError, UnknownName, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind of thing, each with the class or function that makes it."""

    def __init__(self, kind: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self._builtin = dict(builtin)
        self._added: dict[str, Callable[..., T]] = {}

    def register(self, name: str, factory: Callable[..., T]) -> None:
        """Add one at run time; a name that exists already is an error."""
        if name in self.names():
            raise InputError(f"{self.kind} '{name}' is registered already")
        self._added[name] = factory

    def unregister(self, name: str) -> None:
        """Take back one that was added at run time."""
        self._added.pop(name, None)

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self._builtin, *self._added, *self._plugins()})

    def factory(self, name: str) -> Callable[..., T]:
        """The class or function behind a name."""
        if name in self._added:
            return self._added[name]
        if name in self._builtin:
            module, _, attribute = self._builtin[name].partition(":")
            factory: Callable[..., T] = getattr(importlib.import_module(module), attribute)
            return factory
        plugins = self._plugins()
        if name in plugins:
            loaded: Callable[..., T] = plugins[name].load()
            return loaded
        raise UnknownName(self.kind, name, self.names())

    def make(self, name: str, *arguments: Any, **options: Any) -> T:
        """Call the factory, with a clear error for an option that it does not take, or that it needs."""
        factory = self.factory(name)
        check_options(f"{self.kind} '{name}'", factory, options)
        try:
            inspect.signature(factory).bind(*arguments, **options)
        except TypeError as error:
            raise InputError(f"{self.kind} '{name}': {error}") from error
        return factory(*arguments, **options)

    def name_of(self, made: T) -> str:
        """The name under which an object's class is registered; the name of the class where it is not."""
        own = type(made)
        paths = {**self._builtin, **{name: point.value for name, point in self._plugins().items()}}
        by_path = (name for name, path in paths.items() if path == f"{own.__module__}:{own.__qualname__}")
        added = (name for name, factory in self._added.items() if factory is own)
        return next(added, None) or next(by_path, own.__name__)

    def inputs(self, name: str) -> list[str]:
        """The names of the keyword arguments that the factory takes."""
        return _keywords(self.factory(name))

    def _plugins(self) -> dict[str, Any]:
        return {point.name: point for point in entry_points(group=f"shotproof.{self.kind}s")}


def check_options(what: str, factory: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that the factory's signature does not name."""
    known = _keywords(factory)
    for name in options:
        if name not in known and "**" not in known:
            raise InputError(f"{what} has no option '{name}'{did_you_mean(name, known)}")


def _keywords(factory: Callable[..., Any]) -> list[str]:
    """The names that a factory takes as keywords; `**` where it takes any."""
    parameters = inspect.signature(factory).parameters.values()
    named = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return named + ["**" for p in parameters if p.kind is p.VAR_KEYWORD]
