"""World of synthetic sounds: events (foregrounds) and textures (backgrounds), to mix into contexts.

An event's class is its voice and register; a texture's class is its spectrum and rhythm. Recordings vary in pitch,
tempo and timing, drawn independently of everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.core.draws import bits, uniform
from shotproof.core.options import Checked, option
from shotproof.core.records import CatalogRecord
from shotproof.core.runtime.runtime import current_runtime
from shotproof.media.clip import RATE, SECONDS, write_clip
from shotproof.media.mixture import mix_clips
from shotproof.sounds.mapping import PairMapping

Floats = npt.NDArray[np.float64]

REGISTERS = {"low": 300.0, "high": 1200.0}  # Hz
EVENT_SECONDS = 0.5
PAIRS = 4  # number of a foreground's own backgrounds in the mapping

# Purpose of a random draw, its first counter.
_PARAMETERS, _NOISE = range(2)


_TURN = 2 * np.pi
_PARTIALS = np.array([1.0, 2.76, 5.4])[:, None]  # of a bell
_HARMONICS = np.arange(1.0, 6.0)[:, None]

# Samples of each voice, from the times in seconds, the pitch in Hz, and noise.
VOICES: dict[str, Callable[[Floats, float, Floats], Floats]] = {
    "chirp": lambda t, pitch, noise: np.sin(_TURN * pitch * (t + 1.5 * t**2)),
    "bell": lambda t, pitch, noise: (np.sin(_TURN * pitch * _PARTIALS * t) * np.exp(-5 * _PARTIALS * t)).sum(axis=0),
    "buzz": lambda t, pitch, noise: (np.sin(_TURN * pitch * _HARMONICS * t) / _HARMONICS).sum(axis=0),
    "knock": lambda t, pitch, noise: (np.sin(_TURN * pitch * (t % 0.125)) + 0.3 * noise) * np.exp(-40 * (t % 0.125)),
    "warble": lambda t, pitch, noise: np.sin(_TURN * pitch * t + 6 * np.sin(_TURN * 12 * t)),
    "breath": lambda t, pitch, noise: _filter(noise, _band(2 * pitch, 0.4)),
    "fall": lambda t, pitch, noise: np.sin(_TURN * pitch * (2.2 * t - 1.8 * t**2)),
    "trill": lambda t, pitch, noise: np.sin(_TURN * pitch * np.where(t * 16 % 2 < 1, 1.0, 1.5) * t),
}


# Spectrum of the noise (center in Hz, width in octaves) and variation of its loudness (times per second, depth).
TEXTURES = {
    "rumble": (90.0, 0.8, 0.4, 0.5),
    "hiss": (6000.0, 0.5, 0.2, 0.1),
    "wind": (400.0, 0.7, 0.5, 0.8),
    "crickets": (4500.0, 0.1, 18.0, 1.0),
    "engine": (180.0, 0.4, 25.0, 0.9),
    "waves": (1000.0, 1.5, 0.35, 0.9),
    "fan": (2200.0, 0.4, 7.0, 0.4),
    "drone": (700.0, 0.08, 1.0, 0.3),
}


@dataclass(frozen=True)
class SoundsWorld(Checked):
    """World of `foregrounds` event classes and `backgrounds` texture classes, with `items` recordings of 5 s each.

    Example:
        >>> SoundsWorld(foregrounds=1, backgrounds=2, items=1).catalog().items
        ['low-chirp/0000', 'rumble/0000', 'hiss/0000']
    """

    foregrounds: int = option(8, least=1, most=len(VOICES) * len(REGISTERS))
    backgrounds: int = option(6, least=1, most=len(TEXTURES))
    items: int = option(20, least=1, most=10**6)
    seed: int = 0

    @property
    def events(self) -> list[str]:
        """Return the labels of the foregrounds."""
        return [f"{register} {voice}" for register in REGISTERS for voice in VOICES][: self.foregrounds]

    @property
    def textures(self) -> list[str]:
        """Return the labels of the backgrounds."""
        return list(TEXTURES)[: self.backgrounds]

    def mapping(self) -> PairMapping:
        """Map each event to textures of its own and, for hard tasks, to all others; the only split is `test`."""
        count = min(PAIRS, self.backgrounds)
        pairs, hard = {}, {}
        for index, event in enumerate(self.events):
            first = index % self.backgrounds
            rotated = [*self.textures[first:], *self.textures[:first]]
            pairs[event], hard[event] = tuple(rotated[:count]), tuple(rotated[count:])
        return PairMapping(pairs, hard, dict.fromkeys(self.events, "test"))

    def catalog(self, root: Path | None = None) -> Catalog:
        """Build the table of recordings, with paths relative to `root`, without synthesizing sounds."""
        labels = [label for label in (*self.events, *self.textures) for _ in range(self.items)]
        items = [f"{label.replace(' ', '-')}/{row % self.items:04d}" for row, label in enumerate(labels)]
        columns = {"item": items, "path": [f"{item}.flac" for item in items], "label": labels, "source": items}
        table = pa.table({**columns, "split": ["all"] * len(items)})
        record = CatalogRecord("world of sounds", notes={"world": "sounds", **asdict(self)})
        return Catalog(table, root or Path(), record)

    def write(self, folder: str | Path) -> Catalog:
        """Synthesize all recordings to one folder per class, and return their catalog."""
        catalog = self.catalog(Path(folder))
        labels = catalog.table.column("label").to_pylist()
        with current_runtime().progress_bar("synthesizing", len(labels)) as advance:
            for row, (path, label) in enumerate(zip(catalog.paths, labels, strict=True)):
                pcm, _ = mix_clips(self.samples(row, label), None)
                write_clip(path, pcm, "flac")
                advance(1)
        return catalog

    def samples(self, row: int, label: str) -> npt.NDArray[np.float32]:
        """Synthesize one recording, [n], for a row of the catalog and its label."""
        length = round(SECONDS * RATE)
        parameters = uniform(bits(self.seed, _PARAMETERS, row, np.arange(8)), 24)
        noise = 2 * uniform(bits(self.seed, _NOISE, row, np.arange(length)), 24) - 1
        synthesize = _synthesize_texture if label in TEXTURES else _synthesize_event
        samples = synthesize(label, parameters, noise)
        leveled: npt.NDArray[np.float32] = (0.5 * samples / np.abs(samples).max()).astype(np.float32)
        return leveled


def _synthesize_event(label: str, parameters: Floats, noise: Floats) -> Floats:
    """Synthesize an event that is repeated after pauses, in weak noise."""
    register, voice = label.split()
    pitch = REGISTERS[register] * 2 ** (0.5 * (parameters[0] - 0.5))
    t = np.arange(round(EVENT_SECONDS * RATE)) / RATE
    fade = np.minimum(1, np.minimum(t, t[-1] - t) / 0.01)
    samples = 0.003 * noise
    start, pause = round(parameters[1] * RATE), round((0.3 + 0.7 * parameters[2]) * RATE)
    for onset in range(start, len(samples) - len(t), len(t) + pause):
        samples[onset : onset + len(t)] += fade * VOICES[voice](t, pitch, noise[: len(t)])
    return samples


def _synthesize_texture(label: str, parameters: Floats, noise: Floats) -> Floats:
    """Synthesize noise with a spectrum and a varying loudness."""
    center, octaves, tempo, depth = TEXTURES[label]
    t = np.arange(len(noise)) / RATE
    beat = np.sin(2 * np.pi * (tempo * (0.8 + 0.4 * parameters[1]) * t + parameters[2]))
    band = _band(center * 2 ** (0.3 * (parameters[0] - 0.5)), octaves)
    samples: Floats = _filter(noise, band) * (1 - depth / 2 + depth / 2 * beat)
    return samples


def _band(center: float, octaves: float) -> Callable[[Floats], Floats]:
    """Return a bell-shaped band of the spectrum, as a function of the frequency in Hz."""
    return lambda hz: np.exp(-((np.log2(np.maximum(hz, 1) / center) / octaves) ** 2))


def _filter(noise: Floats, spectrum: Callable[[Floats], Floats]) -> Floats:
    """Multiply the spectrum of noise by a function of the frequency in Hz."""
    hz: Floats = np.fft.rfftfreq(len(noise), 1 / RATE).astype(np.float64)
    return np.fft.irfft(np.fft.rfft(noise) * spectrum(hz), len(noise))
