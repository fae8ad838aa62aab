"""Masks of the foreground of images: cutters that make them, the control of their quality, and mixing by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.public_names import public_names

if TYPE_CHECKING:
    from shotproof.masks.cut_images import CutSettings as CutSettings
    from shotproof.masks.cut_images import cut as cut
    from shotproof.masks.cutter import cutters as cutters
    from shotproof.masks.mask_quality import MaskThresholds as MaskThresholds
    from shotproof.masks.mix_images import ImageMixSettings as ImageMixSettings

HOMES = {
    "CutSettings": "masks.cut_images",
    "ImageMixSettings": "masks.mix_images",
    "MaskThresholds": "masks.mask_quality",
    "cut": "masks.cut_images",
    "cutters": "masks.cutter",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = public_names(__name__, HOMES)
