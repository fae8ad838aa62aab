"""Quality of a mask: its measures and their thresholds, so that a bad mask does not decide a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shotproof.changes.layers import hole_around
from shotproof.core.nouns import counted
from shotproof.core.options import Checked, option
from shotproof.media.box import Box
from shotproof.media.mask_file import Mask, scaled_mask

_SIDE = 192  # pixels of the shorter side at which the hole of a plate is measured, at most
_SPECK = 0.02  # pieces smaller than this share of the mask are not counted


@dataclass(frozen=True)
class MaskThresholds(Checked):
    """Thresholds for the quality of a mask.

    Example:
        >>> quality = MaskQuality(area=0.01, box_area=None, pieces=1, border=0.0, background=0.9, agreement=1.0)
        >>> quality.fails(MaskThresholds())
        'small'
    """

    min_area: float = option(0.02, "smallest share of the image", least=0, most=1)
    max_area: float = option(0.9, "largest share of the image", least=0, most=1)
    min_box_area: float = option(0.2, "smallest share of the box, if there is one", least=0, most=1)
    max_pieces: int = option(3, "largest number of separate pieces", least=1)
    max_border: float = option(0.5, "largest share of the border of the image that it touches", least=0, most=1)
    min_background: float = option(
        0.05,
        "smallest share of the image outside of the hole that is filled where its background is shown",
        least=0,
        most=1,
    )
    min_agreement: float = option(
        0.7, "smallest overlap (intersection over union) with the mask of the mirrored image", least=0, most=1
    )


@dataclass(frozen=True)
class MaskQuality:
    """Measures of a mask.

    area: share of the image; box_area: share of its box, None without one
    pieces: number of separate pieces, without specks
    border: share of the image's border that it touches
    background: share of the image outside of the hole around the foreground, which is filled in plates
    agreement: intersection over union with the mask that the cutter makes of the mirrored image; None if no cutter
        made the mask
    """

    area: float
    box_area: float | None
    pieces: int
    border: float
    background: float
    agreement: float | None

    @classmethod
    def of(cls, mask: Mask, mirrored: Mask | None, box: Box | None) -> MaskQuality:
        """Measure a mask.

        Args:
            mask: [height, width]
            mirrored: the mask of the mirrored image, mirrored back, [height, width]; None if no cutter made it
            box: around the foreground
        """
        height, width = mask.shape
        box_area = None
        if box is not None:
            left, top, right, bottom = box.in_pixels(width, height)
            box_area = float(mask[top:bottom, left:right].mean())
        border = np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]])
        agreement = None if mirrored is None else _overlap(mask, mirrored)
        return cls(
            float(mask.mean()), box_area, _count_pieces(mask), float(border.mean()), _background(mask, box), agreement
        )

    def fails(self, thresholds: MaskThresholds) -> str | None:
        """Return, in a word, the first threshold that the mask does not keep to; None if it keeps to all."""
        failures = {
            "empty": self.area == 0,
            "full": self.area == 1,
            "small": self.area < thresholds.min_area,
            "large": self.area > thresholds.max_area,
            "fills little of its box": self.box_area is not None and self.box_area < thresholds.min_box_area,
            "in pieces": self.pieces > thresholds.max_pieces,
            "at the border": self.border > thresholds.max_border,
            "hides the background": self.background < thresholds.min_background,
            "unstable": self.agreement is not None and self.agreement < thresholds.min_agreement,
        }
        return next((name for name, has_failed in failures.items() if has_failed), None)

    @property
    def words(self) -> str:
        """Return the measures in words: `area 12%, box 55%, 1 piece, border 0%, agreement 0.98`."""
        return ", ".join(
            [
                f"area {self.area:.0%}",
                *([] if self.box_area is None else [f"box {self.box_area:.0%}"]),
                counted(self.pieces, "piece"),
                f"border {self.border:.0%}",
                f"background {self.background:.0%}",
                *([] if self.agreement is None else [f"agreement {self.agreement:.2f}"]),
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Return the measures as plain values."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def _overlap(mask: Mask, other: Mask) -> float:
    """Return the intersection over union of two masks; 0 if both are empty."""
    union = (mask | other).sum()
    return float((mask & other).sum() / union) if union else 0.0


def _background(mask: Mask, box: Box | None) -> float:
    """Return the share of the image outside of the hole around its foreground."""
    height, width = mask.shape
    scale = min(1.0, _SIDE / min(height, width))
    smaller = scaled_mask(mask, max(1, round(width * scale)), max(1, round(height * scale)))
    return float(1 - hole_around(smaller, box).mean())


def _count_pieces(mask: Mask) -> int:
    """Count the connected pieces, without specks."""
    from scipy.ndimage import label

    pieces, _ = label(mask)
    sizes = np.bincount(pieces.ravel())[1:]
    return int((sizes > _SPECK * mask.sum()).sum())
