"""Sizes and times of files: cheap to get, and others when a file changes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.clips import clips_of
from shotproof.core.files import find
from shotproof.core.options import Component
from shotproof.media.mixture import Mixture


def stamp(path: Path) -> list[int]:
    """Size and time of a file."""
    try:
        found = find(path)
    except OSError:
        return [-1, -1]  # whoever needs the file says that it is missing
    return [found.size, found.changed or 0]


def file_stamps(component: Component) -> list[Any]:
    """Size and time of the files that a component's options name."""
    named = [getattr(component, option.name) for option in component.options() if option.path]
    return [stamp(Path(value)) for value in named if isinstance(value, str | Path)]


def catalog_stamp(catalog: Catalog) -> str:
    """A digest of the sizes and times of a catalog's files."""
    paths: list[Path] = catalog.paths
    if not all(catalog.table.column("path").to_pylist()):  # mixtures that are made when they are read
        clips = clips_of(catalog)
        paths = sorted({file for clip in clips for file in (clip.files if isinstance(clip, Mixture) else [clip])})
    stamps = [stamp(path) for path in paths]
    return hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:32]
