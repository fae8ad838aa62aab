from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.sounds.loudness import measure_loudness
from shotproof.worlds.sounds import REGISTERS, TEXTURES, VOICES, SoundsWorld


def test_every_class_has_a_loudness_and_is_the_same_again(tmp_path: Path) -> None:
    world = SoundsWorld(foregrounds=len(VOICES) * len(REGISTERS), backgrounds=len(TEXTURES), items=1)
    catalog = world.write(tmp_path)
    assert all(one.problem is None for one in measure_loudness(catalog.paths, Runtime(cache=None)))
    row = 5
    written = soundfile.read(catalog.paths[row], dtype="float32")[0]
    again = world.samples(row, catalog.table["label"][row].as_py())
    np.testing.assert_allclose(written, again, atol=1 / 32_768)
    other = SoundsWorld(seed=1, foregrounds=16, backgrounds=8, items=1)
    assert np.abs(other.samples(row, "low breath") - again).max() > 0.01


def test_classes_differ_more_than_recordings_of_one() -> None:
    world = SoundsWorld(foregrounds=8, backgrounds=6, items=4)
    labels = np.array(world.catalog().table["label"].to_pylist())
    clips = np.stack([world.samples(row, label) for row, label in enumerate(labels.tolist())])
    # The shape of the spectrum in half octaves, in decibels.
    power = np.abs(np.fft.rfft(clips)) ** 2
    edges = (60 * 2 ** (np.arange(14) / 2) * 5).astype(int)  # five bins a hertz
    bands = np.log(np.add.reduceat(power, edges, axis=1)[:, :-1])
    bands -= bands.mean(axis=1, keepdims=True)
    distance = np.linalg.norm(bands[:, None] - bands[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (labels[distance.argmin(axis=1)] == labels).mean() > 0.8


def test_the_mapping_lets_every_texture_stand_behind_every_event() -> None:
    world = SoundsWorld(foregrounds=8, backgrounds=6)
    mapping = world.mapping()
    assert mapping.foregrounds == sorted(world.events)
    assert all(mapping.backgrounds_of(label) == sorted(world.textures) for label in world.events)
    assert {len(backgrounds) for backgrounds in mapping.pairs.values()} == {4}
    mapping.require_labels(world.catalog().table["label"].to_pylist())


def test_a_world_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="backgrounds: expected a whole number from 1 to 8, found 9"):
        SoundsWorld(backgrounds=9)
