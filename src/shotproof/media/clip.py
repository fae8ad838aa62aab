"""Decoding of sound files: stereo or mono, at any rate, too short, truncated, or not sounds at all."""

from __future__ import annotations

import contextlib
import io
import math
import re
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from shotproof.core.errors import MissingExtra, UnreadableItem, first_line
from shotproof.core.storage.files import LARGEST_ITEM, check_regular, open_file, source_of
from shotproof.core.storage.whole_files import whole_file
from shotproof.media.unwritten import ItemFile, UnwrittenItem

Samples = npt.NDArray[np.float32]
Short = Literal["repeat", "pad"]
"""How to fill up a recording that is too short: repeat it from its beginning, or pad it with silence."""

RATE = 16_000
SECONDS = 5.0
SOUND_EXTENSIONS = ("wav", "flac", "ogg", "oga", "opus", "mp3", "aif", "aiff")
MAX_VALUES = 200_000_000  # samples times channels of one file in memory
RATES = range(1_000, 768_001)
# Half the length of the resampling filter, at most: reading this much more keeps the end of a clip unchanged.
MARGIN_SECONDS = 0.1


class UnwrittenClip(UnwrittenItem):
    """A sound that no file holds: it is made when it is read."""

    @abstractmethod
    def samples(self) -> Samples:
        """Return one channel at RATE, [n]."""

    def samples_at(self, rate: int, seconds: float | None) -> Samples:
        """Return one channel at another rate, [n]; of `seconds` in all (None: of all) if it can be made that long."""
        return resampled(self.samples(), RATE, rate)


def read_clip(
    clip: str | ItemFile, rate: int = RATE, seconds: float | None = SECONDS, short: Short = "repeat"
) -> Samples:
    """Read a sound as one channel. Channels are averaged, and other rates are resampled (polyphase).

    Args:
        clip: a sound file, or a clip that is made when it is read
        rate: samples per second
        seconds: length that the sound is trimmed or extended to; None leaves it as it is
        short: whether to repeat a shorter sound or to pad it with silence

    Returns:
        The samples, [n], float32, full scale at 1.

    Raises:
        UnreadableItem: the file is missing, truncated, empty, or not a sound.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> recordings = sp.worlds.SoundsWorld(foregrounds=1, backgrounds=1, items=1).write(tempfile.mkdtemp())
        >>> read_clip(recordings.paths[0], rate=8_000, seconds=2.0).shape
        (16000,)
    """
    if isinstance(clip, UnwrittenClip):
        mono = clip.samples_at(rate, seconds)
    else:
        if isinstance(clip, UnwrittenItem):
            raise UnreadableItem(f"expected a sound, found a {type(clip).__name__}")
        channels, file_rate = _decode(Path(clip), seconds)
        mono = resampled(channels.mean(axis=1, dtype=np.float32), file_rate, rate)
    return mono if seconds is None else fixed_length(mono, round(seconds * rate), short)


def is_sound(file: ItemFile) -> bool:
    """Return whether an item is a sound, by the name of its file or by what makes it."""
    if isinstance(file, Path):
        return file.suffix.lower().removeprefix(".") in SOUND_EXTENSIONS
    return isinstance(file, UnwrittenClip)


def resampled(samples: Samples, old: int, new: int) -> Samples:
    """Resample a sound, [n], to another rate."""
    if old == new or not len(samples):
        return samples
    from scipy.signal import resample_poly

    common = math.gcd(new, old)
    output: Samples = resample_poly(samples, new // common, old // common).astype(np.float32)
    return output


def fixed_length(samples: Samples, length: int, short: Short = "repeat") -> Samples:
    """Trim a sound to `length` samples, or extend a shorter one by repeating it or padding it with silence."""
    if len(samples) >= length:
        return samples[:length]
    return np.resize(samples, length) if short == "repeat" else np.pad(samples, (0, length - len(samples)))


def recorded_seconds(path: str | Path) -> float:
    """Return the length of a recording, from its header."""
    with _open_sound(Path(path)) as file:
        return float(file.frames / file.samplerate)


def write_clip(path: Path, pcm: npt.NDArray[np.int16], format: str) -> None:
    """Write samples at `RATE` to a sound file; a failed write leaves no partial file."""
    encoded = io.BytesIO()  # in memory, because soundfile may write half a file to a full disk without an error
    soundfile_module().write(encoded, pcm, RATE, "PCM_16", format=format)
    with whole_file(path) as temporary:
        temporary.write_bytes(encoded.getbuffer())


def soundfile_module() -> Any:
    """Import the module `soundfile`, which the extra `sound` installs."""
    try:
        import soundfile
    except (ImportError, OSError) as error:  # OSError: its C library is missing
        raise MissingExtra("reading sounds", "sound") from error
    return soundfile


def _decode(path: Path, seconds: float | None) -> tuple[Samples, int]:
    """Decode the first seconds of a file (None: all of it), [n, channels], and its rate."""
    with _open_sound(path) as file:
        rate, length = int(file.samplerate), int(file.frames)
        if seconds is not None:
            length = min(length, math.ceil((seconds + MARGIN_SECONDS) * rate))
        if length * file.channels > MAX_VALUES:
            raise UnreadableItem(f"sound {path} has {length:,} x {file.channels} samples, more than {MAX_VALUES:,}")
        channels: Samples = file.read(length, dtype="float32", always_2d=True)
    if len(channels) < length or (length < (seconds or math.inf) * rate and _is_truncated(path)):
        raise UnreadableItem(f"sound {path} is cut off after {len(channels) / rate:.2f} s")
    if not length:
        raise UnreadableItem(f"sound {path} is empty: it has no samples")
    if not np.isfinite(channels).all():
        raise UnreadableItem(f"sound {path} has a value that is not finite")
    return channels, rate


@contextlib.contextmanager
def _open_sound(path: Path) -> Iterator[Any]:
    """Open a sound file. Errors of the decoder, here or in the block, become UnreadableItem."""
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


def _is_truncated(path: Path) -> bool:
    """Return whether a file is shorter than its header says; decoders accept truncated WAV, AIFF and Ogg files."""
    with open_file(path) as file:
        head = file.read(12)
        size = file.seek(0, 2)
        file.seek(max(0, size - 2**17))  # an Ogg page is shorter than 2**16 bytes
        tail = file.read()
    if head[:4] in (b"RIFF", b"FORM"):
        declared = int.from_bytes(head[4:8], "little" if head[:4] == b"RIFF" else "big")
        return 0 < declared < 2**32 - 1 and declared + 8 > size + 1  # some writers count a final byte of padding
    if head[:4] == b"OggS":
        page = tail[tail.rfind(b"OggS") :]
        segments = page[26] if len(page) > 26 else 255
        is_complete = len(page) == 27 + segments + sum(page[27 : 27 + segments])
        return not is_complete or not page[5] & 4  # 4: the last page of its stream
    return False
