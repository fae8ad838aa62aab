"""Two-tower models of transformers (CLIP, SigLIP): images and texts as vectors of one space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from shotproof.core.errors import InputError
from shotproof.core.hugging_face import load_part
from shotproof.core.options import option
from shotproof.core.records import FeaturesRecord, Maker
from shotproof.features.encoders.hf import VisionModel
from shotproof.features.encoders.tower import tower_digest
from shotproof.features.features import Features

NAME = "{}"  # the template that is the name itself
_BATCH = 64


@dataclass(frozen=True)
class TwoTower(VisionModel):
    """A model with a tower for images and one for texts; as an encoder, its images after the projection.

    From a folder, the local cache or, with `hub`, the Hugging Face hub.
    """

    about = "images of a two-tower model (CLIP, SigLIP) in the space that its texts share"
    example = "two-tower:openai/clip-vit-base-patch32"

    model: str = option(help="a folder, or a name on the Hugging Face hub", argument=True)
    hub: bool = option(False, "whether the model may be downloaded", recorded=False)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the whole model and of the preprocessing."""
        preprocessing = self.processor.to_json_string()
        return f"two-tower model={tower_digest(self.network, preprocessing)}"

    @cached_property
    def network(self) -> Any:
        """The whole model, in evaluation mode."""
        whole, report = load_part("AutoModel", self.model, hub=self.hub, use_safetensors=True, output_loading_info=True)
        if not (hasattr(whole, "get_image_features") and hasattr(whole, "get_text_features")):
            raise InputError(
                f"model '{self.model}' is a {type(whole).__name__}, which has no tower for images and one for texts: "
                "expected a model like CLIP or SigLIP"
            )
        lost = sorted(report["missing_keys"])
        if lost:
            raise InputError(f"model '{self.model}' lacks {len(lost)} of its weights, e.g. {lost[0]}")
        return whole.float().eval()

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Images, [b, 3, height, width], to vectors, [b, d]."""
        projected: torch.Tensor = self.network.get_image_features(pixel_values=batch).pooler_output
        return projected

    def encode_words(self, words: Sequence[str], template: str = NAME) -> Features:
        """One vector per word, put into the template first; underscores are read as spaces."""
        if "{}" not in template:
            raise InputError(f"template '{template}': expected {{}} where the name goes, e.g. 'a photo of a {{}}'")
        config = self.network.config
        tokenizer = load_part("AutoTokenizer", self.model, hub=self.hub)
        texts = [template.replace("{}", word.replace("_", " ")) for word in words]
        # SigLIP is trained on texts of full length alone; CLIP's attention leaves out what is padded.
        padding = "max_length" if config.model_type.startswith("siglip") else True
        longest = config.text_config.max_position_embeddings
        values = []
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            tokens = tokenizer(batch, padding=padding, truncation=True, max_length=longest, return_tensors="pt")
            with torch.inference_mode():
                tokens = tokens.to(next(self.network.parameters()).device)
                values.append(self.network.get_text_features(**tokens).pooler_output.cpu().numpy())
        made = Maker("words", f"words of {self}", {"model": self.model, "template": template})
        return Features.from_array(list(words), np.concatenate(values), record=FeaturesRecord(encoder=made))
