from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import soundfile
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.media.clip import RATE
from shotproof.report.pages.album import MAX_SOUNDS, Album, playable, spectrogram


def tone(hertz: float, seconds: float = 5.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(RATE * seconds)) / RATE)).astype(np.float32)


@pytest.mark.parametrize("hertz", [300, 1500, 5000])
def test_a_playable_clip_is_the_same_sound(hertz: int) -> None:
    samples, rate = soundfile.read(io.BytesIO(playable(tone(hertz))))
    assert rate == RATE
    assert abs(len(samples) / RATE - 5) < 0.2
    spectrum = np.abs(np.fft.rfft(samples[RATE : 3 * RATE]))
    assert spectrum.argmax() / 2 == pytest.approx(hertz, abs=1)


def test_a_spectrogram_has_high_frequencies_above_low_ones() -> None:
    brightest = [
        np.asarray(Image.open(io.BytesIO(spectrogram(tone(hertz)))).convert("L")).mean(1).argmax()
        for hertz in (200, 1000, 4000)
    ]
    assert brightest == sorted(brightest, reverse=True)
    # In time: a tone in the second half is bright on the right.
    late = np.concatenate([np.zeros(RATE * 3, np.float32), tone(1000, 2)])
    columns = np.asarray(Image.open(io.BytesIO(spectrogram(late))).convert("L")).mean(0)
    assert columns[70:].mean() > columns[:50].mean() + 2


def test_sounds_are_shown_with_what_is_heard_and_broken_ones_by_name(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.flac", tone(500), RATE)
    (tmp_path / "b.flac").write_bytes(b"no sound")
    rows = [{"item": name, "path": f"{name}.flac", "label": "pig", "split": "test", "context": "rain"} for name in "ab"]
    catalog, album = Catalog(pa.Table.from_pylist(rows), tmp_path), Album()
    whole, broken, again = album.thumbnails(["a", "b", "a"], catalog)
    assert (whole.about, whole.sound, again) == ("pig in rain", 0, whole)
    assert (broken.image, broken.sound, album.unreadable) == (None, None, ["b"])
    assert len(album.sounds) == len(album.images) == 1
    assert album.has_room_for([str(n) for n in range(MAX_SOUNDS - 2)], catalog)
    assert not album.has_room_for([str(n) for n in range(MAX_SOUNDS)], catalog)


def test_items_of_one_name_in_two_catalogs_are_two_images(tmp_path: Path) -> None:
    catalogs = []
    for name, color in (("reds", (200, 0, 0)), ("blues", (0, 0, 200))):
        (tmp_path / name).mkdir()
        Image.new("RGB", (20, 20), color).save(tmp_path / name / "a.png")
        row = {"item": "a", "path": "a.png", "label": name, "split": "test"}
        catalogs.append(Catalog(pa.Table.from_pylist([row]), tmp_path / name))
    album = Album()
    numbers = [album.thumbnails(["a"], catalog)[0].image for catalog in catalogs]
    assert numbers == [0, 1]
    files = (io.BytesIO(base64.b64decode(uri.partition(",")[2])) for uri in album.images)
    red, blue = (np.asarray(Image.open(file))[10, 10] for file in files)
    assert red[0] > 150 > 50 > red[2]
    assert blue[2] > 150 > 50 > blue[0]
