from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from shotproof.core.errors import InputError, UnreadableItem
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode, encoders
from shotproof.features.features import Tally
from shotproof.media.spectrogram import LogMel, log_mel
from tests.drawn_clips import draw_clips, tone
from tests.drawn_images import catalog_of, draw_catalog


def test_features_are_the_statistics_of_the_spectrogram(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path, 3, seconds=1.0)
    features = encode(catalog, "logmel(seconds=1.0)", runtime=Runtime(cache=None, workers=1))
    levels = log_mel(torch.stack([torch.from_numpy(tone(seed, 1.0)) for seed in range(3)])).numpy()
    expected = np.concatenate([levels.mean(axis=2), levels.std(axis=2)], axis=1)
    np.testing.assert_allclose(features.array, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("statistic", ["mean", "std"])
def test_one_statistic_is_a_half_of_both(tmp_path: Path, statistic: str) -> None:
    catalog = draw_clips(tmp_path, 2)
    both = encode(catalog, "logmel", runtime=Runtime(cache=None, workers=1)).array
    one = encode(catalog, encoders.make("logmel", statistics=statistic), runtime=Runtime(cache=None, workers=1)).array
    np.testing.assert_array_equal(one, both[:, :128] if statistic == "mean" else both[:, 128:])


def test_the_front_end_is_chosen_by_options(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path, 1, seconds=1.0, rate=8_000)
    options: dict[str, Any] = {"rate": 8_000, "window": 512, "hop": 128, "bands": 40, "scale": "htk", "norm": "none"}
    features = encode(
        catalog,
        encoders.make("logmel", statistics="mean", seconds=1, **options),
        runtime=Runtime(cache=None, workers=1),
    )
    levels = log_mel(torch.from_numpy(tone(0, 1.0, 8_000))[None], LogMel(**options))
    np.testing.assert_allclose(features.array, levels.mean(dim=2).numpy(), rtol=1e-4, atol=1e-3)


def test_batches_and_workers_give_the_same_bytes_and_the_cache_is_used(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path / "clips", 5)
    first = encode(catalog, "logmel", runtime=Runtime(cache=None, workers=1, batch_size=2))
    cached = Runtime(cache=tmp_path / "cache", workers=2, batch_size=5)
    for spec, anew in (("logmel", 5), ("logmel", 0), ("logmel(bands=64)", 5)):
        made = encode(catalog, spec, runtime=cached)
        assert (made.digest == first.digest) == (spec == "logmel")
        assert made.tally == Tally(anew, 5 - anew)


def test_a_clip_of_a_tenth_of_a_second_is_repeated(tmp_path: Path) -> None:
    short = tone(0, 0.1)
    soundfile.write(tmp_path / "short.wav", short, 16_000, subtype="FLOAT")
    soundfile.write(tmp_path / "long.wav", np.tile(short, 50), 16_000, subtype="FLOAT")
    features = encode(catalog_of(tmp_path, ["short.wav", "long.wav"]), "logmel", runtime=Runtime(cache=None, workers=1))
    np.testing.assert_array_equal(features.array[0], features.array[1])


def test_images_and_sounds_are_refused_where_the_other_is_expected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'logmel' takes sounds, .*item '000\.png' is an image .* for images"):
        encode(draw_catalog(tmp_path, 1), "logmel", runtime=Runtime(cache=None))
    with pytest.raises(InputError, match=r"'pixels' takes images, .*item '000\.wav' .* expected an encoder for sounds"):
        encode(draw_clips(tmp_path, 1), "pixels", runtime=Runtime(cache=None))


def test_a_file_that_is_no_sound_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"no sound at all")
    with pytest.raises(UnreadableItem, match=r"a\.wav"):
        encode(catalog_of(tmp_path, ["a.wav"]), "logmel", runtime=Runtime(cache=None, workers=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistics": "meen"}, "statistics: expected .*both, found 'meen'"),
        ({"statistics": ["mean", "mean"]}, "expected mean, std, or both"),
        ({"statistics": []}, "expected mean, std, or both"),
        ({"seconds": 0}, "seconds: expected a number above 0, at most 600, found 0"),
        ({"seconds": "five"}, "seconds: expected a number .* found 'five'"),
        ({"bands": -1}, "bands: expected a whole number from 1 to 10,000,000, found -1"),
        ({"low_hz": 9000.0}, "0 <= low_hz < high_hz .* low_hz 9000 and high_hz 8000"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoders.make("logmel", **options)


def test_maps_are_the_levels_over_time(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path / "clips", 3, seconds=1)
    maps = encode(catalog, "logmel(maps=True, seconds=1)", runtime=Runtime(cache=tmp_path / "cache", workers=1))
    assert maps.shape == (128, 1, 32)
    levels = log_mel(torch.from_numpy(np.stack([tone(seed, 1.0) for seed in range(3)])), LogMel())
    np.testing.assert_allclose(maps.maps[:, :, 0], levels, rtol=1e-3, atol=0.05)
    means = encode(
        catalog, "logmel(statistics='mean', seconds=1)", runtime=Runtime(cache=tmp_path / "cache", workers=1)
    )
    np.testing.assert_allclose(maps.array, means.array, rtol=1e-3, atol=0.05)
    with pytest.raises(InputError, match="maps have no statistics"):
        encoders.make("logmel(maps=True, statistics='std')")
