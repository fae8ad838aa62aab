"""Sound models of Hugging Face's transformers: from a folder, its local cache, or, when asked, the hub."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shotproof.core.clients.hugging_face import load_part
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.features.encoders.hf import TransformersModel
from shotproof.features.encoders.pretrained_network import LONGEST_CLIP, SoundEncoder
from shotproof.features.encoders.staged import STAGE, StagedEncoder
from shotproof.features.encoders.tower import POOLINGS, load_tower, pooled, pooled_stages, tower_digest
from shotproof.media.clip import SECONDS
from shotproof.media.unwritten import ItemFile

if TYPE_CHECKING:
    import torch

INPUTS = {"input_values", "input_features"}


class SoundModel(TransformersModel, SoundEncoder):
    """An encoder by a model of transformers, with the model's own feature extractor, at the extractor's rate."""

    @property
    def clip_rate(self) -> int:
        """Samples per second of its clips: the extractor's."""
        return int(self._extractor.sampling_rate)

    @property
    def preprocessing(self) -> str:
        """Return all that decides what the model gets of a clip."""
        from transformers.utils.import_utils import is_speech_available

        # With torchaudio, some extractors compute their spectrograms by it.
        return f"{self._extractor.to_json_string()} torchaudio={is_speech_available()}"

    @cached_property
    def _extractor(self) -> Any:
        extractor = load_part("AutoFeatureExtractor", self.model, hub=self.hub)
        rate = getattr(extractor, "sampling_rate", None)
        if rate is None:
            raise InputError(f"model '{self.model}': its {type(extractor).__name__} is not made for sounds")
        longest = getattr(extractor, "nb_max_samples", None)
        if longest is not None and self.seconds * rate > longest:  # CLAP's extractor would cut at random
            raise InputError(f"model '{self.model}' takes {longest / rate:g} s at most, found seconds {self.seconds:g}")
        return extractor

    def load(self, path: ItemFile) -> npt.NDArray[np.float32]:
        """What the model's feature extractor makes of the clip."""
        extracted = self._extractor(super().load(path), sampling_rate=self.clip_rate, return_tensors="np")
        return np.asarray(next(extracted[name] for name in extracted if name in INPUTS)[0], dtype=np.float32)

    def shorter_than_the_model_takes(self, config: Any, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """What CLAP wants to be told, where it has a way for longer clips: none of these is one."""
        import torch

        if not getattr(config, "enable_fusion", False):
            return {}
        return {"is_longer": torch.zeros(len(batch), 1, dtype=torch.bool, device=batch.device)}


@dataclass(frozen=True)
class HuggingFaceAudio(StagedEncoder, SoundModel):
    """A sound model with its own feature extractor, at the extractor's rate, in float32.

    Of a model of sounds and texts (CLAP), the sounds' tower, before the projection to the texts' space; of one that
    writes down speech (Whisper), the encoder; of Qwen2-Audio, the sounds' tower alone, whose language model is never
    read. `pooling` is `pooler` (the model's own), `cls` (the class token), `mean`
    (over the map or the tokens of time), or `auto`, the first of these that the model has. An extractor that fills
    clips up to a length of its own hears them followed by silence; `seconds` of that length repeats them instead.
    Only safetensors are read, and no code that comes with a model is run.
    """

    about = "any sound model of transformers: AST, CLAP, wav2vec 2.0, HuBERT, Whisper, Qwen2-Audio (extras: hf, sound)"
    example = "hf-audio:MIT/ast-finetuned-audioset-10-10-0.4593(hub=True)"

    pooling: str = option("auto", "how the output becomes one vector", choices=POOLINGS)
    seconds: float = option(SECONDS, "length of the clips", above=0, most=LONGEST_CLIP)
    stage: int | None = option(None, STAGE, least=1)

    @cached_property
    def fingerprint(self) -> str:
        """Return digest of the model's weights and settings, pooling, preprocessing."""
        digest = tower_digest(self.network, self.preprocessing)
        return f"hf_audio model={digest} pooling={self.pooling} seconds={self.seconds}"

    @cached_property
    def network(self) -> Any:
        """Return the sound model, in evaluation mode."""
        return load_tower(self.model, "audio_model", INPUTS, "sounds", hub=self.hub)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """What `load` gave, [b, ...], to features, [b, d]."""
        return pooled(self.network, self._output(batch), self.pooling, self.model)

    def stages(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """What `load` gave, [b, ...], to the pooled output of each block."""
        output = self._output(batch, output_hidden_states=True)
        return pooled_stages(self.network, output, self.pooling, self.model)

    def _output(self, batch: torch.Tensor, **options: Any) -> Any:
        options |= self.shorter_than_the_model_takes(self.network.config, batch)
        return self.network(**{self.network.main_input_name: batch}, **options)
