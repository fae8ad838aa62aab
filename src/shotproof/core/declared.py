"""Components defined in layers above their registry, declared by `shotproof/__init__.py`, which imports all layers."""

from __future__ import annotations

declared: dict[str, dict[str, str]] = {}  # import path by name, by kind
