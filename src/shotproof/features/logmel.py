"""Statistics of log-mel bands over time: the naive baseline for sounds, which hears timbre and no order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from shotproof.errors import InputError, UnknownName
from shotproof.features.sound import SoundEncoder
from shotproof.sounds.clip import SECONDS
from shotproof.sounds.spectrogram import LogMel, log_mel

STATISTICS = ("mean", "std")


class LogMelStatistics(SoundEncoder):
    """Mean and standard deviation over time of each log-mel band, in decibels; bands * 2 dimensions.

    `statistics` chooses mean, std, or both, in that order. The other options are those of LogMel
    (`sounds/spectrogram.py`), with the defaults of SpurAudio: 16 kHz, 1024 samples every 512, 128 bands.
    """

    about = "mean and deviation of log-mel bands, the naive baseline for sounds (extra: sound)"
    name = "logmel"

    def __init__(
        self,
        statistics: str | Sequence[str] = STATISTICS,
        seconds: float = SECONDS,
        rate: int = 16_000,
        window: int = 1024,
        hop: int = 512,
        bands: int = 128,
        low_hz: float = 0.0,
        high_hz: float | None = None,
        scale: str = "slaney",
        norm: str = "slaney",
        centre: bool = True,
        floor: float = 1e-10,
        range_db: float | None = 80.0,
    ) -> None:
        super().__init__(rate, seconds)
        self.settings = LogMel(rate, window, hop, bands, low_hz, high_hz, scale, norm, centre, floor, range_db)
        self.statistics = [statistics] if isinstance(statistics, str) else list(statistics)
        for name in self.statistics:
            if name not in STATISTICS:
                raise UnknownName("statistic of log-mel bands", str(name), STATISTICS)
        if not self.statistics or len(set(self.statistics)) < len(self.statistics):
            raise InputError("encoder 'logmel': statistics: expected mean, std, or both")

    def parameters(self) -> dict[str, Any]:
        """The statistics, the clips' length and the front end."""
        return {"statistics": self.statistics, **super().parameters(), **asdict(self.settings)}

    @property
    def fingerprint(self) -> str:
        """Name and parameters."""
        return f"logmel {sorted(self.parameters().items())}"

    def move(self, device: torch.device) -> torch.device:
        """There are no weights to move."""
        return device

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Clips, [b, n], to statistics of their bands, [b, bands * statistics]."""
        levels = log_mel(batch, self.settings)
        statistics = {"mean": levels.mean(dim=-1), "std": levels.std(dim=-1, correction=0)}
        return torch.cat([statistics[name] for name in self.statistics], dim=1)
