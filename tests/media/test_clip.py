from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from shotproof.core.errors import UnreadableItem
from shotproof.media.clip import fixed_length, read_clip, recorded_seconds
from tests.drawn_clips import tone


def sine(rate: int, seconds: float, hertz: float = 440.0) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_another_rate_gives_the_same_sound(tmp_path: Path, rate: int) -> None:
    soundfile.write(tmp_path / "a.wav", sine(rate, 2.0), rate, subtype="FLOAT")
    clip = read_clip(tmp_path / "a.wav", 16_000, 2.0)
    assert clip.dtype == np.float32
    assert clip.shape == (32_000,)
    inner = slice(1_000, -1_000)  # the filter rings at the ends
    np.testing.assert_allclose(clip[inner], sine(16_000, 2.0)[inner], atol=2e-3)


def test_channels_are_averaged(tmp_path: Path) -> None:
    left, right = tone(0, 1.0), tone(1, 1.0)
    soundfile.write(tmp_path / "a.wav", np.stack([left, right], axis=1), 16_000, subtype="FLOAT")
    np.testing.assert_allclose(read_clip(tmp_path / "a.wav", seconds=None), (left + right) / 2, atol=1e-6)


def test_a_stereo_clip_of_48_khz_is_as_long_as_the_others(tmp_path: Path) -> None:
    both = np.stack([sine(48_000, 7.0), sine(48_000, 7.0)], axis=1)
    soundfile.write(tmp_path / "a.flac", both, 48_000)
    assert read_clip(tmp_path / "a.flac").shape == (80_000,)
    assert recorded_seconds(tmp_path / "a.flac") == 7.0


def test_short_sounds_are_repeated_and_long_ones_trimmed(tmp_path: Path) -> None:
    sound = tone(3, 0.1)
    soundfile.write(tmp_path / "a.wav", sound, 16_000, subtype="FLOAT")
    np.testing.assert_array_equal(
        read_clip(tmp_path / "a.wav", seconds=0.25), np.concatenate([sound, sound, sound])[:4000]
    )
    np.testing.assert_array_equal(read_clip(tmp_path / "a.wav", seconds=0.05), sound[:800])
    np.testing.assert_array_equal(fixed_length(sound, 1_600), sound)


def test_short_sounds_are_padded_where_it_is_asked_for(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", tone(0, 0.5), 16_000, subtype="FLOAT")
    padded = read_clip(tmp_path / "a.wav", seconds=2.0, short="pad")
    np.testing.assert_array_equal(padded[:8_000], read_clip(tmp_path / "a.wav", seconds=None))
    assert len(padded) == 32_000
    assert not padded[8_000:].any()


def test_only_what_is_needed_of_a_long_recording_is_read_and_its_end_is_the_same(tmp_path: Path) -> None:
    long = tone(5, 30.0, 44_100)
    soundfile.write(tmp_path / "a.wav", long, 44_100, subtype="FLOAT")
    np.testing.assert_allclose(
        read_clip(tmp_path / "a.wav", seconds=1.0), read_clip(tmp_path / "a.wav", seconds=None)[:16_000], atol=1e-6
    )


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "aiff"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.98])
def test_a_file_that_was_cut_off_is_named(tmp_path: Path, suffix: str, kept: float) -> None:
    whole, part = tmp_path / f"whole.{suffix}", tmp_path / f"part.{suffix}"
    soundfile.write(whole, tone(2, 3.0), 16_000)
    assert len(read_clip(whole, seconds=None)) == 48_000
    part.write_bytes(whole.read_bytes()[: int(kept * whole.stat().st_size)])
    with pytest.raises(UnreadableItem, match=rf"part\.{suffix} (is cut off after|cannot be read)"):
        read_clip(part)


def test_what_is_no_sound_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("not a sound")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 16_000)
    soundfile.write(tmp_path / "slow.wav", np.zeros(100), 10)
    soundfile.write(tmp_path / "nan.wav", np.array([0.0, np.nan]), 16_000, subtype="FLOAT")
    for name, message in {
        "gone.wav": r"gone\.wav does not exist",
        "text.wav": r"text\.wav cannot be read: Format not recognised",
        "empty.wav": r"empty\.wav is empty",
        "slow.wav": r"slow\.wav cannot be read: 10 samples per second, expected 1,000 to 768,000",
        "nan.wav": r"nan\.wav .* not finite",
        ".": r"cannot be read: .*found a folder",
    }.items():
        with pytest.raises(UnreadableItem, match=message):
            read_clip(tmp_path / name)
