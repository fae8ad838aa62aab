from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode, encoders
from shotproof.features.features import Tally
from tests.drawn_clips import draw_clips, tone
from tests.features.encoders.test_hf import SMALL
from tests.features.encoders.test_hf import saved as saved_images

SPEECH = {
    **SMALL,
    "conv_dim": (8, 8),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": 8,
}
CLAP_AUDIO = {
    "patch_embeds_hidden_size": 8,
    "hidden_size": 16,
    "depths": [1, 1],
    "num_attention_heads": [2, 2],
    "num_hidden_layers": 2,
    "num_mel_bins": 16,
    "spec_size": 64,
    "window_size": 4,
    "projection_dim": 8,
}


pytestmark = pytest.mark.usefixtures("quiet_transformers")


def build(kind: str) -> tuple[Any, Any]:
    """A tiny model with random weights, and its feature extractor."""
    torch.manual_seed(0)
    t: Any = transformers
    if kind.startswith("ast"):
        config = t.ASTConfig(**SMALL, patch_size=8, max_length=40, num_mel_bins=16, time_stride=8, frequency_stride=8)
        whole = t.ASTForAudioClassification if kind == "ast-classifier" else t.ASTModel
        return whole(config), t.ASTFeatureExtractor(num_mel_bins=16, max_length=40)
    if kind.startswith("clap"):
        fusion = kind == "clap-fusion"
        audio = {**CLAP_AUDIO, "enable_fusion": fusion, "fusion_type": "aff_2d" if fusion else None}
        text = {**SMALL, "vocab_size": 30, "projection_dim": 8, "max_position_embeddings": 16}
        config = t.ClapConfig(text_config=text, audio_config=audio, projection_dim=8)
        extractor = t.ClapFeatureExtractor(
            feature_size=16,
            sampling_rate=8_000,
            hop_length=80,
            max_length_s=2,
            fft_window_size=256,
            frequency_max=4_000,
            truncation="fusion" if fusion else "rand_trunc",
        )
        return t.ClapModel(config), extractor
    if kind == "qwen2-audio":
        audio = {"num_mel_bins": 16, "d_model": 16, "encoder_layers": 2, "encoder_attention_heads": 2}
        audio |= {"encoder_ffn_dim": 16, "max_source_positions": 50, "model_type": "qwen2_audio_encoder"}
        text = {**SMALL, "model_type": "qwen2", "num_key_value_heads": 2, "vocab_size": 30}
        config = t.Qwen2AudioConfig(audio_config=audio, text_config=text)
        return t.Qwen2AudioForConditionalGeneration(config), t.WhisperFeatureExtractor(feature_size=16, chunk_length=1)
    if kind == "whisper":
        layers = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
        sizes = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "num_mel_bins": 16, "vocab_size": 30}
        tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
        config = t.WhisperConfig(**layers, **sizes, **tokens, max_source_positions=50)
        return t.WhisperModel(config), t.WhisperFeatureExtractor(feature_size=16, chunk_length=1)
    return t.Wav2Vec2Model(t.Wav2Vec2Config(**SPEECH)), t.Wav2Vec2FeatureExtractor()


def saved(kind: str, folder: Path) -> tuple[Any, Any]:
    model, extractor = build(kind)
    model.save_pretrained(folder)
    extractor.save_pretrained(folder)
    return model.eval(), extractor


