"""Down-scaled colours: the naive baseline, which sees colour and layout and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from shotproof.errors import InputError
from shotproof.features.network import NetworkEncoder
from shotproof.images import open_image


class Pixels(NetworkEncoder):
    """Colours averaged over size x size boxes, in [0, 1]; size * size * 3 dimensions, row by row.

    With `maps`, 3 channels at size x size locations.
    """

    about = "down-scaled colours, the naive baseline"
    name = "pixels"

    def __init__(self, size: int = 8, maps: bool = False) -> None:
        if not isinstance(size, int) or not 1 <= size <= 256:
            raise InputError(f"encoder 'pixels': size {size!r}: expected a whole number from 1 to 256")
        self.size = size
        self.maps = maps

    def parameters(self) -> dict[str, Any]:
        """The size, and whether it gives maps."""
        return {"size": self.size, **({"maps": True} if self.maps else {})}

    @property
    def fingerprint(self) -> str:
        """Name and size."""
        return f"pixels size={self.size}"

    def load(self, path: Path) -> npt.NDArray[np.float32]:
        """Averaged colours, [size * size * 3]."""
        image = open_image(path)
        # Each channel as floats, so that the mean is not rounded to one of 256 values.
        channels = [
            np.asarray(channel.convert("F").resize((self.size, self.size), Image.Resampling.BOX))
            for channel in image.split()
        ]
        return np.stack(channels, axis=-1, dtype=np.float32).reshape(-1) / np.float32(255)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """The colours are the features, [b, d], or maps, [b, 3, size, size]."""
        return batch.view(-1, self.size, self.size, 3).permute(0, 3, 1, 2) if self.maps else batch
