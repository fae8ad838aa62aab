from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shotproof.changes.backgrounds import MixedRandom, MixedRival, MixedSame, OnlyBackground, OnlyForeground
from shotproof.changes.change import BackgroundChange, changes
from shotproof.changes.layers import GRAY, ImageLayers, SoundLayers, _fill
from shotproof.core.errors import InputError
from shotproof.media.box import Box
from shotproof.media.clip import RATE, Samples
from shotproof.media.mixture import amplified
from tests.changes.every_change import noisy, smooth, voice
from tests.drawn_clips import tone
from tests.drawn_layers import disc, picture
from tests.meter import lufs

UNIQUE = (255, 0, 255)
MIXED = (MixedSame, MixedRandom, MixedRival)
SIZES = [(48, 64), (64, 48), (224, 300), (31, 33)]


def far_from(mask: np.ndarray, reach: int) -> np.ndarray:
    """Pixels that are not within a reach of the mask."""
    from scipy.ndimage import binary_dilation

    return ~np.asarray(binary_dilation(mask, iterations=reach))


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_only_background_shows_nothing_of_the_foreground(height: int, width: int) -> None:
    mask = disc(height, width)
    pixels = np.where(mask[..., None], UNIQUE, np.minimum(noisy(height, width), (120, 255, 120))).astype(np.uint8)
    changed = OnlyBackground().compose(ImageLayers(pixels, mask), None)
    assert changed[..., 0].max() <= 120
    assert changed[..., 2].max() <= 120
    np.testing.assert_array_equal(changed[0], pixels[0])
    np.testing.assert_array_equal(changed[:, -1], pixels[:, -1])


def test_the_whole_box_is_filled_whatever_the_mask_missed() -> None:
    mask, whole = disc(48, 64, 0.2), disc(48, 64, 0.35)
    pixels = np.where(whole[..., None], UNIQUE, np.minimum(noisy(48, 64), (120, 255, 120))).astype(np.uint8)
    y, x = np.flatnonzero(whole.any(axis=1)), np.flatnonzero(whole.any(axis=0))
    assert OnlyBackground().compose(ImageLayers(pixels, mask), None)[..., 0].max() > 200
    box = Box(x[0] / 64 + 0.005, y[0] / 48 + 0.005, (x[-1] + 1) / 64 - 0.005, (y[-1] + 1) / 48 - 0.005)
    assert OnlyBackground().compose(ImageLayers(pixels, mask, box), None)[..., 0].max() <= 120


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_only_foreground_keeps_its_pixels_on_gray(height: int, width: int) -> None:
    mask, pixels = disc(height, width), smooth(height, width)
    changed = OnlyForeground().compose(ImageLayers(pixels, mask), None)
    inside = far_from(~mask, 4)
    np.testing.assert_allclose(changed[inside].astype(int), pixels[inside], atol=1)
    assert (changed[far_from(mask, 4)] == GRAY).all()


@pytest.mark.parametrize("change", MIXED)
@pytest.mark.parametrize("size", [(48, 64), (96, 96), (31, 80)])
def test_mixed_has_the_foreground_of_the_item_and_the_background_of_the_plate(
    change: type[BackgroundChange], size: tuple[int, int]
) -> None:
    mask = disc()
    item = ImageLayers(picture(mask, (230, 40, 40), (20, 20, 20), 5, 0), mask)
    other = disc(*size, across=0.6)
    plate = ImageLayers(picture(other, (40, 60, 230), (20, 180, 20), 5, 1), other)
    changed = change().compose(item, plate)
    assert changed.shape == item.pixels.shape
    inside, outside = far_from(~mask, 4), far_from(mask, 4)
    np.testing.assert_allclose(changed[inside].astype(int), item.pixels[inside], atol=1)
    assert (np.abs(changed[outside].astype(int) - (20, 180, 20)) < 12).all()


def test_an_image_that_is_all_foreground_has_a_gray_background() -> None:
    pixels = smooth(20, 20)
    layers = ImageLayers(pixels, np.ones((20, 20), bool))
    assert (OnlyBackground().compose(layers, None) == GRAY).all()
    np.testing.assert_allclose(OnlyForeground().compose(layers, None).astype(int), pixels, atol=1)


