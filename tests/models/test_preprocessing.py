from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from shotproof.core.errors import InputError, UnknownName, UnreadableItem
from shotproof.media.clip import read_clip
from shotproof.media.spectrogram import LogMel, log_mel
from shotproof.models.preprocessing import ImagePreprocessing, SoundPreprocessing, read_preprocessing
from tests.drawn_clips import draw_clips


def picture(path: Path, width: int, height: int) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(values).save(path)
    return Image.fromarray(values)


def test_the_center_is_what_is_kept_of_an_image(tmp_path: Path) -> None:
    image = picture(tmp_path / "a.png", 60, 40)
    kept = ImagePreprocessing(size=16, stored=20).load(tmp_path / "a.png")
    expected = image.resize((30, 20), Image.Resampling.BICUBIC).crop((5, 0, 25, 20))
    assert kept.dtype == np.uint8
    assert np.abs(kept.astype(int) - np.asarray(expected).astype(int)).max() <= 1
    stretched = ImagePreprocessing(size=16, stored=20, fit="stretch", resample="bilinear").load(tmp_path / "a.png")
    assert np.array_equal(stretched, np.asarray(image.resize((20, 20), Image.Resampling.BILINEAR)))


def test_a_network_sees_the_center_of_that_normalized() -> None:
    preprocessing = ImagePreprocessing(size=8, stored=12, mean=(0.1, 0.2, 0.3), std=(0.5, 0.25, 2.0))
    stored = np.random.default_rng(1).integers(0, 256, (2, 12, 12, 3), dtype=np.uint8)
    seen = preprocessing.prepared(torch.from_numpy(stored))
    expected = (stored[:, 2:10, 2:10] / 255 - np.array([0.1, 0.2, 0.3])) / np.array([0.5, 0.25, 2.0])
    assert seen.shape == (2, *preprocessing.shape)
    np.testing.assert_allclose(seen, expected.transpose(0, 3, 1, 2), atol=1e-6)


def test_sizes_are_in_proportion_and_read_back() -> None:
    assert (ImagePreprocessing.of_size(84).stored, ImagePreprocessing.of_size(42).stored) == (96, 48)
    preprocessing = ImagePreprocessing(size=224, stored=256, fit="stretch").resized(112)
    assert (preprocessing.size, preprocessing.stored, preprocessing.fit) == (112, 128, "stretch")
    for one in (preprocessing, SoundPreprocessing(seconds=2.0, mean=-3.0)):
        assert read_preprocessing(one.to_meta()) == one
    # Files of before `resample` was an option.
    assert read_preprocessing({"medium": "image", "size": 32, "stored": 36}).fingerprint.endswith("bicubic")
    with pytest.raises(UnknownName, match="unknown medium 'images': did you mean 'image'"):
        read_preprocessing({"medium": "images"})
    with pytest.raises(InputError, match=r"images of 32 pixels .* fewer than the network's 84"):
        ImagePreprocessing(stored=32)


def test_a_sound_is_one_channel_of_decibels(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path, 2, seconds=0.5)
    preprocessing = SoundPreprocessing(seconds=0.5, bands=32)
    kept = [preprocessing.load(path) for path in catalog.paths]
    assert kept[0].shape == preprocessing.stored_shape == (32, 16, 1)
    samples = torch.from_numpy(read_clip(catalog.paths[0], 16_000, 0.5))[None]
    expected = log_mel(samples, LogMel(rate=16_000, window=1024, hop=512, bands=32))[0]
    np.testing.assert_allclose(kept[0][:, :, 0], expected, rtol=1e-3)
    fitted = preprocessing.fitted(np.stack(kept))
    seen = fitted.prepared(torch.from_numpy(np.stack(kept)))
    assert seen.shape == (2, *preprocessing.shape) == (2, 1, 32, 16)
    assert (seen.mean().item(), seen.std().item()) == pytest.approx((0, 1), abs=0.01)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(UnreadableItem, match=r"broken\.png"):
        ImagePreprocessing().load(tmp_path / "broken.png")
