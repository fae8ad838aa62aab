"""Filter banks that sound models are trained on: natural logarithms of the power in Kaldi's mel bands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch

from shotproof.core.errors import InputError
from shotproof.core.options import Checked, option

PREEMPHASIS = 0.97
WINDOWS = ("hann", "povey")
FRAMES = ("kaldi", "centered")
EPSILON = 1.1920928955078125e-07  # of float32, the least power in Kaldi


@dataclass(frozen=True)
class FilterBank(Checked):
    """Settings of a filter bank.

    With `kaldi` frames, there are as many as fit, the mean is subtracted and pre-emphasis applied in each frame, and
    powers are at least 2^-23. With `centered` frames, there is one around every hop of the clip, which is mirrored at
    its ends, pre-emphasis is applied to the whole clip, and 1e-5 is added to powers. Frames of `window` samples are
    padded to `fft`. `povey` is Kaldi's own window, a Hann window to the power of 0.85.
    """

    rate: int = option(16_000, least=1)
    window: int = option(400, least=2)
    hop: int = option(160, least=1)
    fft: int = option(512, least=2)
    bands: int = option(128, least=1)
    low_hz: float = option(20.0, least=0)
    high_hz: float = option(8_000.0, above=0)
    shape: str = option("hann", choices=WINDOWS)
    frames: str = option("kaldi", choices=FRAMES)
    gain: float = option(1.0, above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low_hz < self.high_hz <= self.rate / 2 or self.window > self.fft:
            raise InputError("filter bank: expected low_hz < high_hz <= rate / 2 and window <= fft")


def filter_bank(samples: torch.Tensor, settings: FilterBank | None = None) -> torch.Tensor:
    """Compute the logarithms of a clip's power in mel bands, [frames, bands], from its samples, [n]."""
    settings = settings or FilterBank()
    if len(samples) < settings.window:
        raise InputError(f"filter bank: a clip of {len(samples)} samples is shorter than a window of {settings.window}")
    window = torch.hann_window(settings.window, periodic=False, dtype=torch.float64)
    window = window.pow(0.85) if settings.shape == "povey" else window
    scaled = samples.double() * settings.gain
    if settings.frames == "kaldi":
        frames = scaled.unfold(0, settings.window, settings.hop)
        frames = frames - frames.mean(dim=1, keepdim=True)
        previous = torch.cat([frames[:, :1], frames[:, :-1]], dim=1)  # the first sample precedes itself
        spectrum = torch.fft.rfft((frames - PREEMPHASIS * previous) * window, settings.fft)
    else:
        emphasized = scaled[1:] - PREEMPHASIS * scaled[:-1]
        spectrum = torch.stft(
            emphasized, settings.fft, settings.hop, settings.window, window, pad_mode="reflect", return_complex=True
        ).T
    power: torch.Tensor = (spectrum.real.square() + spectrum.imag.square()) @ mel_triangles(settings).T
    positive = power.clamp(min=EPSILON) if settings.frames == "kaldi" else power + 1e-5
    return positive.log().float()


@lru_cache(maxsize=8)
def mel_triangles(settings: FilterBank) -> torch.Tensor:
    """Build Kaldi's triangular filters in mels, [bands, fft // 2 + 1], float64; the last frequency is in none."""
    frequencies = torch.arange(settings.fft // 2, dtype=torch.float64) * settings.rate / settings.fft
    ends = _mels(torch.tensor([settings.low_hz, settings.high_hz], dtype=torch.float64))
    corners = torch.linspace(float(ends[0]), float(ends[1]), settings.bands + 2, dtype=torch.float64)[:, None]
    left, peak, right = corners[:-2], corners[1:-1], corners[2:]
    mels = _mels(frequencies)
    triangles = torch.minimum((mels - left) / (peak - left), (right - mels) / (right - peak)).clamp(min=0)
    return torch.nn.functional.pad(triangles, (0, 1))


def _mels(hertz: torch.Tensor) -> torch.Tensor:
    return 1127 * torch.log1p(hertz / 700)
