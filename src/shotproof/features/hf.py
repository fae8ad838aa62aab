"""Vision models of Hugging Face's transformers: from a folder, its local cache, or, when asked, the hub."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from shotproof.errors import InputError, MissingExtra, UnknownName
from shotproof.features.network import NetworkEncoder
from shotproof.hugging_face import load_part
from shotproof.images import open_image

POOLINGS = ("auto", "cls", "mean", "pooler")
CLASS_TOKENS = {"cls_token", "class_embedding"}  # as transformers' models name these parameters
EXTRA_TOKENS = CLASS_TOKENS | {"distillation_token", "register_tokens"}


class HuggingFace(NetworkEncoder):
    """A vision model with its own image processor (the one of Pillow), in float32.

    Of a model of images and texts (CLIP, SigLIP), the vision tower, before the projection to the texts' space.
    `pooling` says how its output becomes one vector: `pooler` is the model's own, `cls` the class token, `mean`
    the mean over the map or the patch tokens; `auto` is the first of these three that the model has.
    Only safetensors are read, and no code that comes with a model is run.
    """

    about = "any vision model of transformers: DINOv2, CLIP, SigLIP, ViT, ConvNeXt, ResNet (extra: hf)"
    name = "hf"

    def __init__(self, model: str, pooling: str = "auto", hub: bool = False) -> None:
        try:
            import transformers
        except ImportError as error:
            raise MissingExtra("encoder 'hf'", "hf") from error
        if pooling not in POOLINGS:
            raise UnknownName("pooling", pooling, POOLINGS)
        self.model = str(model)
        self.pooling = pooling
        self.hub = hub
        self._processor = load_part(transformers.AutoImageProcessor, self.model, hub=self.hub, backend="pil")

    def parameters(self) -> dict[str, Any]:
        """The model and the pooling, as given."""
        return {"model": self.model, "pooling": self.pooling}

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the vision model's weights and settings, pooling, preprocessing."""
        hasher = hashlib.sha256(f"{type(self.network).__name__};{self._processor.to_json_string()}".encode())
        config = self.network.config.to_dict()
        settings = {key: config[key] for key in config if key not in ("_name_or_path", "transformers_version")}
        hasher.update(json.dumps(settings, sort_keys=True, default=str).encode())
        for name, tensor in sorted(self.network.state_dict().items()):
            hasher.update(f"{name}:{list(tensor.shape)};".encode())
            hasher.update(tensor.cpu().contiguous().numpy().data)
        return f"hf model={hasher.hexdigest()} pooling={self.pooling}"

    @cached_property
    def network(self) -> Any:
        """The vision model, in evaluation mode."""
        from transformers import AutoModel

        whole, report = load_part(AutoModel, self.model, hub=self.hub, use_safetensors=True, output_loading_info=True)
        tower = getattr(whole, "vision_model", whole)
        if getattr(tower, "main_input_name", "") != "pixel_values":
            raise InputError(f"model '{self.model}' is a {type(whole).__name__}, which does not take images")
        prefix = "vision_model." if tower is not whole else ""
        missing = {key.removeprefix(prefix) for key in report["missing_keys"] if key.startswith(prefix)}
        if any(key.startswith("pooler.") for key in missing):
            tower.pooler = None  # checkpoints of classifiers lack it; random weights are no pooler
        lost = sorted(key for key in missing if not key.startswith("pooler."))
        if lost:
            raise InputError(f"model '{self.model}' lacks {len(lost)} of its weights, e.g. {lost[0]}")
        return tower.float().eval()

    def load(self, path: Path) -> npt.NDArray[np.float32]:
        """What the model's image processor makes of the image, [3, height, width]."""
        pixels = self._processor(images=open_image(path), return_tensors="np")["pixel_values"]
        return np.asarray(pixels[0], dtype=np.float32)

    def move(self, device: torch.device) -> torch.device:
        """Move the network."""
        self.network.to(device)
        return device

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Images, [b, 3, height, width], to features, [b, d]."""
        output = self.network(pixel_values=batch)
        hidden: torch.Tensor = output.last_hidden_state  # tokens [b, t, d] or a map [b, d, height, width]
        pooled: torch.Tensor | None = output.get("pooler_output")
        tokens = {name.rpartition(".")[2]: tensor for name, tensor in self.network.named_parameters()}
        has_class_token = hidden.ndim == 3 and not tokens.keys().isdisjoint(CLASS_TOKENS)
        if self.pooling in ("auto", "pooler") and pooled is not None:
            return pooled.flatten(1)
        if self.pooling in ("auto", "cls") and has_class_token:
            return hidden[:, 0]
        if self.pooling in ("auto", "mean"):
            return _mean(hidden, extra_tokens=sum(_count(tokens[name]) for name in EXTRA_TOKENS & tokens.keys()))
        raise InputError(f"model '{self.model}' has nothing for pooling '{self.pooling}': try pooling 'auto'")


def _count(token: torch.Tensor) -> int:
    """How many tokens a parameter [d] or [1, n, d] holds."""
    return 1 if token.ndim == 1 else token.shape[-2]


def _mean(hidden: torch.Tensor, extra_tokens: int) -> torch.Tensor:
    """The mean over a map [b, d, height, width], or over the patch tokens of [b, t, d], [b, d]."""
    return hidden.mean(dim=(2, 3)) if hidden.ndim == 4 else hidden[:, extra_tokens:].mean(dim=1)