@given(
    st.tuples(st.integers(1, 20), st.integers(1, 20)).flatmap(
        lambda size: st.tuples(arrays(np.uint8, (*size, 3)), arrays(np.bool_, size))
    )
)
def test_what_is_filled_stays_within_the_range_of_what_is_known(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    pixels, hole = drawn
    filled = _fill(pixels, hole)
    if hole.all():
        assert (filled == GRAY).all()
        return
    np.testing.assert_array_equal(filled[~hole], pixels[~hole])
    known = pixels[~hole]
    assert (filled >= known.min(axis=0)).all()
    assert (filled <= known.max(axis=0)).all()


def test_a_hole_in_a_ramp_is_filled_by_the_ramp() -> None:
    ramp = np.broadcast_to(np.linspace(0, 240, 80)[None, :, None], (60, 80, 3)).astype(np.uint8)
    hole = np.zeros((60, 80), bool)
    hole[20:40, 30:50] = True
    filled = _fill(ramp, hole).astype(int)
    assert np.abs(filled - ramp).max() < 30
    assert (np.diff(filled[30, 28:52, 0]) >= -2).all()


def sounds() -> tuple[Samples, Samples, Samples]:
    rng = np.random.default_rng(0)
    hum = (0.03 * rng.standard_normal(3 * RATE)).astype(np.float32)
    return 0.3 * voice(2, 3.0), hum, tone(7, 3.0)


def test_sounds_have_the_foreground_or_the_background_alone() -> None:
    front, back, _ = sounds()
    layers = SoundLayers(front, back)
    np.testing.assert_allclose(OnlyForeground().compose(layers, None), front, atol=1 / 32768)
    np.testing.assert_allclose(OnlyBackground().compose(layers, None), back, atol=1 / 32768)


@pytest.mark.parametrize("change", MIXED)
def test_another_background_is_as_loud_as_that_of_the_item(change: type[BackgroundChange]) -> None:
    """By a meter of the tests' own."""
    front, back, other = sounds()
    changed = change().compose(SoundLayers(front, back), SoundLayers(back, amplified(other, -3.0)))
    added = changed - front
    gain = float(added @ other / (other @ other))
    np.testing.assert_allclose(added, gain * other, atol=2 / 32768)
    assert lufs(added) == pytest.approx(lufs(back), abs=0.1)


@pytest.mark.parametrize("margin_db", [-6.0, 0.0, 8.0, 20.0])
@pytest.mark.parametrize("change", MIXED)
def test_a_margin_says_how_far_the_background_is_below_the_foreground(
    change: type[BackgroundChange], margin_db: float
) -> None:
    front, back, other = (0.1 * sound for sound in sounds())  # quiet enough for sums that do not clip
    layers = SoundLayers(front, back), SoundLayers(back, other)
    mixed = change(margin_db=margin_db).compose(*layers)  # type: ignore[call-arg]
    added = mixed - front
    assert lufs(front) - lufs(added) == pytest.approx(margin_db, abs=0.1)
    again = change(margin_db=margin_db).compose(SoundLayers(front, 3 * back), layers[1])  # type: ignore[call-arg]
    np.testing.assert_array_equal(again, mixed)


def test_images_have_no_margin() -> None:
    change = changes.make("mixed-rival(margin_db=8)")
    change.require_medium("sound")
    with pytest.raises(InputError, match=r"'mixed-rival\(margin_db=8\)': margin_db applies to sounds"):
        change.require_medium("image")
    with pytest.raises(InputError, match="margin_db: expected a number from -60 to 60"):
        changes.make("mixed-same(margin_db=100)")


def test_silent_backgrounds_are_no_error() -> None:
    front, back, other = sounds()
    silence = np.zeros_like(front)
    on_silence = MixedSame().compose(SoundLayers(front, back), SoundLayers(front, silence))
    np.testing.assert_allclose(on_silence, front, atol=1 / 32768)
    assert np.isfinite(MixedSame().compose(SoundLayers(front, silence), SoundLayers(front, other))).all()


@pytest.mark.parametrize("length", [0, 1, 1000])
def test_sounds_that_are_too_short_for_a_loudness_are_no_error(length: int) -> None:
    short = 0.3 * np.ones(length, np.float32)
    layers = SoundLayers(short, short)
    for change in (OnlyForeground, OnlyBackground, *MIXED):
        changed = change().compose(layers, layers)
        assert len(changed) == length
        assert np.isfinite(changed).all()


def test_every_background_change_is_tested() -> None:
    names = [name for name in changes if issubclass(changes.get(name), BackgroundChange)]
    assert {changes.get(name) for name in names} == {OnlyForeground, OnlyBackground, *MIXED}
