"""Vision models of Hugging Face's transformers: from a folder, its local cache, or, when asked, the hub."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from shotproof.errors import InputError, MissingExtra
from shotproof.features.network import NetworkEncoder
from shotproof.features.tower import check_pooling, load_tower, local_map, pooled, tower_digest
from shotproof.hugging_face import load_part
from shotproof.images import open_image


class HuggingFace(NetworkEncoder):
    """A vision model with its own image processor (the one of Pillow), in float32.

    Of a model of images and texts (CLIP, SigLIP), the vision tower, before the projection to the texts' space.
    `pooling` says how its output becomes one vector: `pooler` is the model's own, `cls` the class token, `mean`
    the mean over the map or the patch tokens; `auto` is the first of these three that the model has. With `maps`, it is
    left as the map, or as the patch tokens where they lie in the image.
    Only safetensors are read, and no code that comes with a model is run.
    """

    about = "any vision model of transformers: DINOv2, CLIP, SigLIP, ViT, ConvNeXt, ResNet (extra: hf)"
    name = "hf"

    def __init__(self, model: str, pooling: str = "auto", hub: bool = False, maps: bool = False) -> None:
        try:
            import transformers
        except ImportError as error:
            raise MissingExtra("encoder 'hf'", "hf") from error
        self.model = str(model)
        self.pooling = check_pooling(pooling)
        self.maps = maps
        if maps and pooling != "auto":
            raise InputError(f"encoder 'hf': maps are not pooled: leave pooling='{pooling}' out")
        self.hub = hub
        self._processor = load_part(transformers.AutoImageProcessor, self.model, hub=self.hub, backend="pil")

    def parameters(self) -> dict[str, Any]:
        """The model and the pooling, as given, and whether it gives maps."""
        return {"model": self.model, "pooling": self.pooling, **({"maps": True} if self.maps else {})}

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the vision model's weights and settings, pooling, preprocessing."""
        return f"hf model={tower_digest(self.network, self._processor.to_json_string())} pooling={self.pooling}"

    @cached_property
    def network(self) -> Any:
        """The vision model, in evaluation mode."""
        return load_tower(self.model, "vision_model", {"pixel_values"}, "images", hub=self.hub)

    def load(self, path: Path) -> npt.NDArray[np.float32]:
        """What the model's image processor makes of the image, [3, height, width]."""
        pixels = self._processor(images=open_image(path), return_tensors="np")["pixel_values"]
        return np.asarray(pixels[0], dtype=np.float32)

    def move(self, device: torch.device) -> torch.device:
        """Move the network."""
        self.network.to(device)
        return device

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Images, [b, 3, height, width], to features, [b, d], or maps, [b, d, h, w]."""
        output = self.network(pixel_values=batch)
        if self.maps:
            return local_map(self.network, output.last_hidden_state, batch.shape[2:], self.model)
        return pooled(self.network, output, self.pooling, self.model)
