"""What is installed beside Shotproof: what it cannot do without, and its extras."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, version

from packaging.requirements import Requirement

from shotproof.core.errors import InputError, first_line

PACKAGE = "shotproof"
MODULES = {"pillow": "PIL"}  # of distributions that are named otherwise than their module


@dataclass(frozen=True)
class Dependency:
    """A distribution that Shotproof cannot do without: which versions it takes, which is there, what is wrong."""

    name: str
    expected: str
    version: str | None
    problem: str | None


@dataclass(frozen=True)
class Extra:
    """An extra of Shotproof, what is missing of it or of another version than it takes, and what installs it."""

    name: str
    missing: tuple[str, ...]
    install: str


def core_dependencies() -> list[Dependency]:
    """What Shotproof cannot do without, each imported to see whether it works.

    Raises:
        InputError: Shotproof is not installed as a package, so that its requirements are not known.

    Example:
        >>> [one.problem for one in core_dependencies() if one.name == "numpy"]
        [None]
    """
    return [
        Dependency(each.name, str(each.specifier), _version(each.name), _problem(each)) for each in _requirements("")
    ]


def extras() -> list[Extra]:
    """All extras, in the order of the package; of what they bring, only versions are looked up.

    Raises:
        InputError: Shotproof is not installed as a package, so that its extras are not known.

    Example:
        >>> [one.install for one in extras() if one.name == "lite"]
        ["pip install 'shotproof[lite]'"]
    """
    return [
        Extra(
            name,
            tuple(each.name for each in _requirements(name) if _mismatch(each)),
            f"pip install '{PACKAGE}[{name}]'",
        )
        for name in _field("Provides-Extra")
    ]


def _requirements(extra: str) -> Iterator[Requirement]:
    """What an extra asks for, by way of other extras too; without an extra, what the package always asks for."""
    for each in map(Requirement, _field("Requires-Dist")):
        if not (each.marker.evaluate({"extra": extra}) if each.marker else not extra):
            continue
        if each.name != PACKAGE:
            yield each
        for inner in each.extras if each.name == PACKAGE else ():
            yield from _requirements(inner)


def _field(name: str) -> list[str]:
    try:
        return metadata(PACKAGE).get_all(name) or []
    except PackageNotFoundError as error:
        raise InputError("Shotproof is not installed as a package, so that its requirements are not known") from error


def _problem(requirement: Requirement) -> str | None:
    try:
        importlib.import_module(MODULES.get(requirement.name, requirement.name))
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises
        return f"cannot be imported: {first_line(error)}"
    return _mismatch(requirement)


def _mismatch(requirement: Requirement) -> str | None:
    found = _version(requirement.name)
    if found is None:
        return "not installed"
    fits = requirement.specifier.contains(found, prereleases=True)
    return None if fits else f"expected {requirement.specifier}, found {found}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
