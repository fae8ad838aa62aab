"""The public names of a package: listed in its `__init__.py`, and imported when first used, so that it stays light."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any


def public_names(
    package: str, homes: Mapping[str, str], existing: tuple[str, ...] = ()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__all__`, `__getattr__` and `__dir__` of a package that imports its public names when first used.

    Arguments that users pass to public functions and registries are trusted. The library's own code imports the same
    objects from the modules that define them, where arguments taken from a file are not trusted.

    Args:
        package: the `__name__` of the package
        homes: the module that defines each public name, relative to `shotproof`
        existing: further public names, which the package already defines

    Example:
        >>> import shotproof as sp
        >>> sp.planning.tasks_needed.__module__
        'shotproof.planning.statistical_power'
        >>> sp.planning.no_such_name
        Traceback (most recent call last):
            ...
        AttributeError: module 'shotproof.planning' has no attribute 'no_such_name'
    """
    listed = [*existing, *homes]

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        from shotproof.core.registry import Registry
        from shotproof.core.trust import typed_by_user

        value = getattr(importlib.import_module(f"shotproof.{homes[name]}"), name)
        if isinstance(value, FunctionType):
            value = typed_by_user(value)
        elif isinstance(value, Registry):
            value = value.for_users()
        setattr(sys.modules[package], name, value)
        return value

    return listed, get, lambda: sorted(listed)
