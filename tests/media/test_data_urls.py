from __future__ import annotations

import base64
import io
import wave
from pathlib import Path

import numpy as np
from PIL import Image

from shotproof.media.clip import read_clip
from shotproof.media.data_urls import image_data_url, wav_base64
from tests.drawn_clips import draw_clips


def test_an_image_is_scaled_down_and_keeps_its_proportions(tmp_path: Path) -> None:
    Image.new("RGB", (400, 100), (200, 30, 90)).save(tmp_path / "wide.png")
    kind, _, data = image_data_url(tmp_path / "wide.png", 80).partition(",")
    image = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
    assert kind == "data:image/jpeg;base64"
    assert image.size == (80, 20)
    np.testing.assert_allclose(np.asarray(image).mean((0, 1)), (200, 30, 90), atol=3)
    small = image_data_url(tmp_path / "wide.png", 1000).partition(",")[2]
    assert Image.open(io.BytesIO(base64.b64decode(small))).size == (400, 100)


def test_a_sound_is_a_wav_file_of_what_is_read(tmp_path: Path) -> None:
    clip = draw_clips(tmp_path, 1, seconds=0.5, rate=8_000).paths[0]
    with wave.open(io.BytesIO(base64.b64decode(wav_base64(clip, 2.0), validate=True))) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (1, 16_000, 32_000)
        samples = np.frombuffer(file.readframes(32_000), "<i2") / 2**15
    expected = read_clip(clip, 16_000, 2.0)
    np.testing.assert_allclose(samples, expected * min(1.0, 1 / np.abs(expected).max()), atol=1e-3)
