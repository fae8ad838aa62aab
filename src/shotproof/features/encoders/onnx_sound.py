"""What exported sound models take: the samples of a clip, or a spectrogram by one of several front ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shotproof.core.errors import InputError
from shotproof.media.clip import SECONDS, Samples, read_clip
from shotproof.media.unwritten import ItemFile

if TYPE_CHECKING:
    from shotproof.media.filter_bank import FilterBank
    from shotproof.media.spectrogram import LogMel

WAVEFORM, SPECTROGRAM = "waveform", "spectrogram"
FRONT_ENDS = ("audiomae", "beats", "passt", "logmel")
INPUTS = ("image", WAVEFORM, SPECTROGRAM)
TIME_FIRST, BANDS_FIRST = "tf", "ft"
RATE = 16_000


@dataclass(frozen=True)
class FrontEnd:
    """A spectrogram, the usual order of its axes, and the moments that its model was trained with."""

    settings: FilterBank | LogMel
    layout: str
    mean: float = 0.0
    std: float = 1.0


@cache
def front_end(name: str) -> FrontEnd:
    """As published: AudioMAE's and AST's dataloaders, BEATs' and PaSST's own preprocessing; logmel is the encoder's."""
    # Imported here, as it brings PyTorch: processes that decode images have no need of it.
    from shotproof.media.filter_bank import FilterBank
    from shotproof.media.spectrogram import LogMel

    if name == "audiomae":
        return FrontEnd(FilterBank(), TIME_FIRST, -4.2677393, 2 * 4.5689974)
    if name == "beats":
        return FrontEnd(FilterBank(shape="povey", gain=2.0**15), TIME_FIRST, 15.41663, 2 * 6.55582)
    if name == "passt":
        bank = FilterBank(rate=32_000, window=800, hop=320, fft=1024, low_hz=0.0, high_hz=15_000.0, frames="centered")
        return FrontEnd(bank, BANDS_FIRST, -4.5, 5.0)
    return FrontEnd(LogMel(), BANDS_FIRST)


class ClipPreparation(NamedTuple):
    """All that decides what a model gets of a clip: (x * scale - mean) / std of its samples or spectrogram.

    frames: what a spectrogram is cut or, with zeros, filled up to; None: as many as the clip has
    shape: of the input, without the batch, -1 where it is free
    """

    kind: str
    rate: int
    seconds: float
    front_end: str | None
    layout: str
    frames: int | None
    shape: list[int]
    scale: float
    mean: float
    std: float
    output: str

    def prepared(self, clip: ItemFile) -> npt.NDArray[np.float32]:
        """Return the clip as the model wants it."""
        samples = read_clip(clip, self.rate, self.seconds)
        if self.front_end is None:
            values = samples
        else:
            values = _spectrogram(samples, self.front_end)
            if self.frames is not None:
                filling = max(0, self.frames - len(values))
                values = np.pad(values, ((0, filling), (0, 0)))[: self.frames]
            values = values.T if self.layout == BANDS_FIRST else values
        normalized = (values * np.float32(self.scale) - np.float32(self.mean)) / np.float32(self.std)
        leading = len(self.shape) - normalized.ndim
        return np.ascontiguousarray(normalized, dtype=np.float32).reshape(*[1] * leading, *normalized.shape)


def clip_preparation(
    kind: str, stated: Mapping[str, Any], shape: Sequence[int | None], output: str, model: str
) -> ClipPreparation:
    """What is stated and what the model's input tells, put together.

    Args:
        kind: `waveform` or `spectrogram`
        stated: options of the encoder by name, None where nothing is said
        shape: of the model's input, without the batch, None where an axis is free
        output: the output to take
        model: what messages call it
    """
    for name in ("mean", "std"):
        if isinstance(stated[name], tuple):
            raise InputError(f"{model}: {name}: sounds have one channel, expected one number, found {stated[name]}")
    if stated["size"] is not None:
        raise InputError(f"{model}: size is of images: expected seconds, the length of the clips")
    extra = len(shape) - (1 if kind == WAVEFORM else 2)
    if extra not in (0, 1) or shape[:extra] not in ([], [1], [None]):
        axes = "samples, or 1 and samples" if kind == WAVEFORM else "two axes, or 1 and two"
        raise InputError(f"{model}: expected an input of {axes} beside the batch, found {list(shape)}")
    scale = 1.0 if stated["scale"] is None else stated["scale"]
    free = [-1 if axis is None else axis for axis in shape]
    if kind == WAVEFORM:
        if stated["front_end"] is not None:
            raise InputError(f"{model}: front_end makes spectrograms: expected none for an input of samples")
        rate = stated["rate"] or RATE
        seconds = shape[-1] / rate if shape[-1] is not None else stated["seconds"] or SECONDS
        if stated["seconds"] is not None and abs(seconds - stated["seconds"]) > 1 / rate:
            raise InputError(
                f"{model} takes {shape[-1]} samples, {seconds:g} s at {rate} Hz: found seconds {stated['seconds']:g}"
            )
        moments = (stated["mean"] or 0.0, stated["std"] or 1.0)
        return ClipPreparation(kind, rate, seconds, None, "", None, free, scale, *moments, output)
    name = stated["front_end"]
    if name is None:
        raise InputError(f"{model} takes spectrograms: say which, front_end = one of {', '.join(FRONT_ENDS)}")
    known = front_end(name)
    if stated["rate"] not in (None, known.settings.rate):
        raise InputError(f"{model}: rate: front_end '{name}' has {known.settings.rate} Hz, found {stated['rate']}")
    layout = stated["layout"] or _layout_of(shape[-2:], known)
    time, bands = shape[-2:] if layout == TIME_FIRST else reversed(shape[-2:])
    if bands not in (None, known.settings.bands):
        raise InputError(
            f"{model} takes {bands} bands, front_end '{name}' gives {known.settings.bands}: expected another "
            "front_end, or another layout, tf or ft"
        )
    moments = (
        known.mean if stated["mean"] is None else stated["mean"],
        known.std if stated["std"] is None else stated["std"],
    )
    seconds = stated["seconds"] or SECONDS
    return ClipPreparation(kind, known.settings.rate, seconds, name, layout, time, free, scale, *moments, output)


def _spectrogram(samples: Samples, name: str) -> Samples:
    """Return the spectrogram of a clip by a front end, [frames, bands]."""
    import torch

    from shotproof.media.filter_bank import filter_bank
    from shotproof.media.spectrogram import LogMel, log_mel

    settings, given = front_end(name).settings, torch.from_numpy(samples.copy())
    if isinstance(settings, LogMel):
        levels: Samples = log_mel(given[None], settings)[0].T.numpy()
        return levels
    bank: Samples = filter_bank(given - given.mean() if name == "audiomae" else given, settings).numpy()
    return bank


def _layout_of(axes: Sequence[int | None], known: FrontEnd) -> str:
    """Time or bands first, as the number of bands tells; else as the front end usually has it."""
    bands = known.settings.bands
    if axes[0] != axes[1] and bands in axes:
        return BANDS_FIRST if axes[0] == bands else TIME_FIRST
    return known.layout
