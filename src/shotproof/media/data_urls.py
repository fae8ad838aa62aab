"""Images and sounds encoded as text, for requests to servers."""

from __future__ import annotations

import base64
import io
import wave

from shotproof.media.clip import RATE, read_clip
from shotproof.media.images import open_image
from shotproof.media.mixture import mix_clips
from shotproof.media.unwritten import ItemFile


def image_data_url(path: ItemFile, max_side: int) -> str:
    """Encode an image, scaled down to at most `max_side` pixels, as a JPEG in a data: URL."""
    image = open_image(path, side=max_side)
    image.thumbnail((max_side, max_side))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def wav_base64(clip: ItemFile, seconds: float) -> str:
    """Encode the first seconds of a sound (a shorter one is repeated) as a WAV file with one channel in base64."""
    samples, _ = mix_clips(read_clip(clip, RATE, seconds), None)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.astype("<i2").tobytes())
    return base64.b64encode(buffer.getvalue()).decode()
