"""The encoder `logmel`: statistics of log-mel bands over time, a naive baseline for sounds that ignores order."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.features.encoders.pretrained_network import LONGEST_CLIP, SoundEncoder
from shotproof.media.clip import SECONDS
from shotproof.media.spectrogram import LogMel, log_mel

if TYPE_CHECKING:
    import torch

STATISTICS = ("mean", "std")


@dataclass(frozen=True)
class LogMelStatistics(SoundEncoder, LogMel):
    """Mean and standard deviation over time of each log-mel band, in decibels; bands * 2 dimensions.

    With `maps`, the levels themselves: one channel per band at 1 x frames locations, for methods on local maps.
    The front end is LogMel (`media/spectrogram.py`), with the defaults of SpurAudio: 16 kHz, 1024 samples every 512,
    128 bands.
    """

    about = "mean and deviation of log-mel bands, the naive baseline for sounds (extra: sound)"
    example = "logmel(bands=64, seconds=10)"

    statistics: str | tuple[str, ...] = option(STATISTICS, "mean, std, or both, in the order of the features")
    maps: bool = option(False, "the levels over time, bands x 1 x frames, in place of their statistics")
    seconds: float = option(SECONDS, "length of the clips", above=0, most=LONGEST_CLIP)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = (self.statistics,) if isinstance(self.statistics, str) else self.statistics
        if not names or not set(names) <= set(STATISTICS) or len(set(names)) < len(names):
            raise InputError(f"encoder 'logmel': statistics: expected mean, std, or both, found {self.statistics!r}")
        if self.maps and names != STATISTICS:
            raise InputError("encoder 'logmel': maps have no statistics over time: leave out maps or statistics")
        object.__setattr__(self, "statistics", names)

    @property
    def clip_rate(self) -> int:
        """Return the sampling rate of the clips."""
        return self.rate

    @property
    def fingerprint(self) -> str:
        """Return the name and the options."""
        front_end = {field.name: getattr(self, field.name) for field in fields(LogMel)}
        options = {"statistics": list(self.statistics), "seconds": self.seconds, **front_end}
        return f"logmel {sorted(options.items())}"

    def move(self, device: torch.device) -> torch.device:
        """Return the device: there are no weights to move."""
        return device

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Compute statistics of bands, [b, bands * statistics], or maps, [b, bands, 1, frames], from clips, [b, n]."""
        import torch

        levels = log_mel(batch, self)
        if self.maps:
            return levels[:, :, None]
        statistics = {"mean": levels.mean(dim=-1), "std": levels.std(dim=-1, correction=0)}
        return torch.cat([statistics[name] for name in self.statistics], dim=1)
