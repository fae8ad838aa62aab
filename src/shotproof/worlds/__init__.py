"""Worlds: synthetic data with a known truth, for calibration and demos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.public_names import public_names

if TYPE_CHECKING:
    from shotproof.worlds.context_world import ContextWorld as ContextWorld
    from shotproof.worlds.dial import DialEncoder as DialEncoder
    from shotproof.worlds.gaussian import GaussianWorld as GaussianWorld
    from shotproof.worlds.scenes import ScenesWorld as ScenesWorld
    from shotproof.worlds.shapes import ShapesWorld as ShapesWorld
    from shotproof.worlds.sounds import SoundsWorld as SoundsWorld

HOMES = {
    "ContextWorld": "worlds.context_world",
    "DialEncoder": "worlds.dial",
    "GaussianWorld": "worlds.gaussian",
    "ScenesWorld": "worlds.scenes",
    "ShapesWorld": "worlds.shapes",
    "SoundsWorld": "worlds.sounds",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = public_names(__name__, HOMES)
