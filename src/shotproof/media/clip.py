"""Reading sound files that may be anything: stereo, at any rate, too short, cut off, or no sound at all."""

from __future__ import annotations

import contextlib
import io
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from shotproof.core.errors import MissingExtra, UnreadableItem, first_line
from shotproof.core.storage.files import LARGEST_ITEM, check_regular, open_file, source_of
from shotproof.core.storage.whole_files import whole_file

Samples = npt.NDArray[np.float32]
Short = Literal["repeat", "pad"]
"""What becomes of a recording that is too short: repeated from its beginning, or followed by silence."""

RATE = 16_000
SECONDS = 5.0
SOUND_EXTENSIONS = ("wav", "flac", "ogg", "oga", "opus", "mp3", "aif", "aiff")
MAX_VALUES = 200_000_000  # samples times channels that one file may make us hold
RATES = range(1_000, 768_001)
# The resampling filter looks so far around a sample; reading a little more keeps the end what it would be.
MARGIN_SECONDS = 0.1


class UnwrittenClip(ABC):
    """A sound that no file holds: it is made when it is read."""

    @abstractmethod
    def samples(self) -> Samples:
        """One channel at RATE, [n]."""


def read_clip(
    clip: str | Path | UnwrittenClip, rate: int = RATE, seconds: float | None = SECONDS, short: Short = "repeat"
) -> Samples:
    """Return a sound as one channel; channels are averaged, other rates are resampled (polyphase).

    Args:
        clip: a sound file, or a clip that is made when it is read
        rate: samples per second
        seconds: what it is trimmed to, or made as long as; None leaves it as it is
        short: whether a shorter one is repeated, or padded with silence

    Returns:
        The samples, [n], float32, full scale at 1.

    Raises:
        UnreadableItem: the file is missing, no sound, cut off or empty.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> recordings = sp.worlds.SoundsWorld(foregrounds=1, backgrounds=1, items=1).write(tempfile.mkdtemp())
        >>> read_clip(recordings.paths[0], rate=8_000, seconds=2.0).shape
        (16000,)
    """
    if isinstance(clip, UnwrittenClip):
        mono = resampled(clip.samples(), RATE, rate)
    else:
        channels, file_rate = _decode(Path(clip), seconds)
        mono = resampled(channels.mean(axis=1, dtype=np.float32), file_rate, rate)
    return mono if seconds is None else fixed_length(mono, round(seconds * rate), short)


def resampled(samples: Samples, old: int, new: int) -> Samples:
    """Return the same sound, [n], at another rate."""
    if old == new:
        return samples
    from scipy.signal import resample_poly

    common = math.gcd(new, old)
    changed: Samples = resample_poly(samples, new // common, old // common).astype(np.float32)
    return changed


def fixed_length(samples: Samples, length: int, short: Short = "repeat") -> Samples:
    """Return the first `length` samples; a shorter sound is repeated from its beginning, or padded with silence."""
    if len(samples) >= length:
        return samples[:length]
    return np.resize(samples, length) if short == "repeat" else np.pad(samples, (0, length - len(samples)))


def recorded_seconds(path: str | Path) -> float:
    """How long the recording is, from its header."""
    with _opened(Path(path)) as file:
        return float(file.frames / file.samplerate)


def write_clip(path: Path, pcm: npt.NDArray[np.int16], format: str) -> None:
    """Write samples of `RATE`, whole or not at all."""
    encoded = io.BytesIO()  # where a disk is full, the C library of soundfile may say nothing and write half a file
    soundfile_module().write(encoded, pcm, RATE, "PCM_16", format=format)
    with whole_file(path) as temporary:
        temporary.write_bytes(encoded.getbuffer())


def soundfile_module() -> Any:
    """Return the module `soundfile`, which comes with the extra `sound`."""
    try:
        import soundfile
    except (ImportError, OSError) as error:  # OSError: the module is there, its C library is not
        raise MissingExtra("reading sounds", "sound") from error
    return soundfile


def _decode(path: Path, seconds: float | None) -> tuple[Samples, int]:
    """Return the first seconds of a file (None: all of it), [n, channels], and its rate."""
    with _opened(path) as file:
        rate, wanted = int(file.samplerate), int(file.frames)
        if seconds is not None:
            wanted = min(wanted, math.ceil((seconds + MARGIN_SECONDS) * rate))
        if wanted * file.channels > MAX_VALUES:
            raise UnreadableItem(f"sound {path} has {wanted:,} x {file.channels} samples, more than {MAX_VALUES:,}")
        channels: Samples = file.read(wanted, dtype="float32", always_2d=True)
    if len(channels) < wanted or (wanted < (seconds or math.inf) * rate and _is_cut_off(path)):
        raise UnreadableItem(f"sound {path} is cut off after {len(channels) / rate:.2f} s")
    if not wanted:
        raise UnreadableItem(f"sound {path} is empty: it holds no sample")
    if not np.isfinite(channels).all():
        raise UnreadableItem(f"sound {path} holds a value that is not finite")
    return channels, rate


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Return an open sound file; what the decoder raises, here or in the block, becomes UnreadableItem."""
    soundfile = soundfile_module()
    try:
        check_regular(path, LARGEST_ITEM)
        with soundfile.SoundFile(source_of(path)) as file:
            if file.samplerate not in RATES:
                raise ValueError(f"{file.samplerate:,} samples per second, expected {RATES[0]:,} to {RATES[-1]:,}")
            yield file
    except FileNotFoundError as error:
        raise UnreadableItem(f"sound {path} does not exist") from error
    except OSError as error:
        raise UnreadableItem(f"sound {path} cannot be read: {error.strerror or error}") from error
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
        message = re.sub(r"^Error opening .*[>']: ", "", first_line(error))
        raise UnreadableItem(f"sound {path} cannot be read: {message}") from error


def _is_cut_off(path: Path) -> bool:
    """Whether the file ends before its own format says; the decoder takes a short WAV, AIFF or Ogg file as it is."""
    with open_file(path) as file:
        head = file.read(12)
        size = file.seek(0, 2)
        file.seek(max(0, size - 2**17))  # an Ogg page is shorter than 2**16 bytes
        tail = file.read()
    if head[:4] in (b"RIFF", b"FORM"):
        declared = int.from_bytes(head[4:8], "little" if head[:4] == b"RIFF" else "big")
        return 0 < declared < 2**32 - 1 and declared + 8 > size + 1  # a writer may count a last byte of padding
    if head[:4] == b"OggS":
        last = tail[tail.rfind(b"OggS") :]
        segments = last[26] if len(last) > 26 else 255
        whole = len(last) == 27 + segments + sum(last[27 : 27 + segments])
        return not whole or not last[5] & 4  # 4: the last page of its stream
    return False
