"""Extension of mkdocstrings for our docstrings: it expects a section `Examples`, ours are called `Example`."""

from __future__ import annotations

from typing import Any

import griffe


class ExampleSections(griffe.Extension):  # type: ignore[misc]
    """Rename the section before docstrings are parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section in every object that has a docstring."""
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("Example:\n", "Examples:\n")
