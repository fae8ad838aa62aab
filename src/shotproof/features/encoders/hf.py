"""The encoder `hf`: vision models of Hugging Face's transformers, from a folder, the local cache, or the hub."""

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
from shotproof.features.encoders.tower import POOLINGS, load_tower, local_map, pool_output, pool_stages, tower_digest
from shotproof.features.pretraining.class_lists import IMAGENET
from shotproof.media.images import open_image

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TransformersModel(NetworkEncoder):
    """Encoder that uses a model of transformers."""

    model: str = option(help="model folder, or name of a model on the Hugging Face hub", argument=True)
    hub: bool = option(False, "whether the model may be downloaded", recorded=False, downloads=True)

    def extras(self) -> Mapping[str, str]:
        """Return the packages that read the items and the model."""
        return {**super().extras(), "transformers": "hf"}

    def check(self, catalog: Catalog) -> None:
        """Check the medium of the items, and that the model is available or may be downloaded."""
        super().check(catalog)
        require_model(self.model, hub=self.hub)


class VisionModel(TransformersModel):
    """Encoder that uses a vision model of transformers, with the model's own image processor (that of Pillow)."""

    @cached_property
    def processor(self) -> Any:
        """Return the model's image processor."""
        return load_part("AutoImageProcessor", self.model, hub=self.hub, backend="pil")

    def load(self, path: Path) -> npt.NDArray[np.float32]:
        """Read an image and apply the model's image processor, [3, height, width]."""
        pixels = self.processor(images=open_image(path), return_tensors="np")["pixel_values"]
        return np.asarray(pixels[0], dtype=np.float32)


@dataclass(frozen=True)
class HuggingFace(StagedEncoder, VisionModel):
    """A vision model in float32.

    For a model of images and texts (CLIP, SigLIP), it is the vision tower, before the projection to the texts' space.
    `pooling` turns the output into one vector: `pooler` is the model's own pooler, `cls` the class token, `mean` the
    mean over the map or the patch tokens; `auto` is the first of these three that the model has. With `maps`, the
    output is the map, or the patch tokens at their locations in the image. Its stages are its blocks, the last one
    after the final norm, pooled by the class token or the mean.
    Only safetensors are read, and no code in a model's repository is run.
    """

    about = "any vision model of transformers: DINOv2, CLIP, SigLIP, ViT, ConvNeXt, ResNet (extra: hf)"
    example = "hf:facebook/dinov2-small(hub=True)"

    pooling: str = option("auto", "how the output is pooled to one vector", choices=POOLINGS)
    maps: bool = option(False, "local maps in place of one vector")
    stage: int | None = option(None, STAGE, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.maps and self.pooling != "auto":
            raise InputError(f"encoder 'hf': maps are not pooled: leave out maps or pooling='{self.pooling}'")

    @cached_property
    def fingerprint(self) -> str:
        """Return the digest of the model's weights, settings and preprocessing, and the pooling."""
        preprocessing = self.processor.to_json_string()
        return f"hf model={tower_digest(self.network, preprocessing)} pooling={self.pooling}"

    @cached_property
    def pretrained_on(self) -> str | None:  # type: ignore[override]
        """Return `imagenet` if the model's settings list its classes."""
        labels = getattr(self.network.config, "id2label", None) or {}
        return IMAGENET if len(labels) == 1000 and str(labels.get(0, "")).startswith("tench") else None

    @cached_property
    def network(self) -> Any:
        """Return the vision model, in evaluation mode."""
        return load_tower(self.model, "vision_model", {"pixel_values"}, "images", hub=self.hub)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Encode images, [b, 3, height, width], as features, [b, d], or maps, [b, d, h, w]."""
        output = self.network(pixel_values=batch)
        if self.maps:
            return local_map(self.network, output.last_hidden_state, batch.shape[2:], self.model)
        return pool_output(self.network, output, self.pooling, self.model)

    def stages(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """Encode images, [b, 3, height, width], as the pooled output of each block."""
        output = self.network(pixel_values=batch, output_hidden_states=True)
        return pool_stages(self.network, output, self.pooling, self.model)
