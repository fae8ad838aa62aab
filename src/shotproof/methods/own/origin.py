"""Where a method of somebody's own is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shotproof.core.spelling import write_call


@dataclass(frozen=True)
class CodeOrigin:
    """What it takes to find and make a method again, in another process too.

    name: as a user types it, without options: `my_heads.py:Head`, `python:my_package.heads:Head`
    options: what it was made with
    file: the absolute path of its file, None where it was imported
    digest: of the file's content
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    file: str | None = None
    digest: str | None = None

    @property
    def spelling(self) -> str:
        """The name with its options."""
        return write_call(self.name, self.options)
