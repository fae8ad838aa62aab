"""Components defined in layers above their registry; the package itself declares them, as it knows all layers."""

from __future__ import annotations

declared: dict[str, dict[str, str]] = {}  # import paths by name, by kind
