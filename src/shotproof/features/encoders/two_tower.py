"""The encoders `two-tower` and `two-tower-audio`: models with one space for items and texts (CLIP, SigLIP, CLAP)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shotproof.catalog.catalog import Catalog
from shotproof.core.clients.hugging_face import load_part
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.records import FeaturesRecord, Maker
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import OnError
from shotproof.features.encoders.hf import TransformersModel, VisionModel
from shotproof.features.encoders.hf_audio import SoundModel
from shotproof.features.encoders.pretrained_network import LONGEST_CLIP, Glance
from shotproof.features.encoders.tower import tower_digest
from shotproof.features.features import Features
from shotproof.media.clip import SECONDS

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch

NAME = "{}"  # the template that consists of the name
TEMPLATES = "text templates with {} for a class name; if given, the features include the texts of the classes"
_BATCH = 64


@dataclass(frozen=True)
class TextTower(TransformersModel):
    """Encoder whose model also has a text tower; with `templates`, its features include the texts of the classes.

    Subclasses encode images or sounds after the projection to the space of the texts.
    """

    item_tower: ClassVar[str]  # name of the model's method that embeds items
    example_model: ClassVar[str]

    templates: str | tuple[str, ...] = option((), TEMPLATES)

    def __post_init__(self) -> None:
        super().__post_init__()
        templates = (self.templates,) if isinstance(self.templates, str) else self.templates
        for template in templates:
            _require_placeholder(template)
        object.__setattr__(self, "templates", templates)

    @cached_property
    def network(self) -> Any:
        """Return the model with both towers, in evaluation mode."""
        network, report = load_part(
            "AutoModel", self.model, hub=self.hub, use_safetensors=True, output_loading_info=True
        )
        if not (hasattr(network, self.item_tower) and hasattr(network, "get_text_features")):
            raise InputError(
                f"model '{self.model}' is a {type(network).__name__}, which does not have towers for {self.medium}s "
                f"and for texts: expected a model such as {self.example_model}"
            )
        missing = sorted(report["missing_keys"])
        if missing:
            raise InputError(f"model '{self.model}' lacks {len(missing)} of its weights, e.g. {missing[0]}")
        return network.float().eval()

    @abstractmethod
    def tower_inputs(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the item tower's inputs for a batch, by name."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Encode loaded items, [b, ...], as vectors in the space of the texts, [b, d]."""
        projected: torch.Tensor = getattr(self.network, self.item_tower)(**self.tower_inputs(batch)).pooler_output
        return projected

    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError, glance: Glance | None = None) -> Features:
        """Encode the items and, with templates, the texts of their classes."""
        features = super().encode(catalog, runtime, on_error, glance)
        if not self.templates:
            return features
        labels = sorted(set(catalog.table.column("label").to_pylist()))
        return features.with_texts(catalog, self.encode_words(labels, self.templates))

    def encode_words(self, words: Sequence[str], templates: str | Sequence[str] = NAME) -> Features:
        """Encode each word, with spaces for underscores, within the template.

        With several templates, the features are the means of their unit vectors, as in CLIP's zero-shot classifier.
        """
        template_list = [templates] if isinstance(templates, str) else list(templates)
        for template in template_list:
            _require_placeholder(template)
        names = [word.replace("_", " ") for word in words]
        vectors = [self._encode_texts([template.replace("{}", name) for name in names]) for template in template_list]
        values = vectors[0]
        if len(vectors) > 1:
            values = np.mean([array / np.linalg.norm(array, axis=1, keepdims=True) for array in vectors], axis=0)
        maker = Maker("words", f"words of {self}", {"model": self.model, "template": " / ".join(template_list)})
        return Features.from_array(list(words), values, record=FeaturesRecord(encoder=maker))

    def _encode_texts(self, texts: Sequence[str]) -> npt.NDArray[Any]:
        import torch

        config = self.network.config
        tokenizer = load_part("AutoTokenizer", self.model, hub=self.hub)
        # SigLIP is trained only on texts that are padded to full length; other models ignore padding.
        padding = "max_length" if config.model_type.startswith("siglip") else True
        longest = config.text_config.max_position_embeddings
        if config.model_type == "clap":  # as in RoBERTa, the first positions are reserved for padding
            longest -= config.text_config.pad_token_id + 1
        values = []
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            tokens = tokenizer(batch, padding=padding, truncation=True, max_length=longest, return_tensors="pt")
            with torch.inference_mode():
                tokens = tokens.to(next(self.network.parameters()).device)
                values.append(self.network.get_text_features(**tokens).pooler_output.cpu().numpy())
        return np.concatenate(values)


@dataclass(frozen=True)
class TwoTower(TextTower, VisionModel):
    """A model with towers for images and texts, used as an encoder of images after the projection to their space.

    The model comes from a folder, the local cache or, with `hub`, the Hugging Face hub. With `templates`, the features
    include the texts of the classes, for methods such as `zero-shot` and `tip-adapter`.
    """

    about = "images of a two-tower model (CLIP, SigLIP), in the space that its texts share (extra: hf)"
    example = "two-tower:openai/clip-vit-base-patch32(templates='a photo of a {}.', hub=True)"
    item_tower = "get_image_features"
    example_model = "CLIP or SigLIP"

    @cached_property
    def fingerprint(self) -> str:
        """Return the digest of the model and the preprocessing."""
        preprocessing = self.processor.to_json_string()
        return f"two-tower model={tower_digest(self.network, preprocessing)}"

    def tower_inputs(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the input of images, [b, 3, height, width]."""
        return {"pixel_values": batch}


@dataclass(frozen=True)
class TwoTowerAudio(TextTower, SoundModel):
    """A model with towers for sounds and texts, used as an encoder of sounds after the projection to their space.

    The model comes from a folder, the local cache or, with `hub`, the Hugging Face hub. With `templates`, the features
    include the texts of the classes, for methods such as `zero-shot` and `tip-adapter`.
    """

    about = "sounds of a two-tower model (CLAP), in the space that its texts share (extras: hf, sound)"
    example = "two-tower-audio:laion/clap-htsat-unfused(templates='the sound of {}', hub=True)"
    item_tower = "get_audio_features"
    example_model = "CLAP"

    seconds: float = option(SECONDS, "length of the clips", above=0, most=LONGEST_CLIP)

    @cached_property
    def fingerprint(self) -> str:
        """Return the digest of the model and the preprocessing, and the length of the clips."""
        return f"two-tower-audio model={tower_digest(self.network, self.preprocessing)} seconds={self.seconds}"

    def tower_inputs(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the inputs of loaded clips, [b, ...]."""
        return {"input_features": batch, **self.fusion_inputs(self.network.config.audio_config, batch)}


def _require_placeholder(template: str) -> None:
    if "{}" not in template:
        raise InputError(f"template '{template}': expected {{}} in place of the name, e.g. 'a photo of a {{}}'")
