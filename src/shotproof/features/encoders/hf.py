"""Vision models of Hugging Face's transformers: from a folder, its local cache, or, when asked, the hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shotproof.catalog.catalog import Catalog
from shotproof.core.clients.hugging_face import load_part, require_model
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.features.encoders.pretrained_network import NetworkEncoder
from shotproof.features.encoders.staged import STAGE, StagedEncoder
from shotproof.features.encoders.tower import POOLINGS, load_tower, local_map, pooled, pooled_stages, tower_digest
from shotproof.features.pretraining.class_lists import IMAGENET
from shotproof.media.images import open_image

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TransformersModel(NetworkEncoder):
    """An encoder by a model of transformers."""

    model: str = option(help="a folder, or a name on the Hugging Face hub", argument=True)
    hub: bool = option(False, "whether the model may be downloaded", recorded=False, downloads=True)

    def extras(self) -> Mapping[str, str]:
        """What reads the items, and the model."""
        return {**super().extras(), "transformers": "hf"}

    def check(self, catalog: Catalog) -> None:
        """Refuse items of another medium, and a model that would have to be downloaded without leave."""
        super().check(catalog)
        require_model(self.model, hub=self.hub)


class VisionModel(TransformersModel):
    """An encoder by a model of transformers, with the model's own image processor (the one of Pillow)."""

    @cached_property
    def processor(self) -> Any:
        """What makes the model's input of an image."""
        return load_part("AutoImageProcessor", self.model, hub=self.hub, backend="pil")

    def load(self, path: Path) -> npt.NDArray[np.float32]:
        """What the model's image processor makes of the image, [3, height, width]."""
        pixels = self.processor(images=open_image(path), return_tensors="np")["pixel_values"]
        return np.asarray(pixels[0], dtype=np.float32)


@dataclass(frozen=True)
class HuggingFace(StagedEncoder, VisionModel):
    """A vision model in float32.

    Of a model of images and texts (CLIP, SigLIP), the vision tower, before the projection to the texts' space.
    `pooling` says how its output becomes one vector: `pooler` is the model's own, `cls` the class token, `mean`
    the mean over the map or the patch tokens; `auto` is the first of these three that the model has. With `maps`, it is
    left as the map, or as the patch tokens where they lie in the image. Its stages are its blocks, the last one after
    the final norm, by the class token or the mean.
    Only safetensors are read, and no code that comes with a model is run.
    """

    about = "any vision model of transformers: DINOv2, CLIP, SigLIP, ViT, ConvNeXt, ResNet (extra: hf)"
    example = "hf:facebook/dinov2-small(hub=True)"

    pooling: str = option("auto", "how the output becomes one vector", choices=POOLINGS)
    maps: bool = option(False, "local maps in place of one vector")
    stage: int | None = option(None, STAGE, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.maps and self.pooling != "auto":
            raise InputError(f"encoder 'hf': maps are not pooled: leave pooling='{self.pooling}' out")

    @cached_property
    def fingerprint(self) -> str:
        """Return digest of the vision model's weights and settings, pooling, preprocessing."""
        preprocessing = self.processor.to_json_string()
        return f"hf model={tower_digest(self.network, preprocessing)} pooling={self.pooling}"

    @cached_property
    def pretrained_on(self) -> str | None:  # type: ignore[override]
        """ImageNet, if the model's settings name its classes."""
        labels = getattr(self.network.config, "id2label", None) or {}
        return IMAGENET if len(labels) == 1000 and str(labels.get(0, "")).startswith("tench") else None

    @cached_property
    def network(self) -> Any:
        """Return the vision model, in evaluation mode."""
        return load_tower(self.model, "vision_model", {"pixel_values"}, "images", hub=self.hub)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Images, [b, 3, height, width], to features, [b, d], or maps, [b, d, h, w]."""
        output = self.network(pixel_values=batch)
        if self.maps:
            return local_map(self.network, output.last_hidden_state, batch.shape[2:], self.model)
        return pooled(self.network, output, self.pooling, self.model)

    def stages(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """Images, [b, 3, height, width], to the pooled output of each block."""
        output = self.network(pixel_values=batch, output_hidden_states=True)
        return pooled_stages(self.network, output, self.pooling, self.model)
