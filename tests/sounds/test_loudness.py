from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from shotproof.core.runtime.runtime import Runtime
from shotproof.media.lufs import integrated_loudness
from shotproof.sounds.loudness import measure_loudness
from tests.drawn_clips import tone
from tests.meter import lufs


def test_the_standards_own_example() -> None:
    """BS.1770: a full-scale sine of 997 Hz in one front channel reads -3.01."""
    sine = np.sin(2 * np.pi * 997 * np.arange(80_000) / 16_000).astype(np.float32)
    assert integrated_loudness(sine) == pytest.approx(-3.01, abs=0.1)  # what EBU Tech 3341 allows a meter
    assert lufs(sine) == pytest.approx(-3.01, abs=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_an_independent_meter_agrees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bursts = np.repeat(rng.uniform(0, 1, 25) ** 3, 3_200)  # some below the relative gate
    sound = (bursts * tone(seed, 5.0)).astype(np.float32)
    assert integrated_loudness(sound) == pytest.approx(lufs(sound), abs=0.1)


def test_what_has_no_loudness_says_why_and_stops_nothing(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "good.wav", tone(0), 16_000)
    soundfile.write(tmp_path / "silent.wav", np.zeros(16_000), 16_000)
    soundfile.write(tmp_path / "short.wav", tone(0, 0.1), 16_000)
    (tmp_path / "broken.wav").write_bytes((tmp_path / "good.wav").read_bytes()[:9_000])
    names = ["good", "silent", "short", "broken", "gone"]
    measured = measure_loudness(
        [tmp_path / f"{name}.wav" for name in names], Runtime(cache=tmp_path / "cache", workers=1)
    )
    assert measured[0].lufs is not None
    assert [one.problem for one in measured] == [
        None,
        "silent: below -70 LUFS throughout",
        "too short to measure: 0.10 s, expected 0.4 s or more",
        "is cut off after 0.28 s",
        "does not exist",
    ]


def test_what_is_padded_is_measured_as_it_is_mixed(tmp_path: Path) -> None:
    """Silence after a short sound is below the gate, but for the blocks at its end: it is a little less loud."""
    soundfile.write(tmp_path / "a.wav", tone(0, 1.0), 16_000, subtype="FLOAT")
    runtime = Runtime(cache=tmp_path / "cache", workers=1)
    for _ in range(2):  # measured, and then from the cache, where the two are apart
        (repeated,), (padded,) = (measure_loudness([tmp_path / "a.wav"], runtime, short) for short in ("repeat", "pad"))
        assert repeated.lufs == pytest.approx(lufs(np.tile(tone(0, 1.0), 5)), abs=0.1)
        assert padded.lufs == pytest.approx(lufs(np.pad(tone(0, 1.0), (0, 64_000))), abs=0.1)
        assert padded.lufs < repeated.lufs


def test_a_recording_is_measured_once_whatever_its_name(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", tone(0), 16_000)
    (first,) = measure_loudness([tmp_path / "a.wav"], Runtime(cache=tmp_path / "cache"))
    segments = sorted((tmp_path / "cache" / "loudness-48000").iterdir())
    (tmp_path / "a.wav").rename(tmp_path / "b.wav")
    os.utime(tmp_path / "b.wav", (1_000_000_000, 1_000_000_000))
    assert measure_loudness([tmp_path / "b.wav"] * 2, Runtime(cache=tmp_path / "cache")) == [first, first]
    assert sorted((tmp_path / "cache" / "loudness-48000").iterdir()) == segments  # nothing new was measured
