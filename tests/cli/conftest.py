"""What all tests of the command line share."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
import typer.main
import typer.testing


@pytest.fixture(autouse=True, scope="session")
def commands_are_built_once() -> Iterator[None]:
    """Typer builds all commands anew, from their signatures, whenever one of them is called."""
    build = functools.cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", build)
        patch.setattr(typer.testing, "_get_command", build)
        yield
