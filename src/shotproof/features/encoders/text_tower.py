"""What models of two towers share: items and texts as vectors of one space."""

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
from shotproof.features.encoders.pretrained_network import NetworkEncoder
from shotproof.features.features import Features

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch

NAME = "{}"  # the template that is the name itself
TEMPLATES = "texts around the names of classes, with {} for the name; with some, the features carry the classes' texts"
_BATCH = 64


@dataclass(frozen=True)
class TextTower(NetworkEncoder):
    """An encoder whose model has a tower for texts, too; with `templates`, its features carry the texts of the classes.

    A subclass is an encoder of images or sounds after the projection to the space of the texts.
    """

    item_tower: ClassVar[str]  # the function of the model that embeds items
    example_model: ClassVar[str]

    model: str = option(help="a folder, or a name on the Hugging Face hub", argument=True)
    templates: str | tuple[str, ...] = option((), TEMPLATES)
    hub: bool = option(False, "whether the model may be downloaded", recorded=False, downloads=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = (self.templates,) if isinstance(self.templates, str) else self.templates
        for template in chosen:
            _require_place(template)
        object.__setattr__(self, "templates", chosen)

    @cached_property
    def network(self) -> Any:
        """The whole model, in evaluation mode."""
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

    def encode(self, catalog: Catalog, runtime: Runtime, on_error: OnError) -> Features:
        """The items' vectors and, with templates, the texts of their classes."""
        features = super().encode(catalog, runtime, on_error)
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


def _require_place(template: str) -> None:
    if "{}" not in template:
        raise InputError(f"template '{template}': expected {{}} where the name goes, e.g. 'a photo of a {{}}'")
