"""Sound models of Hugging Face's transformers: from a folder, its local cache, or, when asked, the hub."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from shotproof.errors import InputError, MissingExtra
from shotproof.features.sound import SoundEncoder
from shotproof.features.tower import check_pooling, load_tower, pooled, tower_digest
from shotproof.hugging_face import load_part
from shotproof.sounds.clip import SECONDS
from shotproof.sounds.mixture import Clip

INPUTS = {"input_values", "input_features"}


class HuggingFaceAudio(SoundEncoder):
    """A sound model with its own feature extractor, at the extractor's rate, in float32.

    Of a model of sounds and texts (CLAP), the sounds' tower, before the projection to the texts' space; of one that
    writes down speech (Whisper), the encoder. `pooling` is `pooler` (the model's own), `cls` (the class token), `mean`
    (over the map or the tokens of time), or `auto`, the first of these that the model has. An extractor that fills
    clips up to a length of its own hears them followed by silence; `seconds` of that length repeats them instead.
    Only safetensors are read, and no code that comes with a model is run.
    """

    about = "any sound model of transformers: AST, CLAP, wav2vec 2.0, HuBERT, Whisper (extras: hf, sound)"
    name = "hf-audio"

    def __init__(self, model: str, pooling: str = "auto", seconds: float = SECONDS, hub: bool = False) -> None:
        try:
            import transformers
        except ImportError as error:
            raise MissingExtra("encoder 'hf-audio'", "hf") from error
        self.model = str(model)
        self.pooling = check_pooling(pooling)
        self.hub = hub
        self._extractor = load_part(transformers.AutoFeatureExtractor, self.model, hub=self.hub)
        rate = getattr(self._extractor, "sampling_rate", None)
        if rate is None:
            raise InputError(f"model '{self.model}': its {type(self._extractor).__name__} is not made for sounds")
        super().__init__(int(rate), seconds)
        longest = getattr(self._extractor, "nb_max_samples", None)
        if longest is not None and self.seconds * self.rate > longest:  # CLAP's extractor would cut at random
            raise InputError(f"model '{self.model}' takes {longest / self.rate:g} s at most, found seconds {seconds:g}")

    def parameters(self) -> dict[str, Any]:
        """The model, the pooling and the clips' length, as given."""
        return {"model": self.model, "pooling": self.pooling, **super().parameters()}

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the model's weights and settings, pooling, preprocessing."""
        from transformers.utils.import_utils import is_speech_available

        # With torchaudio, some extractors compute their spectrograms by it.
        preprocessing = f"{self._extractor.to_json_string()} torchaudio={is_speech_available()}"
        digest = tower_digest(self.network, preprocessing)
        return f"hf_audio model={digest} pooling={self.pooling} seconds={self.seconds}"

    @cached_property
    def network(self) -> Any:
        """The sound model, in evaluation mode."""
        return load_tower(self.model, "audio_model", INPUTS, "sounds", hub=self.hub)

    def load(self, path: Clip) -> npt.NDArray[np.float32]:
        """What the model's feature extractor makes of the clip."""
        extracted = self._extractor(super().load(path), sampling_rate=self.rate, return_tensors="np")
        return np.asarray(next(extracted[name] for name in extracted if name in INPUTS)[0], dtype=np.float32)

    def move(self, device: torch.device) -> torch.device:
        """Move the network."""
        self.network.to(device)
        return device

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """What `load` gave, [b, ...], to features, [b, d]."""
        options = {}
        if getattr(self.network.config, "enable_fusion", False):  # CLAP: no clip is longer than the model takes
            options["is_longer"] = torch.zeros(len(batch), 1, dtype=torch.bool, device=batch.device)
        output = self.network(**{self.network.main_input_name: batch}, **options)
        return pooled(self.network, output, self.pooling, self.model)
