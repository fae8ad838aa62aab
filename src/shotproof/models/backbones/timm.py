"""Image models of timm, to be trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shotproof.core.clients.hugging_face import not_here
from shotproof.core.errors import InputError, MissingExtra, first_line
from shotproof.core.options import option
from shotproof.models.backbone import Backbone, BackboneNetwork
from shotproof.models.preprocessing import MEAN, RESAMPLINGS, STD, ImagePreprocessing, Medium, Preprocessing

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class TimmBackbone(Backbone):
    """A model of timm without its classifier, with the preprocessing that timm tells.

    Its weights are a file of safetensors, given by `weights`, or in the local Hugging Face cache, or, when asked,
    downloaded. Its maps are its last ones, or the patch tokens where they lie in the image, and its vector is what
    timm's own classifier would see.
    """

    about = "any image model of timm (extra: timm)"
    example = "timm:resnet18.a1_in1k"
    pretrained = True

    model: str = option(help="a name that timm knows", argument=True)
    weights: Path | None = option(None, "a file of safetensors; None: the local cache, or the hub", path=True)
    hub: bool = option(False, "whether the weights may be downloaded", recorded=False, downloads=True)

    def network(self, channels: int) -> BackboneNetwork:
        """The model with its weights."""
        whole = self._blank()
        _load(whole, self._weights(whole.pretrained_cfg), self.model)
        return _Network(whole, self.model)

    def blank(self, channels: int, architecture: Mapping[str, Any]) -> BackboneNetwork:
        """The model without its weights."""
        return _Network(self._blank(), self.model)

    def preprocessing(self, medium: Medium, size: int | None = None, seconds: float | None = None) -> Preprocessing:
        """What timm tells of the model; with a `size` of one's own, in proportion."""
        self.require_images(medium)
        told = self._told
        side, name = int(told.get("input_size", (3, 224, 224))[-1]), str(told.get("interpolation", "bicubic"))
        usual = ImagePreprocessing(
            size=side,
            stored=int(side / float(told.get("crop_pct") or 1.0)),
            resample=name if name in RESAMPLINGS else "bicubic",
            mean=tuple(told.get("mean", MEAN)),
            std=tuple(told.get("std", STD)),
        )
        return usual if size is None else usual.resized(size)

    @cached_property
    def _told(self) -> dict[str, Any]:
        return dict(self._blank().pretrained_cfg)

    def _blank(self) -> Any:
        """The model with random weights."""
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

    def _weights(self, told: Any) -> Path:
        """Where the weights lie."""
        if self.weights is not None:
            return self.weights
        from huggingface_hub import hf_hub_download, try_to_load_from_cache
        from huggingface_hub.errors import HfHubHTTPError

        name = told.get("hf_hub_id")
        if not name:
            raise InputError(f"timm knows no weights of '{self.model}': give weights='FILE.safetensors'")
        if self.hub:
            try:
                return Path(hf_hub_download(name, WEIGHTS))
            except (OSError, HfHubHTTPError) as error:
                raise InputError(f"backbone '{self.spelling}': {name} cannot be loaded: {first_line(error)}") from error
        found = try_to_load_from_cache(name, WEIGHTS)
        if not isinstance(found, str):
            raise not_here(name)
        return Path(found)


class _Network(BackboneNetwork):
    def __init__(self, whole: Any, model: str) -> None:
        super().__init__()
        self.whole, self.model = whole, model

    def stages(self, items: Tensor) -> list[Tensor]:
        # Not every model of timm gives its stages; all give what comes before the pool.
        return [self._map(self.whole.forward_features(items), items)]

    def vectors(self, items: Tensor) -> Tensor:
        vectors: Tensor = self.whole.forward_head(self.whole.forward_features(items), pre_logits=True)
        return vectors

    def _map(self, seen: Tensor, items: Tensor) -> Tensor:
        """A map [b, d, h, w]; of tokens [b, t, d], those after the first few, which stand for no part of the image."""
        if seen.ndim == 4:
            last = seen.shape[-1] == self.whole.num_features != seen.shape[1]
            return seen.permute(0, 3, 1, 2) if last else seen  # some have the channels last
        patches: Tensor = seen[:, getattr(self.whole, "num_prefix_tokens", 0) :].mT
        side = round(patches.shape[-1] ** 0.5)
        if side * side != patches.shape[-1]:
            raise InputError(f"model '{self.model}' gives {patches.shape[-1]} tokens, no square: it has no local maps")
        return patches.reshape(*patches.shape[:2], side, side)


def _load(whole: Any, path: Path, model: str) -> None:
    """Give a model its weights; a classifier in the file is passed over."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        given = load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"weights {path} of model '{model}' cannot be read: {first_line(error)}") from error
    own: dict[str, torch.Tensor] = whole.state_dict()
    lost = sorted(name for name, each in own.items() if name not in given or given[name].shape != each.shape)
    if lost:
        raise InputError(f"weights {path} lack {len(lost)} of model '{model}', e.g. {lost[0]}")
    whole.load_state_dict({name: given[name] for name in own})
