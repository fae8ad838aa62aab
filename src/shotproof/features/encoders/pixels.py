"""The encoder `pixels`: down-scaled colors, a naive baseline that sees nothing but color and layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from PIL import Image

from shotproof.core.options import option
from shotproof.features.encoders.pretrained_network import NetworkEncoder
from shotproof.media.images import REDUCED, open_image

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Pixels(NetworkEncoder):
    """Colors averaged over size x size boxes, in [0, 1]; size * size * 3 dimensions, row by row.

    With `maps`, 3 channels at size x size locations.
    """

    about = "down-scaled colors, the naive baseline"
    example = "pixels(size=4)"
    reduces = True

    size: int = option(8, "boxes per side", least=1, most=256)
    maps: bool = option(False, "local maps, 3 x size x size, in place of one vector")

    @property
    def fingerprint(self) -> str:
        """Return the name and the size."""
        return f"pixels size={self.size} {REDUCED}"

    def load(self, path: Path) -> npt.NDArray[np.float32]:
        """Read an image and average its colors, [size * size * 3]."""
        image = open_image(path, side=self.size)
        # As floats, because integer means would be rounded to 256 values.
        channels = [
            np.asarray(channel.convert("F").resize((self.size, self.size), Image.Resampling.BOX))
            for channel in image.split()
        ]
        return np.stack(channels, axis=-1, dtype=np.float32).reshape(-1) / np.float32(255)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the colors as features, [b, d], or as maps, [b, 3, size, size]."""
        return batch.view(-1, self.size, self.size, 3).permute(0, 3, 1, 2) if self.maps else batch
