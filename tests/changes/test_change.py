"""What every registered change of an image or a sound promises, in each of its styles."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from shotproof.changes.change import BackgroundChange, changes
from shotproof.changes.item_draws import ItemDraws
from shotproof.core.errors import InputError, UnknownName
from shotproof.media.clip import RATE
from tests.changes.every_change import (
    IMAGE_CHANGES,
    IMAGES,
    SEVERITIES,
    SOUND_CHANGES,
    SOUNDS,
    apply,
    digest_of_all,
    noisy,
    smooth,
    voice,
)
from tests.hash_seeds import run_with_another_hash_seed

BACKGROUND_CHANGES = [name for name in changes if issubclass(changes.get(name), BackgroundChange)]
# ImageNet-C's fog is as thick at severity 4 as at 3, and only its detail is finer.
SLACK = {"light(style='fog')": 0.05}


@pytest.mark.parametrize("item", IMAGES)
@pytest.mark.parametrize("spelling", IMAGE_CHANGES)
def test_images_keep_their_shape_and_type_and_are_not_written_to(spelling: str, item: str) -> None:
    pixels = IMAGES[item]()
    pixels.setflags(write=False)
    for severity in SEVERITIES:
        changed = apply(spelling, severity, pixels)
        assert (changed.shape, changed.dtype) == (pixels.shape, np.uint8)
        np.testing.assert_array_equal(apply(spelling, severity, pixels), changed)


@pytest.mark.parametrize("item", SOUNDS)
@pytest.mark.parametrize("spelling", SOUND_CHANGES)
def test_sounds_keep_their_length_and_type_and_are_not_written_to(spelling: str, item: str) -> None:
    samples = SOUNDS[item]()
    samples.setflags(write=False)
    for severity in SEVERITIES:
        changed = apply(spelling, severity, samples)
        assert (changed.shape, changed.dtype) == (samples.shape, np.float32)
        assert np.isfinite(changed).all()
        assert np.abs(changed).max(initial=0) <= 1
        np.testing.assert_array_equal(apply(spelling, severity, samples), changed)
        if item == "silence":
            assert not changed.any()


def _spectrum(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Loudness in bands of 100 Hz, in decibels."""
    power = np.abs(np.fft.rfft(samples)) ** 2
    return 10 * np.log10(power[: 80 * RATE // 200].reshape(80, -1).mean(axis=1) + 1e-3)


def _distance(spelling: str, item: npt.NDArray[Any], changed: npt.NDArray[Any]) -> float:
    """Root mean square of the difference; of the spectra where waves that run apart are as far as any two others."""
    if spelling == "speed":
        item, changed = _spectrum(item), _spectrum(changed)
    return float(np.sqrt(np.mean((item.astype(np.float64) - changed) ** 2)))


@pytest.mark.parametrize("spelling", [*IMAGE_CHANGES, *SOUND_CHANGES])
def test_a_stronger_severity_is_farther_from_the_item(spelling: str) -> None:
    items: list[npt.NDArray[Any]] = (
        [voice(seed, 1.5) for seed in range(3)]
        if spelling in SOUND_CHANGES
        else [smooth(72, 96, seed) for seed in range(4)]
    )
    distances = [
        np.mean([_distance(spelling, item, apply(spelling, severity, item)) for item in items])
        for severity in SEVERITIES
    ]
    assert distances[0] > 0
    for weaker, stronger in itertools.pairwise(distances):
        assert stronger > weaker * (1 - SLACK[spelling] if spelling in SLACK else 1), distances


@pytest.mark.parametrize("spelling", [*IMAGE_CHANGES, *SOUND_CHANGES])
def test_severity_0_changes_nothing_and_the_others_do(spelling: str) -> None:
    assert [changes.make(spelling, severity=severity).changes_nothing for severity in range(6)] == [True, *[False] * 5]


def test_another_process_with_another_hash_seed_makes_the_same() -> None:
    program = "from tests.changes.every_change import digest_of_all; print(digest_of_all())"
    assert run_with_another_hash_seed(program).strip() == digest_of_all()


def test_draws_depend_on_the_content_and_the_name_alone() -> None:
    item, other = noisy(4, 5), noisy(4, 5, seed=1)
    draws = [ItemDraws(content, name).normal(3, 2) for content, name in ((item, "a"), (item, "b"), (other, "a"))]
    np.testing.assert_array_equal(ItemDraws(item.copy(), "a").normal(3, 2), draws[0])
    assert len({draw.tobytes() for draw in draws}) == 3
    source = ItemDraws(item, "a")
    first, second = source.uniform(1000), source.uniform(1000)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    assert ((first >= 0) & (first < 1)).all()
    assert set(source.below(3, 200).tolist()) == {0, 1, 2}


@pytest.mark.parametrize("name", list(changes))
def test_another_medium_is_refused_with_the_changes_that_fit(name: str) -> None:
    change = changes.make(name)
    change.require_medium(None)
    for medium in change.media:
        change.require_medium(medium)
    for medium, fitting in (("image", "rotation"), ("sound", "reverberation")):
        if medium not in change.media:
            with pytest.raises(InputError, match=f"change '{name}' does not apply to {medium}s: .*{fitting}") as error:
                change.require_medium(medium)  # type: ignore[arg-type]
            assert all(other in str(error.value) for other in BACKGROUND_CHANGES)


def test_names_and_options_that_there_are_not_are_told_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown change 'pixelaton': did you mean 'pixelation'"):
        changes.make("pixelaton")
    with pytest.raises(InputError, match="did you mean 'severity'"):
        changes.make("blur(severty=2)")
    with pytest.raises(InputError, match=r"style: expected .* found 'defocuss': did you mean 'defocus'"):
        changes.make("blur(style='defocuss')")


@pytest.mark.parametrize("name", [name for name in changes if name not in BACKGROUND_CHANGES])
@pytest.mark.parametrize("severity", [-1, 6, 2.5])
def test_a_severity_out_of_range_is_refused(name: str, severity: float) -> None:
    with pytest.raises(InputError, match=f"severity: expected a whole number from 0 to 5, found {severity:g}"):
        changes.make(name, severity=severity)
