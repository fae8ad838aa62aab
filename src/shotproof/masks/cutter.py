"""Contract of a cutter, which finds the foreground of an image, and the registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from shotproof.core.options import Component
from shotproof.core.registry import Registry
from shotproof.media.box import Box
from shotproof.media.mask_file import Mask

Pixels = npt.NDArray[np.uint8]


class Cutter(Component, ABC):
    """Finds which pixels of an image show the foreground. It must be picklable and deterministic.

    needs_boxes: whether it is much worse without the boxes of the foregrounds
    """

    kind = "cutter"
    needs_boxes: ClassVar[bool] = False

    @property
    def fingerprint(self) -> str:
        """Return everything that a mask depends on besides the image and its box."""
        return f"{self.name} {self.parameters()}"

    @abstractmethod
    def cut(self, pixels: Pixels, box: Box | None) -> Mask:
        """Return the mask of an image.

        Args:
            pixels: [height, width, 3]; the shorter side has 192 pixels
            box: around the foreground; None if it is unknown

        Returns:
            Whether a pixel shows the foreground, [height, width].
        """


cutters: Registry[Cutter] = Registry(
    "cutter",
    {
        "grabcut": "shotproof.masks.grabcut:GrabCut",
        "hf": "shotproof.masks.segmentation:HuggingFaceSegmentation",
        "onnx": "shotproof.masks.segmentation:OnnxSegmentation",
    },
)
