"""Two-tower models of transformers for sounds (CLAP): clips and texts as vectors of one space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shotproof.core.options import option
from shotproof.features.encoders.hf_audio import SoundModel
from shotproof.features.encoders.sound import LONGEST_CLIP
from shotproof.features.encoders.text_tower import TextTower
from shotproof.features.encoders.tower import tower_digest
from shotproof.media.clip import SECONDS

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TwoTowerAudio(TextTower, SoundModel):
    """A model with a tower for sounds and one for texts; as an encoder, its sounds after the projection.

    From a folder, the local cache or, with `hub`, the Hugging Face hub. With `templates`, the features carry the texts
    of the classes, for methods such as `zero-shot` and `tip-adapter`.
    """

    about = "sounds of a two-tower model (CLAP) in the space that its texts share (extras: hf, sound)"
    example = "two-tower-audio:laion/clap-htsat-unfused(templates='the sound of {}', hub=True)"
    item_tower = "get_audio_features"
    example_model = "CLAP"

    seconds: float = option(SECONDS, "length of the clips", above=0, most=LONGEST_CLIP)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the whole model, of the preprocessing, and the length of the clips."""
        return f"two-tower-audio model={tower_digest(self.network, self.preprocessing)} seconds={self.seconds}"

    def tower_inputs(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """What `load` gave, [b, ...]."""
        longer = self.shorter_than_the_model_takes(self.network.config.audio_config, batch)
        return {"input_features": batch, **longer}
