"""Vision models of Hugging Face's transformers, for further training."""

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
from shotproof.features.encoders.tower import POOLINGS, load_tower, local_map, pool_output
from shotproof.models.backbone import Backbone, BackboneNetwork
from shotproof.models.preprocessing import RESAMPLINGS, ImagePreprocessing, Medium, Preprocessing

LARGE = 384  # from this size on, processors with a `crop_pct` do not crop
UNUSED = {"mask_token"}  # parameters that do not affect the output


@dataclass(frozen=True)
class HuggingFaceBackbone(Backbone):
    """Network of the encoder `hf:NAME`, with the same weights, pooling and preprocessing, but with gradients.

    Its maps are the patch tokens at their locations in the image. Its vector is the class token or the output of the
    model's own pooler if there is one, else the mean over the map.
    """

    about = "any vision model of transformers: DINOv2, CLIP, SigLIP, ViT, ConvNeXt, ResNet (extra: hf)"
    example = "hf:facebook/dinov2-small(hub=True)"
    pretrained = True

    model: str = option(help="folder, or name on the Hugging Face hub", argument=True)
    pooling: str = option("auto", "how the output becomes one vector", choices=POOLINGS)
    hub: bool = option(False, "whether the model may be downloaded", recorded=False, downloads=True)

    def network(self, channels: int) -> BackboneNetwork:
        """Load the vision model with its weights."""
        return _Network(load_tower(self.model, "vision_model", {"pixel_values"}, "images", hub=self.hub), self)

    def architecture(self, network: BackboneNetwork) -> Mapping[str, Any]:
        """Return the class and the settings of the vision model."""
        assert isinstance(network, _Network)
        tower = network.tower
        settings = {key: value for key, value in tower.config.to_dict().items() if key != "_name_or_path"}
        # Converts values such as dtypes to plain ones.
        config = json.loads(json.dumps(settings, default=str))
        return {"class": type(tower).__name__, "config": config, "pooler": getattr(tower, "pooler", None) is not None}

    def blank(self, channels: int, architecture: Mapping[str, Any]) -> BackboneNetwork:
        """Build the vision model without its weights."""
        try:
            import transformers
        except ImportError as error:
            raise MissingExtra(f"backbone '{self.name}'", "hf") from error
        model_class = getattr(transformers, str(architecture.get("class")), None)
        if not (isinstance(model_class, type) and issubclass(model_class, transformers.PreTrainedModel)):
            raise InputError(f"the model's record does not name a class of transformers: {architecture.get('class')!r}")
        build_model: Any = model_class
        tower = build_model(build_model.config_class(**architecture.get("config", {}))).float()
        if not architecture.get("pooler"):
            tower.pooler = None
        return _Network(tower, self)

    def preprocessing(self, medium: Medium, size: int | None = None, seconds: float | None = None) -> Preprocessing:
        """Return the preprocessing of the model's image processor, scaled in proportion if `size` is given."""
        self.require_images(medium)
        default = _from_processor(self._processor.to_dict(), self.model)
        return default if size is None else default.resized(size)

    @cached_property
    def _processor(self) -> Any:
        return load_part("AutoImageProcessor", self.model, hub=self.hub, backend="pil")


class _Network(BackboneNetwork):
    def __init__(self, tower: Any, options: HuggingFaceBackbone) -> None:
        super().__init__()
        self.tower, self.options = tower, options
        for name, parameter in tower.named_parameters():
            parameter.requires_grad_(name.rpartition(".")[2] not in UNUSED)

    def stages(self, items: Tensor) -> list[Tensor]:
        output = self.tower(pixel_values=items, output_hidden_states=True)
        # The first is the patch embedding; the last is before the final norm, if there is one.
        hidden = [*output.hidden_states[1:-1], output.last_hidden_state]
        return [self._map(hidden_state, items) for hidden_state in hidden]

    def maps(self, items: Tensor) -> Tensor:
        return self._map(self.tower(pixel_values=items).last_hidden_state, items)

    def vectors(self, items: Tensor) -> Tensor:
        return pool_output(self.tower, self.tower(pixel_values=items), self.options.pooling, self.options.model)

    def _map(self, hidden: Tensor, items: Tensor) -> Tensor:
        return local_map(self.tower, hidden, items.shape[2:], self.options.model)


def _from_processor(settings: Mapping[str, Any], model: str) -> ImagePreprocessing:
    """Convert the settings of an image processor: resize, center crop, normalization."""
    size, crop, crop_fraction = settings.get("size") or {}, settings.get("crop_size") or {}, settings.get("crop_pct")
    fit, cropped = "crop", None
    if "shortest_edge" in size:
        stored = int(size["shortest_edge"])
        if crop_fraction is not None and stored < LARGE:
            stored, cropped = int(stored / crop_fraction), stored
        elif crop_fraction is not None:
            fit = "stretch"
    elif size.get("height") == size.get("width") and "height" in size:
        stored, fit = int(size["height"]), "stretch"
    else:
        raise InputError(f"model '{model}': its image processor has the size {dict(size)}, expected a square")
    if settings.get("do_center_crop"):
        cropped = int(crop.get("height", stored))
    resample = {int(code): name for name, code in RESAMPLINGS.items()}.get(int(settings.get("resample", 3)))
    if resample is None or abs(float(settings.get("rescale_factor", 1 / 255)) * 255 - 1) > 1e-6:
        raise InputError(f"model '{model}': its image processor resamples or rescales in a way that is not supported")
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if settings.get("do_normalize", True):
        mean, std = tuple(settings["image_mean"]), tuple(settings["image_std"])
    return ImagePreprocessing(size=cropped or stored, stored=stored, fit=fit, resample=resample, mean=mean, std=std)
