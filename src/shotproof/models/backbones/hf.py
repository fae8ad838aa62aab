"""Vision models of Hugging Face's transformers, to be trained on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from shotproof.core.clients.hugging_face import load_part
from shotproof.core.errors import InputError, MissingExtra
from shotproof.core.options import option
from shotproof.features.encoders.tower import POOLINGS, load_tower, local_map, pooled
from shotproof.models.backbone import Backbone, BackboneNetwork
from shotproof.models.preprocessing import RESAMPLINGS, ImagePreprocessing, Medium, Preprocessing

LARGE = 384  # from this size on, processors with a crop share do not crop
NO_PART = {"mask_token"}  # parameters that have no say in what the model gives


@dataclass(frozen=True)
class HuggingFaceBackbone(Backbone):
    """The network of the encoder `hf:NAME`, with the same weights, pooling and preprocessing, but with gradients.

    Its maps are the patch tokens where they lie in the image; with a class token or a pooler of the model's own, its
    vector is that, else the mean over the map.
    """

    about = "any vision model of transformers: DINOv2, CLIP, SigLIP, ViT, ConvNeXt, ResNet (extra: hf)"
    example = "hf:facebook/dinov2-small(hub=True)"
    pretrained = True

    model: str = option(help="a folder, or a name on the Hugging Face hub", argument=True)
    pooling: str = option("auto", "how the output becomes one vector", choices=POOLINGS)
    hub: bool = option(False, "whether the model may be downloaded", recorded=False, downloads=True)

    def network(self, channels: int) -> BackboneNetwork:
        """The vision model with its weights."""
        return _Network(load_tower(self.model, "vision_model", {"pixel_values"}, "images", hub=self.hub), self)

    def architecture(self, network: BackboneNetwork) -> Mapping[str, Any]:
        """The class and the settings of the vision model."""
        assert isinstance(network, _Network)
        tower = network.tower
        own = {key: value for key, value in tower.config.to_dict().items() if key != "_name_or_path"}
        # Plain values alone: a settings' dtype, say, is none.
        config = json.loads(json.dumps(own, default=str))
        return {"class": type(tower).__name__, "config": config, "pooler": getattr(tower, "pooler", None) is not None}

    def blank(self, channels: int, architecture: Mapping[str, Any]) -> BackboneNetwork:
        """The vision model without its weights."""
        try:
            import transformers
        except ImportError as error:
            raise MissingExtra(f"backbone '{self.name}'", "hf") from error
        kind = getattr(transformers, str(architecture.get("class")), None)
        if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
            raise InputError(f"the model's record names no class of transformers: {architecture.get('class')!r}")
        make: Any = kind
        tower = make(make.config_class(**architecture.get("config", {}))).float()
        if not architecture.get("pooler"):
            tower.pooler = None
        return _Network(tower, self)

    def preprocessing(self, medium: Medium, size: int | None = None, seconds: float | None = None) -> Preprocessing:
        """What the model's image processor does; with a `size` of one's own, in proportion."""
        self.require_images(medium)
        usual = _of_processor(self._processor.to_dict(), self.model)
        return usual if size is None else usual.resized(size)

    @cached_property
    def _processor(self) -> Any:
        return load_part("AutoImageProcessor", self.model, hub=self.hub, backend="pil")


class _Network(BackboneNetwork):
    def __init__(self, tower: Any, options: HuggingFaceBackbone) -> None:
        super().__init__()
        self.tower, self.options = tower, options
        for name, each in tower.named_parameters():
            each.requires_grad_(name.rpartition(".")[2] not in NO_PART)

    def stages(self, items: Tensor) -> list[Tensor]:
        output = self.tower(pixel_values=items, output_hidden_states=True)
        # The first is the embedding of the patches; the last one is before the final norm, if there is one.
        hidden = [*output.hidden_states[1:-1], output.last_hidden_state]
        return [self._map(one, items) for one in hidden]

    def maps(self, items: Tensor) -> Tensor:
        return self._map(self.tower(pixel_values=items).last_hidden_state, items)

    def vectors(self, items: Tensor) -> Tensor:
        return pooled(self.tower, self.tower(pixel_values=items), self.options.pooling, self.options.model)

    def _map(self, hidden: Tensor, items: Tensor) -> Tensor:
        return local_map(self.tower, hidden, items.shape[2:], self.options.model)


def _of_processor(told: Mapping[str, Any], model: str) -> ImagePreprocessing:
    """An image processor's steps as ours: a resize, a crop of the center, a normalization."""
    size, crop, share = told.get("size") or {}, told.get("crop_size") or {}, told.get("crop_pct")
    fit, inner = "crop", None
    if "shortest_edge" in size:
        stored = int(size["shortest_edge"])
        if share is not None and stored < LARGE:
            stored, inner = int(stored / share), stored
        elif share is not None:
            fit = "stretch"
    elif size.get("height") == size.get("width") and "height" in size:
        stored, fit = int(size["height"]), "stretch"
    else:
        raise InputError(f"model '{model}': its image processor has the size {dict(size)}, expected a square")
    if told.get("do_center_crop"):
        inner = int(crop.get("height", stored))
    resample = {int(code): name for name, code in RESAMPLINGS.items()}.get(int(told.get("resample", 3)))
    if resample is None or abs(float(told.get("rescale_factor", 1 / 255)) * 255 - 1) > 1e-6:
        raise InputError(f"model '{model}': its image processor resamples or rescales in a way that is not known here")
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if told.get("do_normalize", True):
        mean, std = tuple(told["image_mean"]), tuple(told["image_std"])
    return ImagePreprocessing(size=inner or stored, stored=stored, fit=fit, resample=resample, mean=mean, std=std)
