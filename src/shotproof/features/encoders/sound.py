"""What all encoders of sounds share: clips of one rate and length, cached by content like images."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.clips import clip_digests, clips_of
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import OnError
from shotproof.features.encoders.pretrained_network import NetworkEncoder
from shotproof.media.clip import read_clip
from shotproof.media.mixture import Clip

LONGEST_CLIP = 600  # seconds


class SoundEncoder(NetworkEncoder):
    """An encoder of clips: the first `seconds` of each sound, a shorter one repeated, as one channel at `clip_rate`.

    A mixture that is not written to disk is made on the fly, and cached by what it is made of.
    """

    medium = "sound"
    seconds: float  # an option of each

    def extras(self) -> Mapping[str, str]:
        """What reads sounds."""
        return {"soundfile": "sound"}

    @property
    @abstractmethod
    def clip_rate(self) -> int:
        """Samples per second of its clips."""

    def files(self, catalog: Catalog) -> Sequence[Clip]:
        """The file of each item, or the mixture that it stands for."""
        return clips_of(catalog)

    def digests(self, files: Sequence[Clip], runtime: Runtime, on_error: OnError) -> pa.Array:
        """A digest of the content of each, [n]; with `on_error` skip, null where it cannot be read."""
        return clip_digests(files, runtime, on_error)

    def load(self, path: Clip) -> npt.NDArray[np.float32]:
        """The clip, [clip_rate * seconds]."""
        return read_clip(path, self.clip_rate, self.seconds)
