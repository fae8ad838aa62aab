"""Environments of their own, made of what is installed here: nothing is downloaded, nothing else is to be found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from email import message_from_bytes
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Metadata:
    """What a wheel says of itself."""

    extras: tuple[str, ...]
    requirements: tuple[Requirement, ...]

    @classmethod
    def of(cls, wheel: Path) -> Metadata:
        with ZipFile(wheel) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            message = message_from_bytes(archive.read(name))
        required = message.get_all("Requires-Dist", [])
        return cls(tuple(message.get_all("Provides-Extra", [])), tuple(map(Requirement, required)))

    def required(self, extra: str = "") -> list[Requirement]:
        """What an installation with this extra asks for, besides Shotproof."""
        found: list[Requirement] = []
        for requirement in self.requirements:
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                found += (
                    [one for inner in requirement.extras for one in self.required(inner)]
                    if _own(requirement)
                    else [requirement]
                )
        return found


@dataclass(frozen=True)
class Environment:
    """A Python that sees the installed wheel and the distributions of one folder."""

    python: Path
    packages: Path

    def run(self, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments in a folder."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
        own = {"PYTHONPATH": str(self.packages), "SHOTPROOF_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [str(self.python), *arguments], cwd=folder, env=inherited | own, text=True, capture_output=True
        )


def make_python(folder: Path, wheel: Path) -> Path:
    """An empty environment with the wheel in it, and nothing of what the wheel needs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--disable-pip-version-check", str(wheel)], check=True)
    return python


def link_packages(folder: Path, requirements: Iterable[Requirement]) -> Path:
    """A folder with links to what is installed here of these requirements and of all that they require in turn."""
    folder.mkdir()
    for each in _closure(requirements):
        for top in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            target = Path(str(each.locate_file(top)))
            if target.exists() and not (folder / top).exists():
                (folder / top).symlink_to(target)
    return folder


def missing(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Those of them that are not installed here."""
    return [requirement for requirement in requirements if _installed(requirement.name) is None]


def _closure(requirements: Iterable[Requirement]) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    done: set[tuple[str, str]] = set()
    pending = [(requirement.name, extra) for requirement in requirements for extra in ("", *requirement.extras)]
    while pending:
        name, extra = pending.pop()
        installed = _installed(name)
        if installed is None or (canonicalize_name(name), extra) in done:
            continue
        done.add((canonicalize_name(name), extra))
        found[canonicalize_name(name)] = installed
        for each in map(Requirement, installed.requires or ()):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                pending += [(each.name, inner) for inner in ("", *each.extras)]
    return list(found.values())


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _own(requirement: Requirement) -> bool:
    return canonicalize_name(requirement.name) == "shotproof"
