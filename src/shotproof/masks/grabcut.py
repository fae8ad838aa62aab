"""GrabCut from a box, with seeds for foreground and background."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shotproof.core.errors import MissingExtra
from shotproof.core.options import option
from shotproof.masks.cutter import Cutter, Pixels
from shotproof.media.box import Box
from shotproof.media.mask_file import Mask

_WHOLE = Box(0.0, 0.0, 1.0, 1.0)
# Shares of the box that seed ellipses cover: certainly, and probably, foreground. Without a box the object may be
# smaller than the image and beside its middle.
_SEEDS, _SEEDS_WITHOUT_BOX = (0.25, 0.75), (0.15, 0.6)


@dataclass(frozen=True)
class GrabCut(Cutter):
    """GrabCut (Rother et al. 2004), started from ellipses in the box of the foreground, or in the whole image.

    What lies outside of the box is background. Without a box the result is often wrong: look at the contact sheet.
    """

    about = "GrabCut from the box of the foreground (columns box_x, ...), or from the whole image (extra: cut)"
    paper = "Rother et al., GrabCut: Interactive Foreground Extraction using Iterated Graph Cuts, 2004"

    needs_boxes = True

    iterations: int = option(4, "rounds of fitting colors and cutting", least=1, most=20)

    def extras(self) -> Mapping[str, str]:
        """Return OpenCV."""
        return {"cv2": "cut"}

    def cut(self, pixels: Pixels, box: Box | None) -> Mask:
        """Cut the foreground out."""
        cv2 = _opencv()
        height, width = pixels.shape[:2]
        certain, probable = _SEEDS_WITHOUT_BOX if box is None else _SEEDS
        left, top, right, bottom = (box or _WHOLE).in_pixels(width, height)
        labels = np.full((height, width), cv2.GC_BGD, np.uint8)
        labels[top:bottom, left:right] = cv2.GC_PR_BGD
        center = ((left + right) // 2, (top + bottom) // 2)
        for share, label in ((probable, cv2.GC_PR_FGD), (certain, cv2.GC_FGD)):
            axes = (max(1, round(share * (right - left) / 2)), max(1, round(share * (bottom - top) / 2)))
            cv2.ellipse(labels, center, axes, 0, 0, 360, label, -1)
        if not (labels == cv2.GC_BGD).any():  # the colors of the background need a sample: the border of the image
            labels[[0, -1], :] = labels[:, [0, -1]] = cv2.GC_BGD
        models = np.zeros((1, 65)), np.zeros((1, 65))
        cv2.setRNGSeed(0)
        cv2.grabCut(pixels[..., ::-1].copy(), labels, None, *models, self.iterations, cv2.GC_INIT_WITH_MASK)
        foreground = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.uint8)
        opened: Mask = cv2.morphologyEx(foreground, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)) > 0
        return opened


def _opencv() -> Any:
    """Import OpenCV, with one thread: images are cut by several processes at a time."""
    try:
        import cv2
    except ImportError as error:
        raise MissingExtra("cutter 'grabcut'", "cut") from error
    cv2.setNumThreads(1)
    return cv2
