"""Sounds: decoding, loudness, mixing, and the quality of mixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.public_names import public_names

if TYPE_CHECKING:
    from shotproof.media.clip import read_clip as read_clip
    from shotproof.sounds.mapping import read_mapping as read_mapping
    from shotproof.sounds.mix import MixSettings as MixSettings
    from shotproof.sounds.quality import Thresholds as Thresholds

HOMES = {
    "MixSettings": "sounds.mix",
    "Thresholds": "sounds.quality",
    "read_clip": "media.clip",
    "read_mapping": "sounds.mapping",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = public_names(__name__, HOMES)
