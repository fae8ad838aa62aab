from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from shotproof.errors import InputError, UnreadableItem
from shotproof.features.encoder import Tally, encode, make_encoder
from shotproof.sounds.spectrogram import LogMel, log_mel
from tests.drawn_clips import draw_clips, tone
from tests.drawn_images import catalog_of, draw_catalog


def test_features_are_the_statistics_of_the_spectrogram(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path, 3, seconds=1.0)
    features = encode(catalog, "logmel(seconds=1.0)", cache=False, workers=0)
    levels = log_mel(torch.stack([torch.from_numpy(tone(seed, 1.0)) for seed in range(3)])).numpy()
    expected = np.concatenate([levels.mean(axis=2), levels.std(axis=2)], axis=1)
    np.testing.assert_allclose(features.array, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("statistic", ["mean", "std"])
def test_one_statistic_is_a_half_of_both(tmp_path: Path, statistic: str) -> None:
    catalog = draw_clips(tmp_path, 2)
    both = encode(catalog, "logmel", cache=False, workers=0).array
    one = encode(catalog, "logmel", statistics=statistic, cache=False, workers=0).array
    np.testing.assert_array_equal(one, both[:, :128] if statistic == "mean" else both[:, 128:])


def test_the_front_end_is_chosen_by_options(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path, 1, seconds=1.0, rate=8_000)
    options: dict[str, Any] = {"rate": 8_000, "window": 512, "hop": 128, "bands": 40, "scale": "htk", "norm": "none"}
    features = encode(catalog, "logmel", cache=False, workers=0, statistics="mean", seconds=1, **options)
    levels = log_mel(torch.from_numpy(tone(0, 1.0, 8_000))[None], LogMel(**options))
    np.testing.assert_allclose(features.array, levels.mean(dim=2).numpy(), rtol=1e-4, atol=1e-3)


def test_batches_and_workers_give_the_same_bytes_and_the_cache_is_used(tmp_path: Path) -> None:
    catalog = draw_clips(tmp_path / "clips", 5)
    first = encode(catalog, "logmel", cache=False, workers=0, batch_size=2)
    tallies = [Tally(), Tally(), Tally()]
    for tally, spec in zip(tallies, ("logmel", "logmel", "logmel(bands=64)"), strict=True):
        made = encode(catalog, spec, cache=tmp_path / "cache", workers=1, batch_size=5, tally=tally)
        assert (made.digest == first.digest) == (spec == "logmel")
    assert [tally.encoded for tally in tallies] == [5, 0, 5]


def test_a_clip_of_a_tenth_of_a_second_is_repeated(tmp_path: Path) -> None:
    short = tone(0, 0.1)
    soundfile.write(tmp_path / "short.wav", short, 16_000, subtype="FLOAT")
    soundfile.write(tmp_path / "long.wav", np.tile(short, 50), 16_000, subtype="FLOAT")
    features = encode(catalog_of(tmp_path, ["short.wav", "long.wav"]), "logmel", cache=False, workers=0)
    np.testing.assert_array_equal(features.array[0], features.array[1])


def test_images_and_sounds_are_refused_where_the_other_is_expected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'logmel' takes sounds, .*item '000\.png' .* expected an encoder for images"):
        encode(draw_catalog(tmp_path, 1), "logmel", cache=False)
    with pytest.raises(InputError, match=r"'pixels' takes images, .*item '000\.wav' .* expected an encoder for sounds"):
        encode(draw_clips(tmp_path, 1), "pixels", cache=False)


def test_a_file_that_is_no_sound_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"no sound at all")
    with pytest.raises(UnreadableItem, match=r"a\.wav"):
        encode(catalog_of(tmp_path, ["a.wav"]), "logmel", cache=False, workers=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistics": "meen"}, "unknown statistic of log-mel bands 'meen': did you mean 'mean'"),
        ({"statistics": ["mean", "mean"]}, "expected mean, std, or both"),
        ({"statistics": []}, "expected mean, std, or both"),
        ({"seconds": 0}, "seconds 0: expected a number above 0"),
        ({"seconds": "five"}, "seconds 'five': expected a number"),
        ({"bands": -1}, "bands -1: expected"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_encoder("logmel", **options)
