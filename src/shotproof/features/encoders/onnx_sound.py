"""Inputs of exported sound models: the samples of a clip, or a spectrogram by one of several front ends."""

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
    """Settings of a spectrogram, its usual order of axes, and the mean and std that its model was trained with."""

    settings: FilterBank | LogMel
    layout: str
    mean: float = 0.0
    std: float = 1.0


@cache
def front_end(name: str) -> FrontEnd:
    """Return a front end as published: AudioMAE's and AST's data loaders, BEATs' and PaSST's code; or `logmel`'s."""
    # Imported here because it imports PyTorch, which processes that decode images do not need.
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
    """Preprocessing of clips: (x * scale - mean) / std of their samples or spectrograms.

    frames: length that a spectrogram is cut or padded to with zeros; None: that of the clip
    shape: shape of the input, without the batch; -1 for an axis that is not fixed
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

    def read(self, clip: ItemFile) -> npt.NDArray[np.float32]:
        """Read a clip as the model's input."""
        samples = read_clip(clip, self.rate, self.seconds)
        if self.front_end is None:
            values = samples
        else:
            values = _compute_spectrogram(samples, self.front_end)
            if self.frames is not None:
                padding = max(0, self.frames - len(values))
                values = np.pad(values, ((0, padding), (0, 0)))[: self.frames]
            values = values.T if self.layout == BANDS_FIRST else values
        normalized = (values * np.float32(self.scale) - np.float32(self.mean)) / np.float32(self.std)
        leading_axes = len(self.shape) - normalized.ndim
        return np.ascontiguousarray(normalized, dtype=np.float32).reshape(*[1] * leading_axes, *normalized.shape)


def prepare_clips(
    kind: str, options: Mapping[str, Any], shape: Sequence[int | None], output: str, model: str
) -> ClipPreparation:
    """Combine the encoder's options with the shape of the model's input.

    Args:
        kind: `waveform` or `spectrogram`
        options: options of the encoder by name; None for those that are not given
        shape: shape of the model's input, without the batch; None for an axis that is not fixed
        output: name of the output to use
        model: name of the model in messages
    """
    for name in ("mean", "std"):
        if isinstance(options[name], tuple):
            raise InputError(f"{model}: {name}: sounds have one channel, expected one number, found {options[name]}")
    if options["size"] is not None:
        raise InputError(f"{model}: size is for images: give seconds, the length of the clips")
    leading_axes = len(shape) - (1 if kind == WAVEFORM else 2)
    if leading_axes not in (0, 1) or shape[:leading_axes] not in ([], [1], [None]):
        axes = "samples, or 1 and samples" if kind == WAVEFORM else "two axes, or 1 and two"
        raise InputError(f"{model}: expected an input of {axes} besides the batch, found {list(shape)}")
    scale = 1.0 if options["scale"] is None else options["scale"]
    lengths = [-1 if axis is None else axis for axis in shape]
    if kind == WAVEFORM:
        if options["front_end"] is not None:
            raise InputError(f"{model}: front_end is for spectrograms: expected none for an input of samples")
        rate = options["rate"] or RATE
        seconds = shape[-1] / rate if shape[-1] is not None else options["seconds"] or SECONDS
        if options["seconds"] is not None and abs(seconds - options["seconds"]) > 1 / rate:
            raise InputError(
                f"{model} takes {shape[-1]} samples, {seconds:g} s at {rate} Hz: found seconds {options['seconds']:g}"
            )
        moments = (options["mean"] or 0.0, options["std"] or 1.0)
        return ClipPreparation(kind, rate, seconds, None, "", None, lengths, scale, *moments, output)
    name = options["front_end"]
    if name is None:
        raise InputError(f"{model} takes spectrograms: give front_end, one of {', '.join(FRONT_ENDS)}")
    chosen = front_end(name)
    if options["rate"] not in (None, chosen.settings.rate):
        raise InputError(f"{model}: rate: front_end '{name}' has {chosen.settings.rate} Hz, found {options['rate']}")
    layout = options["layout"] or _infer_layout(shape[-2:], chosen)
    time, bands = shape[-2:] if layout == TIME_FIRST else reversed(shape[-2:])
    if bands not in (None, chosen.settings.bands):
        raise InputError(
            f"{model} takes {bands} bands, front_end '{name}' gives {chosen.settings.bands}: expected another "
            "front_end, or another layout, tf or ft"
        )
    moments = (
        chosen.mean if options["mean"] is None else options["mean"],
        chosen.std if options["std"] is None else options["std"],
    )
    seconds = options["seconds"] or SECONDS
    return ClipPreparation(kind, chosen.settings.rate, seconds, name, layout, time, lengths, scale, *moments, output)


def _compute_spectrogram(samples: Samples, name: str) -> Samples:
    """Compute the spectrogram of a clip by a front end, [frames, bands]."""
    import torch

    from shotproof.media.filter_bank import filter_bank
    from shotproof.media.spectrogram import LogMel, log_mel

    settings, signal = front_end(name).settings, torch.from_numpy(samples.copy())
    if isinstance(settings, LogMel):
        levels: Samples = log_mel(signal[None], settings)[0].T.numpy()
        return levels
    bank: Samples = filter_bank(signal - signal.mean() if name == "audiomae" else signal, settings).numpy()
    return bank


def _infer_layout(axes: Sequence[int | None], chosen: FrontEnd) -> str:
    """Infer the order of axes from the number of bands; if that is ambiguous, return the front end's usual order."""
    bands = chosen.settings.bands
    if axes[0] != axes[1] and bands in axes:
        return BANDS_FIRST if axes[0] == bands else TIME_FIRST
    return chosen.layout
