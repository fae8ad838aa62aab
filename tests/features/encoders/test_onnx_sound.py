from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from transformers import ASTFeatureExtractor

from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode, encoders
from shotproof.features.encoders.onnx_sound import front_end as known_front_end
from shotproof.media.clip import read_clip
from shotproof.media.filter_bank import filter_bank
from tests.drawn_clips import draw_clips
from tests.drawn_images import draw_catalog
from tests.features.encoders.test_onnx import convolution, identity, save

pytestmark = pytest.mark.filterwarnings("ignore:At least one mel filter has all zero values")
PLAIN = Runtime(cache=None, workers=1, batch_size=2)


def flattened(path: Path, shape: list[Any], size: int | str) -> str:
    """A model whose output is its input as one vector."""
    nodes = [helper.make_node("Flatten", ["image"], ["flat"])]
    return save(path, nodes, shape, [helper.make_tensor_value_info("flat", TensorProto.FLOAT, [shape[0], size])])


@pytest.mark.parametrize("leading", [[], [1]], ids=["samples", "one channel"])
def test_samples_at_the_models_rate_and_length(tmp_path: Path, leading: list[int]) -> None:
    catalog = draw_clips(tmp_path / "clips", 3, seconds=1, rate=16_000)
    spec = flattened(tmp_path / "m.onnx", ["b", *leading, 4_000], 4_000)
    options = {"input": "waveform"} if leading else {}
    features = encode(catalog, encoders.make(spec, rate=8_000, scale=2, mean=0.5, std=4, **options), runtime=PLAIN)
    expected = np.stack([read_clip(path, 8_000, 0.5) for path in catalog.paths])
    np.testing.assert_allclose(features.array, (2 * expected - 0.5) / 4, atol=1e-6)


def test_the_spectrogram_of_audiomae_is_that_of_asts_extractor(tmp_path: Path) -> None:
    """Both were trained on the same filter banks; AudioMAE's code takes a clip's mean away first."""
    catalog = draw_clips(tmp_path / "clips", 2, seconds=1, rate=16_000)
    spec = flattened(tmp_path / "m.onnx", ["b", 1, 128, 128], 128 * 128)
    features = encode(catalog, encoders.make(spec, front_end="audiomae", seconds=1), runtime=PLAIN)
    clips = [read_clip(path, 16_000, 1.0) for path in catalog.paths]
    extractor = ASTFeatureExtractor(max_length=128)
    expected = extractor([clip - clip.mean() for clip in clips], sampling_rate=16_000, return_tensors="np")
    values = expected["input_values"]
    assert values.shape == (2, 128, 128)  # 98 frames, and zeros
    np.testing.assert_allclose(features.array.reshape(values.shape), values, atol=2e-3)


@pytest.mark.parametrize(
    ("front_end", "shape", "frames"),
    [("beats", ["b", "t", 128], 98), ("passt", ["b", 1, 128, "t"], 100), ("passt", ["b", 1, 128, 60], 60)],
)
def test_axes_lie_as_the_models_input_says(tmp_path: Path, front_end: str, shape: list[Any], frames: int) -> None:
    catalog = draw_clips(tmp_path / "clips", 2, seconds=1, rate=32_000)
    spec = flattened(tmp_path / "m.onnx", shape, "size")
    features = encode(catalog, encoders.make(spec, front_end=front_end, seconds=1), runtime=PLAIN)
    known = known_front_end(front_end)
    clip = torch.from_numpy(read_clip(catalog.paths[1], known.settings.rate, 1.0))
    expected = (filter_bank(clip, known.settings).numpy()[:frames] - known.mean) / known.std
    expected = expected.T if front_end == "passt" else expected
    np.testing.assert_allclose(features.array[1].reshape(expected.shape), expected, atol=1e-5)


def test_tokens_of_time_are_averaged_or_are_maps(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path / "clips", 3, seconds=1, rate=16_000)
    spec = identity(tmp_path / "m.onnx", ["b", "t", 128])
    (tmp_path / "m.onnx.toml").write_text('front_end = "beats"\nseconds = 0.5\n')
    vectors = encode(catalog, spec, runtime=PLAIN)
    maps = encode(catalog, encoders.make(spec, maps=True), runtime=PLAIN)
    assert maps.shape == (128, 1, 48)
    np.testing.assert_allclose(maps.array, vectors.array, atol=2e-3)
    longer = encode(catalog, encoders.make(spec, maps=True, seconds=1), runtime=PLAIN)
    assert longer.shape == (128, 1, 98)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        (["b", 1, 128, 100], {}, "give input or front_end"),
        (
            ["b", 128, 100],
            {"input": "spectrogram"},
            "takes spectrograms: .*front_end.* audiomae, beats",
        ),
        (["b", 64, 100], {"front_end": "passt"}, "takes 64 bands, front_end 'passt' gives 128"),
        (["b", 128, 100], {"front_end": "passt", "rate": 16_000}, "front_end 'passt' has 32000 Hz, found 16000"),
        (["b", 128, 100], {"front_end": "passt", "mean": (1, 2, 3)}, "mean: sounds have one channel"),
        (["b", 128, 100], {"front_end": "passt", "size": 8}, "size is for images: .*seconds"),
        (["b", 128, 100], {"front_end": "passt", "layout": "nchw"}, "expected tf or ft, found 'nchw'"),
        (["b", 2, 128, 100], {"front_end": "passt"}, "expected an input of two axes, or 1 and two"),
        (["b", 8_000], {"seconds": 2}, "takes 8000 samples, 0.5 s at 16000 Hz: found seconds 2"),
        (["b", 8_000], {"input": "image"}, "images, four axes"),
        (["b", 8_000], {"front_end": "passt"}, "expected none .*samples"),
        (["b", 3, 8, 8], {"seconds": 2}, "seconds is for sounds, .* the model takes images"),
    ],
)
def test_what_does_not_go_with_the_input(
    tmp_path: Path, shape: list[Any], options: dict[str, Any], message: str
) -> None:
    spec = identity(tmp_path / "m.onnx", shape)
    with pytest.raises(InputError, match=message):
        encode(draw_clips(tmp_path / "clips", 1), encoders.make(spec, **options), runtime=PLAIN)


def test_images_are_refused_by_a_model_of_sounds_and_the_other_way_round(tmp_path: Path) -> None:
    sound = flattened(tmp_path / "m.onnx", ["b", 4_000], 4_000)
    with pytest.raises(InputError, match="encoder 'onnx' takes sounds"):
        encode(draw_catalog(tmp_path / "images", 1), sound, runtime=PLAIN)
    with pytest.raises(InputError, match="encoder 'onnx' takes images"):
        encode(draw_clips(tmp_path / "clips", 1), convolution(tmp_path / "i.onnx", ["b", 3, 6, 8]), runtime=PLAIN)
