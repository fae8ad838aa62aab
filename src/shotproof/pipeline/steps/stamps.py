"""Sizes and times of files: cheap to get, and others when a file changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shotproof.core.options import Component
from shotproof.core.storage.files import find


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
