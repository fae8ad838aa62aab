"""Diagnosis of the installation: packages, devices, the cache, model files."""

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
    """Cache folder: its size in bytes, and why it cannot be written, if so."""

    folder: str
    bytes: int
    problem: str | None


@dataclass(frozen=True)
class ModelFile:
    """Weights file of an encoder, or why it is missing."""

    encoder: str
    file: str | None
    problem: str | None


@dataclass(frozen=True)
class Diagnosis:
    """State of the installation; `works` is true if all required dependencies can be used."""

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
    """Check the installation and this machine; nothing is written or downloaded.

    Returns:
        The diagnosis.

    Raises:
        InputError: Shotproof is not installed as a package.

    Example:
        >>> doctor().works
        True
    """
    dependencies = core_dependencies()
    works = not any(dependency.problem for dependency in dependencies)
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
    """Return a description of each device, by its PyTorch name."""
    import loky
    import torch

    devices = {"cpu": f"{loky.cpu_count()} cores"}
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        devices[f"cuda:{index}"] = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
    return devices


def _cache_state(folder: Path) -> CacheState:
    """Measure the cache folder, and check whether it can be written."""
    size = sum(map(_size, folder.rglob("*")))
    existing_folder = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing_folder):
            problem = None
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
    return CacheState(str(folder), size, problem)


def _size(path: Path) -> int:
    """Return the size of a file in bytes; 0 for a folder or a file that was just removed by another process."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def _model_files() -> list[ModelFile]:
    """Locate the weights of the encoders that read them from a file."""
    from shotproof.features.encoders.birdnet import model_file
    from shotproof.features.encoders.lite0 import weights_file

    return [_locate_model_file("lite0", weights_file), _locate_model_file("birdnet", model_file)]


def _locate_model_file(encoder: str, locate: Callable[[], Path]) -> ModelFile:
    """Locate the weights of one encoder."""
    try:
        path = locate()
    except ShotproofError as error:
        return ModelFile(encoder, None, str(error))
    return ModelFile(encoder, str(path), None if path.is_file() else "does not exist")
