"""What all encoders of sounds share: clips of one rate and length, cached by content like images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shotproof.errors import InputError
from shotproof.features.network import NetworkEncoder
from shotproof.sounds.clip import SECONDS, read_clip


class SoundEncoder(NetworkEncoder):
    """An encoder of clips: the first `seconds` of each sound, a shorter one repeated, as one channel at `rate`."""

    kind = "sound"

    def __init__(self, rate: int, seconds: float = SECONDS) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 600:
            raise InputError(f"encoder '{self.name}': seconds {seconds!r}: expected a number above 0, at most 600")
        self.rate = rate
        self.seconds = float(seconds)

    def parameters(self) -> dict[str, Any]:
        """The clips' length."""
        return {"seconds": self.seconds}

    def load(self, path: Path) -> npt.NDArray[np.float32]:
        """The clip, [rate * seconds]."""
        return read_clip(path, self.rate, self.seconds)
