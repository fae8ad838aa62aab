"""What of Shotproof can be used on this machine: what is installed, devices, the cache, models' files."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shotproof.core.errors import ShotproofError
from shotproof.core.installation import Dependency, Extra, core_dependencies, extras
from shotproof.core.runtime.runtime import default_cache
from shotproof.version import __version__


@dataclass(frozen=True)
class CacheState:
    """The cache's folder, what is in it, and why it cannot be written."""

    folder: str
    bytes: int
    problem: str | None


@dataclass(frozen=True)
class ModelFile:
    """The weights that an encoder reads, or why there are none."""

    encoder: str
    file: str | None
    problem: str | None


@dataclass(frozen=True)
class Diagnosis:
    """What of Shotproof can be used; `works` says whether all that it cannot do without is there."""

    works: bool
    version: str
    python: str
    system: str
    dependencies: list[Dependency]
    extras: list[Extra]
    devices: dict[str, str]
    cache: CacheState
    model_files: list[ModelFile]


def doctor() -> Diagnosis:
    """Look at what is installed and at what this machine has; nothing is written or downloaded.

    Returns:
        What was found.

    Raises:
        InputError: Shotproof is not installed as a package.

    Example:
        >>> doctor().works
        True
    """
    dependencies = core_dependencies()
    works = not any(each.problem for each in dependencies)
    return Diagnosis(
        works=works,
        version=__version__,
        python=platform.python_version(),
        system=platform.platform(terse=True),
        dependencies=dependencies,
        extras=extras(),
        devices=_devices() if works else {},
        cache=_cache_state(default_cache()),
        model_files=_model_files() if works else [],
    )


def _devices() -> dict[str, str]:
    """What PyTorch calls each device, and what it is."""
    import loky
    import torch

    found = {"cpu": f"{loky.cpu_count()} cores"}
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        found[f"cuda:{index}"] = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
    return found


def _cache_state(folder: Path) -> CacheState:
    kept = sum(map(_size, folder.rglob("*")))
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            problem = None
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
    return CacheState(str(folder), kept, problem)


def _size(path: Path) -> int:
    """The bytes of a file, 0 of a folder or of what another process has just removed."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def _model_files() -> list[ModelFile]:
    from shotproof.features.encoders.birdnet import model_file
    from shotproof.features.encoders.lite0 import weights_file

    return [_found("lite0", weights_file), _found("birdnet", model_file)]


def _found(encoder: str, locate: Callable[[], Path]) -> ModelFile:
    try:
        path = locate()
    except ShotproofError as error:
        return ModelFile(encoder, None, str(error))
    return ModelFile(encoder, str(path), None if path.is_file() else "is not there")
