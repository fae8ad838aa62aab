"""Components that layers above their registry bring: declared by the package itself, which knows all layers."""

from __future__ import annotations

declared: dict[str, dict[str, str]] = {}  # import paths by name, by kind
