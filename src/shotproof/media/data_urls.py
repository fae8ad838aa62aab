"""Images and sounds as text, for servers that take them within a request."""

from __future__ import annotations

import base64
import io
import wave
from pathlib import Path

from shotproof.media.clip import RATE, read_clip
from shotproof.media.images import open_image
from shotproof.media.mixture import Clip, mix_clips


def image_data_url(path: Path, max_side: int) -> str:
    """Return the image, scaled down to at most `max_side` pixels, as a JPEG in a data: URL."""
    image = open_image(path, side=max_side)
    image.thumbnail((max_side, max_side))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def wav_base64(clip: Clip, seconds: float) -> str:
    """Return the first seconds of a sound, a shorter one repeated, as a WAV file of one channel in base64."""
    samples, _ = mix_clips(read_clip(clip, RATE, seconds), None)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.astype("<i2").tobytes())
    return base64.b64encode(buffer.getvalue()).decode()
