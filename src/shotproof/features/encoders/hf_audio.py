"""The encoder `hf-audio`: sound models of Hugging Face's transformers, from a folder, the local cache, or the hub."""

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
from shotproof.features.encoders.tower import POOLINGS, load_tower, pool_output, pool_stages, tower_digest
from shotproof.media.clip import SECONDS
from shotproof.media.unwritten import ItemFile

if TYPE_CHECKING:
    import torch

INPUTS = {"input_values", "input_features"}


class SoundModel(TransformersModel, SoundEncoder):
    """Encoder that uses a sound model of transformers, with the model's own feature extractor, at its sampling rate."""

    @property
    def clip_rate(self) -> int:
        """Return the sampling rate of the clips, that of the extractor."""
        return int(self._extractor.sampling_rate)

    @property
    def preprocessing(self) -> str:
        """Return everything that decides the model's input for a clip."""
        from transformers.utils.import_utils import is_speech_available

        # Some extractors compute their spectrograms with torchaudio if it is installed.
        return f"{self._extractor.to_json_string()} torchaudio={is_speech_available()}"

    @cached_property
    def _extractor(self) -> Any:
        extractor = load_part("AutoFeatureExtractor", self.model, hub=self.hub)
        rate = getattr(extractor, "sampling_rate", None)
        if rate is None:
            raise InputError(f"model '{self.model}': its {type(extractor).__name__} is not made for sounds")
        longest = getattr(extractor, "nb_max_samples", None)
        if longest is not None and self.seconds * rate > longest:  # CLAP's extractor would crop at random
            raise InputError(
                f"model '{self.model}' takes clips of at most {longest / rate:g} s, found seconds {self.seconds:g}"
            )
        return extractor

    def load(self, path: ItemFile) -> npt.NDArray[np.float32]:
        """Read a clip and apply the model's feature extractor."""
        extracted = self._extractor(super().load(path), sampling_rate=self.clip_rate, return_tensors="np")
        return np.asarray(next(extracted[name] for name in extracted if name in INPUTS)[0], dtype=np.float32)

    def fusion_inputs(self, config: Any, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return an extra input for CLAP models that fuse parts of long clips: that no clip is too long."""
        import torch

        if not getattr(config, "enable_fusion", False):
            return {}
        return {"is_longer": torch.zeros(len(batch), 1, dtype=torch.bool, device=batch.device)}


@dataclass(frozen=True)
class HuggingFaceAudio(StagedEncoder, SoundModel):
    """A sound model with its own feature extractor, at the extractor's rate, in float32.

    For a model of sounds and texts (CLAP), it is the sound tower, before the projection to the texts' space; for a
    speech recognizer (Whisper), the encoder; for Qwen2-Audio, the sound tower alone, without reading its language
    model. `pooling` is `pooler` (the model's own), `cls` (the class token), `mean` (over the map or the time tokens),
    or `auto`, the first of these that the model has. Some extractors pad clips with silence to a length of their own;
    with `seconds` of that length, clips are repeated instead.
    Only safetensors are read, and no code in a model's repository is run.
    """

    about = "any sound model of transformers: AST, CLAP, wav2vec 2.0, HuBERT, Whisper, Qwen2-Audio (extras: hf, sound)"
    example = "hf-audio:MIT/ast-finetuned-audioset-10-10-0.4593(hub=True)"

    pooling: str = option("auto", "how the output is pooled to one vector", choices=POOLINGS)
    seconds: float = option(SECONDS, "length of the clips", above=0, most=LONGEST_CLIP)
    stage: int | None = option(None, STAGE, least=1)

    @cached_property
    def fingerprint(self) -> str:
        """Return the digest of the model's weights, settings and preprocessing, the pooling and the length of clips."""
        digest = tower_digest(self.network, self.preprocessing)
        return f"hf_audio model={digest} pooling={self.pooling} seconds={self.seconds}"

    @cached_property
    def network(self) -> Any:
        """Return the sound model, in evaluation mode."""
        return load_tower(self.model, "audio_model", INPUTS, "sounds", hub=self.hub)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Encode loaded clips, [b, ...], as features, [b, d]."""
        return pool_output(self.network, self._run(batch), self.pooling, self.model)

    def stages(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """Encode loaded clips, [b, ...], as the pooled output of each block."""
        output = self._run(batch, output_hidden_states=True)
        return pool_stages(self.network, output, self.pooling, self.model)

    def _run(self, batch: torch.Tensor, **options: Any) -> Any:
        options |= self.fusion_inputs(self.network.config, batch)
        return self.network(**{self.network.main_input_name: batch}, **options)
