"""Installed dependencies of Shotproof: required packages and optional extras."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, version

from packaging.requirements import Requirement

from shotproof.core.errors import InputError, first_line

PACKAGE = "shotproof"
MODULES = {"pillow": "PIL"}  # distributions whose module has another name


@dataclass(frozen=True)
class Dependency:
    """Required package of Shotproof.

    expected: the versions that Shotproof supports
    version: the installed version, None if it is not installed
    problem: why it cannot be used, None if it can
    """

    name: str
    expected: str
    version: str | None
    problem: str | None


@dataclass(frozen=True)
class Extra:
    """Optional extra of Shotproof.

    missing: its packages that are not installed, or have an unsupported version
    install: the command that installs it
    """

    name: str
    missing: tuple[str, ...]
    install: str


def core_dependencies() -> list[Dependency]:
    """Check the required packages by importing each of them.

    Raises:
        InputError: Shotproof is not installed as a package, so its requirements are unknown.

    Example:
        >>> [one.problem for one in core_dependencies() if one.name == "numpy"]
        [None]
    """
    return [
        Dependency(
            requirement.name,
            str(requirement.specifier),
            _installed_version(requirement.name),
            _find_problem(requirement),
        )
        for requirement in _requirements("")
    ]


def extras() -> list[Extra]:
    """List all extras, in the order of the package metadata. Only versions are looked up; nothing is imported.

    Raises:
        InputError: Shotproof is not installed as a package, so its extras are unknown.

    Example:
        >>> [one.install for one in extras() if one.name == "lite"]
        ["pip install 'shotproof[lite]'"]
    """
    return [
        Extra(
            name,
            tuple(requirement.name for requirement in _requirements(name) if _check_version(requirement)),
            f"pip install '{PACKAGE}[{name}]'",
        )
        for name in _read_metadata("Provides-Extra")
    ]


def _requirements(extra: str) -> Iterator[Requirement]:
    """Yield the requirements of an extra, including those of extras it refers to; for "", the required packages."""
    for requirement in map(Requirement, _read_metadata("Requires-Dist")):
        if not (requirement.marker.evaluate({"extra": extra}) if requirement.marker else not extra):
            continue
        if requirement.name != PACKAGE:
            yield requirement
        for nested_extra in requirement.extras if requirement.name == PACKAGE else ():
            yield from _requirements(nested_extra)


def _read_metadata(name: str) -> list[str]:
    try:
        return metadata(PACKAGE).get_all(name) or []
    except PackageNotFoundError as error:
        raise InputError(
            "Shotproof is not installed as a package, so its requirements are unknown: run pip install"
        ) from error


def _find_problem(requirement: Requirement) -> str | None:
    try:
        importlib.import_module(MODULES.get(requirement.name, requirement.name))
    except Exception as error:  # noqa: BLE001 - a broken installation may raise anything
        return f"cannot be imported: {first_line(error)}"
    return _check_version(requirement)


def _check_version(requirement: Requirement) -> str | None:
    installed = _installed_version(requirement.name)
    if installed is None:
        return "not installed"
    fits = requirement.specifier.contains(installed, prereleases=True)
    return None if fits else f"expected {requirement.specifier}, found {installed}"


def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
