"""Changes to one thing in an item, such as blur, noise or another background: what interventions are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.public_names import public_names

if TYPE_CHECKING:
    from shotproof.changes.change import BackgroundChange as BackgroundChange
    from shotproof.changes.change import Change as Change
    from shotproof.changes.change import ImageChange as ImageChange
    from shotproof.changes.change import SoundChange as SoundChange
    from shotproof.changes.change import changes as changes

HOMES = {
    "BackgroundChange": "changes.change",
    "Change": "changes.change",
    "ImageChange": "changes.change",
    "SoundChange": "changes.change",
    "changes": "changes.change",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = public_names(__name__, HOMES)
