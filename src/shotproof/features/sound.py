"""What all encoders of sounds share: clips of one rate and length, cached by content like images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError
from shotproof.features.network import NetworkEncoder
from shotproof.sounds.clip import SECONDS, read_clip
from shotproof.sounds.mixture import Clip, clip_digests, clips_of


class SoundEncoder(NetworkEncoder):
    """An encoder of clips: the first `seconds` of each sound, a shorter one repeated, as one channel at `rate`.

    A mixture that is not written to disk is made on the fly, and cached by what it is made of.
    """

    kind = "sound"

    def __init__(self, rate: int, seconds: float = SECONDS) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 600:
            raise InputError(f"encoder '{self.name}': seconds {seconds!r}: expected a number above 0, at most 600")
        self.rate = rate
        self.seconds = float(seconds)

    def parameters(self) -> dict[str, Any]:
        """The clips' length."""
        return {"seconds": self.seconds}

    def files(self, catalog: Catalog) -> Sequence[Clip]:
        """The file of each item, or the mixture that it stands for."""
        return clips_of(catalog)

    def digests(self, files: Sequence[Clip], cache: Path | None) -> pa.Array:
        """A digest of the content of each, [n]."""
        return clip_digests(files, cache)

    def load(self, path: Clip) -> npt.NDArray[np.float32]:
        """The clip, [rate * seconds]."""
        return read_clip(path, self.rate, self.seconds)
