from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

from shotproof.core.errors import InputError
from shotproof.media.filter_bank import FilterBank, filter_bank
from tests.drawn_clips import tone

# Between 20 and 40 Hz, bands are narrower than the distance of frequencies.
pytestmark = pytest.mark.filterwarnings("ignore:At least one mel filter has all zero values")


@pytest.mark.parametrize(("shape", "gain"), [("hann", 1.0), ("povey", 2.0**15)], ids=["AudioMAE", "BEATs"])
def test_kaldis_frames_agree_with_transformers(shape: str, gain: float) -> None:
    clip = tone(0, 1.3)
    found = filter_bank(torch.from_numpy(clip), FilterBank(shape=shape, gain=gain))
    filters = mel_filter_bank(257, 128, 20, 8_000, 16_000, mel_scale="kaldi", triangularize_in_mel_space=True)
    options = {"frame_length": 400, "hop_length": 160, "fft_length": 512, "power": 2.0, "center": False}
    options |= {"preemphasis": 0.97, "log_mel": "log", "mel_floor": 2.0**-23, "remove_dc_offset": True}
    window = window_function(400, shape, periodic=False)
    expected = spectrogram((clip * gain).astype(np.float64), window, mel_filters=filters, **options).T
    assert found.shape == (128, 128)  # 1 + (20,800 - 400) // 160 frames
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_centered_frames_agree_with_passts_preprocessing() -> None:
    """Written out frame by frame: pre-emphasis of the clip, mirrored ends, the window in the middle of the frame."""
    settings = FilterBank(rate=32_000, window=800, hop=320, fft=1024, low_hz=0, high_hz=15_000, frames="centered")
    clip = tone(1, 0.2, 32_000).astype(np.float64)
    emphasized = np.convolve(clip, [1, -0.97], mode="valid")
    padded = np.pad(emphasized, 512, mode="reflect")
    window = np.pad(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(800) / 799), 112)
    starts = range(0, len(padded) - 1023, 320)
    power = np.abs(np.fft.rfft(np.stack([padded[start : start + 1024] * window for start in starts]))) ** 2
    filters = mel_filter_bank(513, 128, 0, 15_000, 32_000, mel_scale="kaldi", triangularize_in_mel_space=True)
    expected = np.log(power @ filters + 1e-5)
    found = filter_bank(torch.from_numpy(clip.astype(np.float32)), settings)
    assert found.shape == (1 + len(emphasized) // 320, 128)
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match=r"a clip of 399 samples .*shorter .* 400"):
        filter_bank(torch.zeros(399))
    with pytest.raises(InputError, match="expected low_hz < high_hz <= rate / 2"):
        FilterBank(high_hz=9_000)
