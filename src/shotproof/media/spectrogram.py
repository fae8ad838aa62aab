"""Log-mel spectrograms of tensors; the defaults are those of librosa's melspectrogram and power_to_db."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch

from shotproof.core.errors import InputError
from shotproof.core.options import Checked, option

# Slaney's scale: linear, 200/3 Hz per mel, up to 1 kHz; from there on, 27 mels for each factor of 6.4.
LINEAR_HZ = 200 / 3
BREAK_HZ = 1000.0
LOG_STEP = math.log(6.4) / 27
SCALES = ("slaney", "htk")
NORMS = ("slaney", "none")


@dataclass(frozen=True)
class LogMel(Checked):
    """Settings of a log-mel spectrogram.

    Windows (Hann, periodic) have `window` samples, one every `hop`; `center` pads half a window of zeros at both ends.
    `scale` is the mel scale: slaney, or htk (2595 log10(1 + f / 700)); with `norm` slaney, each triangle has an area of
    one hertz, with none a height of one. Decibels are 10 log10(power) of power no lower than `floor`, and, if
    `range_db` is given, no more than that below the clip's loudest value.
    """

    rate: int = option(16_000, "samples per second", least=1)
    window: int = option(1024, "samples per window", least=1)
    hop: int = option(512, "samples from one window to the next", least=1)
    bands: int = option(128, "number of mel bands", least=1)
    low_hz: float = option(0.0, "lower end of the lowest band", least=0)
    high_hz: float | None = option(None, "upper end of the highest band; None: half the rate", above=0)
    scale: str = option("slaney", "mel scale", choices=SCALES)
    norm: str = option("slaney", "slaney: each band has an area of one hertz; none: a height of one", choices=NORMS)
    center: bool = option(True, "whether to pad the clip with half a window of zeros at both ends")
    floor: float = option(1e-10, "least power", above=0)
    range_db: float | None = option(80.0, "decibels from the loudest to the lowest value; None: no limit", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.low_hz < self.top_hz <= self.rate / 2:
            raise InputError(
                f"log-mel: expected 0 <= low_hz < high_hz <= {self.rate / 2:g} (half the rate), "
                f"found low_hz {self.low_hz:g} and high_hz {self.top_hz:g}"
            )

    @property
    def top_hz(self) -> float:
        """Return the upper end of the highest band."""
        return self.rate / 2 if self.high_hz is None else self.high_hz


def log_mel(samples: torch.Tensor, settings: LogMel | None = None) -> torch.Tensor:
    """Compute decibels in mel bands, [b, bands, frames], from samples [b, n]."""
    settings = settings or LogMel()
    power = power_spectrogram(samples, settings.window, settings.hop, settings.center)
    # One product per clip, so that a clip's values do not depend on its batch.
    filters = mel_filters(settings).to(power)
    return decibels(torch.stack([filters @ clip for clip in power]), settings.floor, settings.range_db)


def power_spectrogram(samples: torch.Tensor, window: int, hop: int, center: bool = True) -> torch.Tensor:
    """Compute the squared magnitudes of the short-time Fourier transform of [b, n], [b, window // 2 + 1, frames]."""
    if not center and samples.shape[-1] < window:
        raise InputError(
            f"log-mel: a clip of {samples.shape[-1]} samples is shorter than one window of {window}: set center=True"
        )
    hann = torch.hann_window(window, dtype=samples.dtype, device=samples.device)
    transform = torch.stft(samples, window, hop, window=hann, center=center, pad_mode="constant", return_complex=True)
    return transform.real.square() + transform.imag.square()


def decibels(power: torch.Tensor, floor: float = 1e-10, range_db: float | None = 80.0) -> torch.Tensor:
    """Convert power [b, ...] to decibels re 1, no lower than `floor`, nor `range_db` below the clip's loudest value."""
    level = 10 * torch.log10(power.clamp(min=floor))
    if range_db is None:
        return level
    loudest = level.flatten(1).amax(dim=1).view(-1, *[1] * (level.ndim - 1))
    return torch.maximum(level, loudest - range_db)


@lru_cache(maxsize=8)
def mel_filters(settings: LogMel) -> torch.Tensor:
    """Build the triangular filters that sum frequencies to mel bands, [bands, window // 2 + 1], float32."""
    frequencies = torch.linspace(0, settings.rate / 2, settings.window // 2 + 1, dtype=torch.float64)
    ends = torch.tensor([settings.low_hz, settings.top_hz], dtype=torch.float64)
    low_mel, high_mel = _to_mel(ends, settings.scale).tolist()
    mels = torch.linspace(low_mel, high_mel, settings.bands + 2, dtype=torch.float64)
    corners = _from_mel(mels, settings.scale)[:, None]
    left, peak, right = corners[:-2], corners[1:-1], corners[2:]
    rising, falling = (frequencies - left) / (peak - left), (right - frequencies) / (right - peak)
    triangles = torch.minimum(rising, falling).clamp(min=0)
    if settings.norm == "slaney":
        triangles = triangles * 2 / (right - left)
    return triangles.float()


def _to_mel(hertz: torch.Tensor, scale: str) -> torch.Tensor:
    if scale == "htk":
        return 2595 * torch.log10(1 + hertz / 700)
    above = BREAK_HZ / LINEAR_HZ + torch.log(hertz.clamp(min=BREAK_HZ) / BREAK_HZ) / LOG_STEP
    return torch.where(hertz < BREAK_HZ, hertz / LINEAR_HZ, above)


def _from_mel(mels: torch.Tensor, scale: str) -> torch.Tensor:
    if scale == "htk":
        return 700 * (10 ** (mels / 2595) - 1)
    break_mel = BREAK_HZ / LINEAR_HZ
    return torch.where(mels < break_mel, mels * LINEAR_HZ, BREAK_HZ * torch.exp(LOG_STEP * (mels - break_mel)))
