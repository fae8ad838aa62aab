from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.core.errors import InputError
from shotproof.media.spectrogram import LogMel, decibels, log_mel, mel_filters, power_spectrogram


def two_tones() -> torch.Tensor:
    """A tone, joined by a chirp, [1, 4000]."""
    t = np.arange(4000, dtype=np.float64)
    chirp = np.sin(2 * np.pi * (0.1 + 0.00003 * t) * t) * (t > 1500)
    samples = 0.5 * np.sin(2 * np.pi * 0.03 * t) + 0.2 * chirp
    return torch.from_numpy(samples.astype(np.float32))[None]


# By librosa 0.11.0, on the samples y of `two_tones`:
#   m = librosa.feature.melspectrogram(y=y, sr=16000, n_fft=1024, hop_length=512, n_mels=128, power=2.0, **options)
#   d = librosa.power_to_db(m); d.shape, d.mean(), d.std(), d[[5, 20, 33, -1], [1, 3, 2, 0]]
LIBROSA: list[tuple[dict[str, Any], tuple[int, int], float, float, list[float]]] = [
    ({}, (128, 8), -38.54997, 19.727781, [-52.868355, 27.059425, -52.868355, -44.457390]),
    (
        {"scale": "htk", "norm": "none"},  # htk=True, norm=None
        (128, 8),
        -22.641766,
        20.223661,
        [-37.909592, -16.151196, -31.746347, -22.240833],
    ),
    (
        {"low_hz": 300.0, "high_hz": 6000.0, "center": False},  # fmin, fmax, center
        (128, 6),
        -39.89027,
        19.682896,
        [-18.040852, -50.410835, -27.835190, -52.031815],
    ),
    (
        {"window": 512, "hop": 160, "bands": 40},  # n_fft, hop_length, n_mels
        (40, 26),
        -44.216877,
        24.087437,
        [15.906901, -63.588440, -63.588440, -47.351685],
    ),
]


@pytest.mark.parametrize(("options", "shape", "mean", "deviation", "values"), LIBROSA)
def test_log_mel_agrees_with_librosa(
    options: dict[str, Any], shape: tuple[int, int], mean: float, deviation: float, values: list[float]
) -> None:
    levels = log_mel(two_tones(), LogMel(**options))[0].numpy()
    assert levels.shape == shape
    assert levels.mean() == pytest.approx(mean, abs=1e-3)
    assert levels.std() == pytest.approx(deviation, abs=1e-3)
    np.testing.assert_allclose(levels[[5, 20, 33, -1], [1, 3, 2, 0]], values, atol=2e-3)


def test_without_a_range_quiet_values_are_kept() -> None:
    # By librosa: librosa.power_to_db(m, top_db=None)[[5, 33], [1, 2]]
    levels = log_mel(two_tones(), LogMel(range_db=None))[0]
    np.testing.assert_allclose(levels[[5, 33], [1, 2]].numpy(), [-61.351849, -57.891762], atol=5e-3)


def test_power_agrees_with_a_plain_transform() -> None:
    samples = torch.randn(2, 3000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    power = power_spectrogram(samples, window=256, hop=100, center=False)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(256) / 256)
    for frame in range(power.shape[-1]):
        plain = np.abs(np.fft.rfft(samples[:, 100 * frame : 100 * frame + 256].numpy() * hann)) ** 2
        np.testing.assert_allclose(power[..., frame].numpy(), plain, rtol=1e-9, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(count=st.integers(1, 5), length=st.integers(1, 3000))
def test_a_clip_does_not_depend_on_its_batch(count: int, length: int) -> None:
    samples = torch.randn(count, length, generator=torch.Generator().manual_seed(length))
    levels = log_mel(samples)
    assert levels.shape == (count, 128, 1 + length // 512)
    for row in range(count):
        assert torch.equal(levels[row], log_mel(samples[row : row + 1])[0])


@settings(max_examples=25, deadline=None)
@given(gain=st.floats(0.01, 10))
def test_louder_by_a_factor_is_a_shift_in_decibels(gain: float) -> None:
    samples = two_tones().double()
    louder = log_mel(samples * gain, LogMel(floor=1e-30))
    np.testing.assert_allclose(louder, log_mel(samples, LogMel(floor=1e-30)) + 20 * np.log10(gain), atol=1e-6)


def test_silence_is_the_floor() -> None:
    assert torch.all(log_mel(torch.zeros(1, 1600)).round() == -100)
    assert decibels(torch.tensor([[1.0, 10.0, 0.0], [1e-3, 1e-3, 1e-3]])).round().tolist() == [
        [0, 10, -70],
        [-30, -30, -30],
    ]


@pytest.mark.parametrize("scale", ["slaney", "htk"])
def test_bands_without_a_norm_add_up_to_one_between_the_outer_peaks(scale: str) -> None:
    filters = mel_filters(LogMel(scale=scale, norm="none", bands=20, window=4096))
    first, last = filters[0].argmax(), filters[-1].argmax()
    np.testing.assert_allclose(filters.sum(dim=0)[first : last + 1], 1, atol=0.05)


def test_a_clip_shorter_than_a_window_needs_padding() -> None:
    with pytest.raises(InputError, match=r"a clip of 1000 samples .*shorter .* 1024"):
        log_mel(torch.zeros(1, 1000), LogMel(center=False))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "htc"}, "scale: expected slaney or htk, found 'htc': did you mean 'htk'"),
        ({"norm": "slany"}, "norm: expected slaney or none, found 'slany': did you mean 'slaney'"),
        ({"bands": 0}, "LogMel: bands: expected a whole number from 1 to 10,000,000, found 0"),
        ({"window": 2.5}, r"window: expected a whole number from 1 to 10,000,000, found 2\.5"),
        ({"high_hz": 9000.0}, "0 <= low_hz < high_hz <= 8000 .* low_hz 0 and high_hz 9000"),
        ({"range_db": -1.0}, "range_db: expected a number above 0 or None, found -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LogMel(**options)