def direct(kind: str, model: Any, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    """What each pooling should give, by direct calls."""
    if kind.startswith("clap"):
        output = model.audio_model(inputs, is_longer=torch.zeros(len(inputs), 1, dtype=torch.bool))
        pooled = output.pooler_output
        return {"auto": pooled, "pooler": pooled, "mean": output.last_hidden_state.mean(dim=(2, 3))}
    if kind.startswith("ast"):
        output = getattr(model, "audio_spectrogram_transformer", model)(inputs)
        hidden, pooled = output.last_hidden_state, output.pooler_output
        return {"auto": pooled, "pooler": pooled, "cls": hidden[:, 0], "mean": hidden[:, 2:].mean(dim=1)}
    if kind == "qwen2-audio":
        model = model.model.audio_tower
    hidden = (model.encoder if kind == "whisper" else model)(inputs).last_hidden_state
    return {"auto": hidden.mean(dim=1), "mean": hidden.mean(dim=1)}


@pytest.mark.parametrize(
    ("kind", "poolings"),
    [
        ("ast", ["auto", "pooler", "cls", "mean"]),
        ("ast-classifier", ["auto"]),
        ("clap", ["auto", "cls", "mean"]),
        ("clap-fusion", ["auto"]),
        ("wav2vec2", ["auto", "pooler"]),
        ("whisper", ["auto"]),
        ("qwen2-audio", ["auto"]),
    ],
)
def test_features_agree_with_a_direct_call(tmp_path: Path, kind: str, poolings: list[str]) -> None:
    model, extractor = saved(kind, tmp_path / "model")
    rate = extractor.sampling_rate
    catalog = draw_clips(tmp_path / "clips", 3, seconds=0.5, rate=rate)
    extracted = [extractor(tone(seed, 0.5, rate), sampling_rate=rate, return_tensors="pt") for seed in range(3)]
    named = "input_features" if kind.startswith(("clap", "qwen2")) else model.main_input_name
    inputs = torch.cat([one[named] for one in extracted])
    with torch.inference_mode():
        expected = direct(kind, model, inputs)
    for pooling in poolings:
        spec = f"hf-audio:{tmp_path / 'model'}(pooling='{pooling}', seconds=0.5)"
        if pooling in expected:
            features = encode(catalog, spec, runtime=Runtime(cache=None, workers=1, batch_size=2))
            np.testing.assert_allclose(features.array, expected[pooling].numpy(), rtol=1e-3, atol=1e-5)
        else:
            with pytest.raises(InputError, match=f"pooling '{pooling}'"):
                encode(catalog, spec, runtime=Runtime(cache=None, workers=1))


def test_clips_are_resampled_to_the_models_rate(tmp_path: Path) -> None:
    saved("clap", tmp_path / "model")
    spec = f"hf-audio:{tmp_path / 'model'}(seconds=1)"
    low = encode(draw_clips(tmp_path / "low", 2, 1.0, rate=8_000), spec, runtime=Runtime(cache=None, workers=1)).array
    high = encode(
        draw_clips(tmp_path / "high", 2, 1.0, rate=48_000), spec, runtime=Runtime(cache=None, workers=1)
    ).array
    cosine = (low * high).sum(axis=1) / np.linalg.norm(low, axis=1) / np.linalg.norm(high, axis=1)
    assert (cosine > 0.98).all()  # the same tone, in other noise


def test_workers_give_the_same_and_another_length_is_encoded_anew(tmp_path: Path) -> None:
    saved("wav2vec2", tmp_path / "model")
    spec, catalog = f"hf-audio:{tmp_path / 'model'}", draw_clips(tmp_path / "clips", 3)
    first = encode(catalog, encoders.make(spec, seconds=0.5), runtime=Runtime(cache=None, workers=1, batch_size=2))
    cached = Runtime(cache=tmp_path / "cache", batch_size=2, workers=2)
    assert encode(catalog, encoders.make(spec, seconds=0.5), runtime=cached).digest == first.digest
    tallies = [encode(catalog, encoders.make(spec, seconds=seconds), runtime=cached).tally for seconds in (0.5, 0.4)]
    assert tallies == [Tally(0, 3), Tally(3, 0)]


def test_the_same_model_elsewhere_has_the_same_fingerprint(tmp_path: Path) -> None:
    saved("ast", tmp_path / "a")
    saved("ast", tmp_path / "b")
    first, second = (encoders.make(f"hf-audio:{tmp_path / name}") for name in "ab")
    assert first.fingerprint == second.fingerprint  # type: ignore[attr-defined]


def saved_without(model: Any, folder: Path, lost: str) -> str:
    """The model without weights of this name; how to spell its encoder."""
    state = {key: value for key, value in model.state_dict().items() if lost not in key}
    model.save_pretrained(folder, state_dict=state)
    return f"hf-audio:{folder}"


def test_weights_that_only_training_needs_may_be_missing(tmp_path: Path) -> None:
    model, _ = saved("wav2vec2", tmp_path)
    spec = saved_without(model, tmp_path, "masked_spec_embed")
    first, second = (encoders.make(spec).fingerprint for _ in range(2))  # type: ignore[attr-defined]
    assert first == second  # though the missing weights are random
    with pytest.raises(InputError, match=r"lacks \d+ of its weights, e\.g\. .*layer_norm"):
        encoders.make(saved_without(model, tmp_path, "layer_norm")).fingerprint  # type: ignore[attr-defined]  # noqa: B018


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    saved("clap", tmp_path / "clap")
    saved_images("vit", tmp_path / "vit")
    with pytest.raises(InputError, match=r"at most 2 s, found seconds 5"):
        encoders.make(f"hf-audio:{tmp_path / 'clap'}").fingerprint  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(InputError, match=r"model '.*vit'"):
        encoders.make(f"hf-audio:{tmp_path / 'vit'}").fingerprint  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(InputError, match="cannot load its ImageProcessor"):
        encoders.make(f"hf:{tmp_path / 'clap'}").processor  # type: ignore[attr-defined]  # noqa: B018
    build("ast")[1].save_pretrained(tmp_path / "text")
    transformers.BertModel(transformers.BertConfig(**SMALL, vocab_size=20)).save_pretrained(tmp_path / "text")
    with pytest.raises(InputError, match="is a BertModel, which does not take sounds"):
        encoders.make(f"hf-audio:{tmp_path / 'text'}").fingerprint  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(InputError, match=r"neither a folder nor .*cache.*hub=True"):
        encoders.make("hf-audio:no/such-model").fingerprint  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(InputError, match=r"pooling: expected .* found 'cs': did you mean 'cls'"):
        encoders.make("hf-audio:x", pooling="cs")


def test_the_language_model_beside_a_tower_has_no_say(tmp_path: Path) -> None:
    model, extractor = saved("qwen2-audio", tmp_path / "a")
    with torch.no_grad():
        for name, each in model.named_parameters():
            if "audio_tower" not in name:
                each.fill_(7)
    model.save_pretrained(tmp_path / "b")
    extractor.save_pretrained(tmp_path / "b")
    first, second = (encoders.make(f"hf-audio:{tmp_path / name}(seconds=0.5)") for name in "ab")
    assert first.fingerprint == second.fingerprint
    assert sum(parameter.numel() for parameter in first.network.parameters()) < sum(
        parameter.numel() for parameter in model.parameters()
    )
    catalog = draw_clips(tmp_path / "clips", 2, seconds=0.5, rate=16_000)
    runtime = Runtime(cache=None, workers=1)
    stages = [encode(catalog, encoders.make(str(first), stage=k), runtime=runtime) for k in (1, 2)]
    np.testing.assert_array_equal(stages[1].array, encode(catalog, first, runtime=runtime).array)
    assert not np.allclose(stages[0].array, stages[1].array)
