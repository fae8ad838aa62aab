"""Two-tower models of transformers (CLIP, SigLIP): images and texts as vectors of one space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shotproof.features.encoders.hf import VisionModel
from shotproof.features.encoders.text_tower import TextTower
from shotproof.features.encoders.tower import tower_digest

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TwoTower(TextTower, VisionModel):
    """A model with a tower for images and one for texts; as an encoder, its images after the projection.

    From a folder, the local cache or, with `hub`, the Hugging Face hub. With `templates`, the features carry the texts
    of the classes, for methods such as `zero-shot` and `tip-adapter`.
    """

    about = "images of a two-tower model (CLIP, SigLIP) in the space that its texts share (extra: hf)"
    example = "two-tower:openai/clip-vit-base-patch32(templates='a photo of a {}.', hub=True)"
    item_tower = "get_image_features"
    example_model = "CLIP or SigLIP"

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the whole model and of the preprocessing."""
        preprocessing = self.processor.to_json_string()
        return f"two-tower model={tower_digest(self.network, preprocessing)}"

    def tower_inputs(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """Images, [b, 3, height, width]."""
        return {"pixel_values": batch}
