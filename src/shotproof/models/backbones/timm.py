"""Image models of timm, for further training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shotproof.core.clients.hugging_face import missing_model_error
from shotproof.core.errors import InputError, MissingExtra, first_line
from shotproof.core.options import option
from shotproof.models.backbone import Backbone, BackboneNetwork
from shotproof.models.preprocessing import MEAN, RESAMPLINGS, STD, ImagePreprocessing, Medium, Preprocessing

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class TimmBackbone(Backbone):
    """Model of timm without its classifier, with the preprocessing that timm states for it.

    Its weights are a safetensors file: `weights`, or one in the local Hugging Face cache, or, with `hub`, downloaded.
    Its maps are the last ones, or the patch tokens at their locations in the image; its vector is the input of timm's
    own classifier.
    """

    about = "any image model of timm (extra: timm)"
    example = "timm:resnet18.a1_in1k"
    pretrained = True

    model: str = option(help="name of a model in timm", argument=True)
    weights: Path | None = option(None, "safetensors file; None: the local cache, or the hub", path=True)
    hub: bool = option(False, "whether the weights may be downloaded", recorded=False, downloads=True)

    def network(self, channels: int) -> BackboneNetwork:
        """Load the model with its weights."""
        network = self._build_blank()
        _load(network, self._weights_path(network.pretrained_cfg), self.model)
        return _Network(network, self.model)

    def blank(self, channels: int, architecture: Mapping[str, Any]) -> BackboneNetwork:
        """Build the model without its weights."""
        return _Network(self._build_blank(), self.model)

    def preprocessing(self, medium: Medium, size: int | None = None, seconds: float | None = None) -> Preprocessing:
        """Return the preprocessing that timm states for the model, scaled in proportion if `size` is given."""
        self.require_images(medium)
        settings = self._pretrained_settings
        side, name = int(settings.get("input_size", (3, 224, 224))[-1]), str(settings.get("interpolation", "bicubic"))
        default = ImagePreprocessing(
            size=side,
            stored=int(side / float(settings.get("crop_pct") or 1.0)),
            resample=name if name in RESAMPLINGS else "bicubic",
            mean=tuple(settings.get("mean", MEAN)),
            std=tuple(settings.get("std", STD)),
        )
        return default if size is None else default.resized(size)

    @cached_property
    def _pretrained_settings(self) -> dict[str, Any]:
        return dict(self._build_blank().pretrained_cfg)

    def _build_blank(self) -> Any:
        """Build the model with random weights."""
        try:
            import timm
        except ImportError as error:
            raise MissingExtra(f"backbone '{self.name}'", "timm") from error
        try:
            return timm.create_model(self.model, pretrained=False, num_classes=0)
        except (RuntimeError, ValueError, KeyError) as error:
            raise InputError(
                f"backbone '{self.name}': timm has no model '{self.model}': {first_line(error)}"
            ) from error

    def _weights_path(self, settings: Any) -> Path:
        """Find the file of the weights, downloading it if allowed."""
        if self.weights is not None:
            return self.weights
        from huggingface_hub import hf_hub_download, try_to_load_from_cache
        from huggingface_hub.errors import HfHubHTTPError

        name = settings.get("hf_hub_id")
        if not name:
            raise InputError(f"timm has no pretrained weights for '{self.model}': give weights='FILE.safetensors'")
        if self.hub:
            try:
                return Path(hf_hub_download(name, WEIGHTS))
            except (OSError, HfHubHTTPError) as error:
                raise InputError(f"backbone '{self.spelling}': cannot download {name}: {first_line(error)}") from error
        cached = try_to_load_from_cache(name, WEIGHTS)
        if not isinstance(cached, str):
            raise missing_model_error(name)
        return Path(cached)


class _Network(BackboneNetwork):
    def __init__(self, network: Any, model: str) -> None:
        super().__init__()
        self.whole, self.model = network, model

    def stages(self, items: Tensor) -> list[Tensor]:
        # Not every model of timm can return its stages; all can return the maps before the pool.
        return [self._map(self.whole.forward_features(items), items)]

    def vectors(self, items: Tensor) -> Tensor:
        vectors: Tensor = self.whole.forward_head(self.whole.forward_features(items), pre_logits=True)
        return vectors

    def _map(self, output: Tensor, items: Tensor) -> Tensor:
        """Convert an output to a map [b, d, h, w]; of tokens [b, t, d], those without a location are dropped."""
        if output.ndim == 4:
            has_channels_last = output.shape[-1] == self.whole.num_features != output.shape[1]
            return output.permute(0, 3, 1, 2) if has_channels_last else output  # some models have channels last
        patches: Tensor = output[:, getattr(self.whole, "num_prefix_tokens", 0) :].mT
        side = round(patches.shape[-1] ** 0.5)
        if side * side != patches.shape[-1]:
            raise InputError(
                f"model '{self.model}' has no local maps: its {patches.shape[-1]} patch tokens do not form a square"
            )
        return patches.reshape(*patches.shape[:2], side, side)


def _load(network: Any, path: Path, model: str) -> None:
    """Load weights into a model; a classifier in the file is ignored."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        loaded = load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"cannot read weights {path} of model '{model}': {first_line(error)}") from error
    expected: dict[str, torch.Tensor] = network.state_dict()
    missing = sorted(
        name for name, tensor in expected.items() if name not in loaded or loaded[name].shape != tensor.shape
    )
    if missing:
        raise InputError(f"weights {path} lack {len(missing)} tensors of model '{model}', e.g. {missing[0]}")
    network.load_state_dict({name: loaded[name] for name in expected})
