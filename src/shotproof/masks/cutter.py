"""Contract of a cutter, which finds the foreground of an image, and the registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shotproof.core.options import Component
from shotproof.core.registry import Registry

Pixels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


class Box(NamedTuple):
    """Rectangle around the foreground, as shares of the width and height."""

    left: float
    top: float
    right: float
    bottom: float

    def mirrored(self) -> Box:
        """Return the box in the image with left and right exchanged."""
        return Box(1 - self.right, self.top, 1 - self.left, self.bottom)

    def in_pixels(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom in pixels; at least one pixel each way, inside the image."""
        left, top = min(int(self.left * width), width - 1), min(int(self.top * height), height - 1)
        right, bottom = round(self.right * width), round(self.bottom * height)
        return left, top, min(max(right, left + 1), width), min(max(bottom, top + 1), height)


class Cutter(Component, ABC):
    """Finds which pixels of an image show the foreground. It must be picklable and deterministic."""

    kind = "cutter"

    @property
    def fingerprint(self) -> str:
        """Return everything that a mask depends on besides the image and its box."""
        return self.spelling

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
