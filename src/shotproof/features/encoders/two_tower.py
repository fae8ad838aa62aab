"""Two-tower models of transformers (CLIP, SigLIP; CLAP for sounds): items and texts as vectors of one space."""

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

NAME = "{}"  # the template that is the name itself
TEMPLATES = "texts around the names of classes, with {} for the name; with some, the features carry the classes' texts"
_BATCH = 64


@dataclass(frozen=True)
class TextTower(TransformersModel):
    """An encoder whose model has a tower for texts, too; with `templates`, its features carry the texts of the classes.

    A subclass is an encoder of images or sounds after the projection to the space of the texts.
    """

    item_tower: ClassVar[str]  # the function of the model that embeds items
    example_model: ClassVar[str]

    templates: str | tuple[str, ...] = option((), TEMPLATES)

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = (self.templates,) if isinstance(self.templates, str) else self.templates
        for template in chosen:
            _require_place(template)
        object.__setattr__(self, "templates", chosen)

    @cached_property
    def network(self) -> Any:
        """Return the whole model, in evaluation mode."""
        whole, report = load_part("AutoModel", self.model, hub=self.hub, use_safetensors=True, output_loading_info=True)
        if not (hasattr(whole, self.item_tower) and hasattr(whole, "get_text_features")):
            raise InputError(
                f"model '{self.model}' is a {type(whole).__name__}, which has no tower for {self.medium}s and one for "
                f"texts: expected a model like {self.example_model}"
            )
        lost = sorted(report["missing_keys"])
        if lost:
            raise InputError(f"model '{self.model}' lacks {len(lost)} of its weights, e.g. {lost[0]}")
        return whole.float().eval()

    @abstractmethod
    def tower_inputs(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """What the items' tower is given of a batch, by name."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """What `load` gave, [b, ...], to vectors in the space of the texts, [b, d]."""
        projected: torch.Tensor = getattr(self.network, self.item_tower)(**self.tower_inputs(batch)).pooler_output
        return projected

    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError, glance: Glance | None = None) -> Features:
        """Return the items' vectors and, with templates, the texts of their classes."""
        features = super().encode(catalog, runtime, on_error, glance)
        if not self.templates:
            return features
        labels = sorted(set(catalog.table.column("label").to_pylist()))
        return features.with_texts(catalog, self.encode_words(labels, self.templates))

    def encode_words(self, words: Sequence[str], templates: str | Sequence[str] = NAME) -> Features:
        """One vector per word, put into the template first; underscores are read as spaces.

        Of several templates, the mean of the vectors at length 1, as CLIP's zero-shot classifier has it.
        """
        chosen = [templates] if isinstance(templates, str) else list(templates)
        for template in chosen:
            _require_place(template)
        names = [word.replace("_", " ") for word in words]
        values = [self._encode_texts([template.replace("{}", name) for name in names]) for template in chosen]
        if len(values) > 1:
            values = [np.mean([one / np.linalg.norm(one, axis=1, keepdims=True) for one in values], axis=0)]
        made = Maker("words", f"words of {self}", {"model": self.model, "template": " / ".join(chosen)})
        return Features.from_array(list(words), values[0], record=FeaturesRecord(encoder=made))

    def _encode_texts(self, texts: Sequence[str]) -> npt.NDArray[Any]:
        import torch

        config = self.network.config
        tokenizer = load_part("AutoTokenizer", self.model, hub=self.hub)
        # SigLIP is trained on texts of full length alone; the attention of others leaves out what is padded.
        padding = "max_length" if config.model_type.startswith("siglip") else True
        longest = config.text_config.max_position_embeddings
        if config.model_type == "clap":  # as in RoBERTa, the first positions are those of padding
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
    """A model with a tower for images and one for texts; as an encoder, its images after the projection.

    From a folder, the local cache or, with `hub`, the Hugging Face hub. With `templates`, the features carry the texts
    of the classes, for methods such as `zero-shot` and `tip-adapter`.
    """

    about = "images of a two-tower model (CLIP, SigLIP) in the space that its texts share (extra: hf)"
    example = "two-tower:openai/clip-vit-base-patch32(templates='a photo of a {}.', hub=True)"
    item_tower = "get_image_features"
    example_model = "CLIP or SigLIP"

    @cached_property
    def fingerprint(self) -> str:
        """Return digest of the whole model and of the preprocessing."""
        preprocessing = self.processor.to_json_string()
        return f"two-tower model={tower_digest(self.network, preprocessing)}"

    def tower_inputs(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """Images, [b, 3, height, width]."""
        return {"pixel_values": batch}


@dataclass(frozen=True)
class TwoTowerAudio(TextTower, SoundModel):
    """A model with a tower for sounds and one for texts; as an encoder, its sounds after the projection.

    From a folder, the local cache or, with `hub`, the Hugging Face hub. With `templates`, the features carry the texts
    of the classes, for methods such as `zero-shot` and `tip-adapter`.
    """

    about = "sounds of a two-tower model (CLAP) in the space that its texts share (extras: hf, sound)"
    example = "two-tower-audio:laion/clap-htsat-unfused(templates='the sound of {}', hub=True)"
    item_tower = "get_audio_features"
    example_model = "CLAP"

    seconds: float = option(SECONDS, "length of the clips", above=0, most=LONGEST_CLIP)

    @cached_property
    def fingerprint(self) -> str:
        """Return digest of the whole model, of the preprocessing, and the length of the clips."""
        return f"two-tower-audio model={tower_digest(self.network, self.preprocessing)} seconds={self.seconds}"

    def tower_inputs(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """What `load` gave, [b, ...]."""
        longer = self.shorter_than_the_model_takes(self.network.config.audio_config, batch)
        return {"input_features": batch, **longer}


def _require_place(template: str) -> None:
    if "{}" not in template:
        raise InputError(f"template '{template}': expected {{}} where the name goes, e.g. 'a photo of a {{}}'")
